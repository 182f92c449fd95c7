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
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Override a training setting, such as tasks=200; may be repeated. [default: no overrides]",
    ),
]
Encoder = Annotated[
    str,
    typer.Option(
        "--encoder",
        metavar="none|student|FILE|FOLDER",
        help="Word vectors in context beside the static ones: none, student (that of the accurate model), a student's "
        "FILE.safetensors, or the FOLDER of any BERT-like encoder (the model then needs 'awatt[transformers]').",
    ),
]
Vectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        metavar="FOLDER",
        help="Static word vectors: a model2vec folder, such as potion-base-8M. [default: those of the package]",
    ),
]
Slim = Annotated[
    bool,
    typer.Option("--slim", help="Leave out what the package's fast model has: the static vectors and the tokenizer."),
]
Cores = Annotated[int, typer.Option("--threads", min=1, help="CPU threads.")]


def train_detector(
    data: Datasets,
    out: Out,
    encoder: Encoder = "none",
    vectors: Vectors = None,
    settings: Settings = None,
    slim: Slim = False,
    threads: Cores = 1,
) -> None:
    """Train the detector's own model. It learns on the train aspects and is calibrated on the validation aspects.

    Sentences of other kinds come from AWATT_SHARED/data.
    """
    from awatt.config import build, parse_overrides
    from awatt.errors import require
    from awatt.files import make_folder

    require("torch", "train").set_num_threads(threads)
    from rich.console import Console
    from rich.progress import Progress

    from awatt.aspect_model.train import train
    from awatt.aspect_model.train_networks import TrainDetectorConfig

    given = parse_overrides([f"training.{item}" for item in settings or []]).get("training", {})
    config = build(TrainDetectorConfig, given, "training")
    make_folder(out)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("learning", total=config.plain_tasks + config.tasks)
        model = train(data, config, lambda done: bar.update(task, completed=done), encoder, vectors)
    model.save(out, slim)
    typer.echo(str(out))
