"""``awatt bundle``: train the model that the package ships with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bundle(
    data: Annotated[Path, typer.Option(help="Folder that 'awatt data build' wrote, with all three datasets.")],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    set_items: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the training, such as tasks=200."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Cores to use.")] = 1,
) -> None:
    """Train the bundled model on the train categories and calibrate it on the validation categories.

    The static vectors come from AWATT_SHARED/weights/potion-base-8M.
    """
    from awatt.config import build, parse_overrides
    from awatt.errors import require

    require("torch", "train").set_num_threads(threads)
    from rich.console import Console
    from rich.progress import Progress

    from awatt.bundle import BundleConfig, train

    given = parse_overrides([f"bundle.{item}" for item in set_items or []]).get("bundle", {})
    config = build(BundleConfig, given, "bundle")
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("learning", total=config.tasks)
        matcher = train(data, config, lambda done, loss: bar.update(task, completed=done))
    matcher.save(out)
    typer.echo(str(out))
