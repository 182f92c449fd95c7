"""``awatt serve``: the workbench page and a REST API, one process per project file."""
