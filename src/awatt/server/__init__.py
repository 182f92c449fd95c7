"""``awatt serve``: a page to work on and an API, in one process over one project file."""
