"""``awatt serve``: the workbench and the API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PORT = 8377


def serve(
    project: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The project's file; made if it is not there.", show_default=False),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; another than loopback needs AWATT_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = PORT,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name under which it is reached.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A run of 'awatt train' or a model of 'awatt train-detector'. [default: the bundled model]",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Start a local page for defining aspects by example, correcting and exporting, and the same as an API."""
    from awatt.errors import require

    for package in ("fastapi", "uvicorn"):
        require(package, "serve")
    from awatt.server.run import make_server, run, threshold_note

    app, bound, link, path = make_server(host, port, project, allow_host or [], model)
    typer.echo(f"Open this link, once: {link}", err=True)
    typer.echo(f"API: {link.partition('?')[0]}v1/ with the header Authorization: Bearer {app.access.token}", err=True)
    typer.echo(f"Project: {path}. Stop with Ctrl-C.", err=True)
    if note := threshold_note(model):
        typer.echo(f"awatt: {note}", err=True)
    if open_page:
        import webbrowser

        webbrowser.open(link)
    run(app, bound)
