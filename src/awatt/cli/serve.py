"""``awatt serve``: the workbench and its API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PORT = 8377


def serve(
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Project file, created if missing. [default: awatt/project.sqlite in your data folder]",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any other than loopback needs AWATT_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Further host name to accept; may be repeated. [default: only that of --host]"
        ),
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
    """Start the workbench: a local page to define aspects by example, correct and export results; also an API."""
    from awatt.errors import require

    for package in ("fastapi", "uvicorn"):
        require(package, "serve")
    from awatt.server.run import make_server, run, threshold_note

    app, bound, link, path = make_server(host, port, project, allow_host or [], model)
    typer.echo(f"Open this link (it works once): {link}", err=True)
    typer.echo(f"API: {link.partition('?')[0]}v1/ with the header Authorization: Bearer {app.access.token}", err=True)
    typer.echo(f"Project: {path}. Stop with Ctrl-C.", err=True)
    if note := threshold_note(model):
        typer.echo(f"awatt: {note}", err=True)
    if open_page:
        import webbrowser

        webbrowser.open(link)
    run(app, bound)
