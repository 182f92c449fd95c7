"""``awatt serve``: the workbench and its API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from awatt.cli.options import ModelToFit

PORT = 8377


def serve(
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Project file, created if missing; or a folder, whose projects the page lists. [default: the folder "
            "awatt in your data folder]",
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
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where users open the page, if a proxy with TLS is in front: https://reviews.example.org; needs "
            "AWATT_TOKEN. [default: none]",
        ),
    ] = None,
    model: ModelToFit = "fast",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Start the workbench, a local page, and its API. Define aspects by example, correct what is found, export it."""
    from awatt.errors import AwattError, require

    for package in ("fastapi", "uvicorn"):
        require(package, "serve")
    from awatt.detector.models import model_folder
    from awatt.folders import DETECTOR, open_folder
    from awatt.server.run import TOKEN_VARIABLE, make_server, run, threshold_note

    if open_folder(model_folder(model)).kind == DETECTOR:
        advice = "Give the model that it was made with, such as fast, and import its examples.jsonl on the page."
        raise AwattError(f"{model} is a saved detector, but --model takes a model without aspects here. {advice}")
    app, bound, link, path = make_server(host, port, project, allow_host or [], model, public_url)
    token = "$AWATT_TOKEN" if os.environ.get(TOKEN_VARIABLE) else app.access.token  # no secret of the user in a log
    typer.echo(f"Open this link (it works once, within an hour): {link}", err=True)
    typer.echo(f"API: {link.partition('?')[0]}v1/ with the header Authorization: Bearer {token}", err=True)
    address = ":".join(map(str, bound.getsockname()[:2]))
    typer.echo(f"Project: {path}. Listening on {address}. Stop with Ctrl-C.", err=True)
    if note := threshold_note(model):
        typer.echo(f"awatt: {note}", err=True)
    if open_page:
        import webbrowser

        webbrowser.open(link)
    run(app, bound)
