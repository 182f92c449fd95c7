"""``awatt train-detector``: train the detector's own model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Datasets = Annotated[
    Path,
    typer.Option("--data", metavar="FOLDER", help="Folder that 'awatt data build' wrote, with all three datasets."),
]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder for the model.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the training, such as tasks=200."),
]
Cores = Annotated[int, typer.Option("--threads", min=1, help="CPU threads.")]


def train_detector(data: Datasets, out: Out, settings: Settings = None, threads: Cores = 1) -> None:
    """Train the detector's own model on the train categories and calibrate it on the validation categories.

    The static vectors come from AWATT_SHARED/weights/potion-base-8M, sentences of other kinds from AWATT_SHARED/data.
    """
    from awatt.config import build, parse_overrides
    from awatt.errors import require

    require("torch", "train").set_num_threads(threads)
    from rich.console import Console
    from rich.progress import Progress

    from awatt.aspect_model.train import TrainDetectorConfig, train

    given = parse_overrides([f"training.{item}" for item in settings or []]).get("training", {})
    config = build(TrainDetectorConfig, given, "training")
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("learning", total=config.plain_tasks + config.tasks)
        model = train(data, config, lambda done: bar.update(task, completed=done))
    model.save(out)
    typer.echo(str(out))


def bundle(data: Datasets, out: Out, settings: Settings = None, threads: Cores = 1) -> None:
    """The old name of train-detector."""
    typer.echo("awatt: 'awatt bundle' is called 'awatt train-detector' now; the old name will go.", err=True)
    train_detector(data, out, settings, threads)
