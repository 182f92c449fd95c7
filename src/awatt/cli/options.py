"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FORMATS = "jsonl, csv, tsv, parquet or txt, also with .gz"

ExamplesFile = Annotated[
    Path | None,
    typer.Option(
        "--examples",
        metavar="FILE",
        help="JSONL, CSV, TSV or Parquet with text and aspects; JSON {aspect: [texts]}.",
    ),
]
AspectNames = Annotated[
    str | None,
    typer.Option(
        "--aspects",
        metavar="NAMES",
        help="Aspects by name alone, such as battery,screen; with --examples: more aspects.",
    ),
]
ModelFolder = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="FOLDER",
        help="A saved detector, which needs no --examples; or a run of 'awatt train' or a model of 'awatt "
        "train-detector', which learns from --examples. [default: the bundled model]",
    ),
]
Thresholds = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        metavar="X",
        help="What to aim for: balanced (best expected F1; auto means it), precise (expected precision of 90 %) or "
        "thorough (expected recall of 90 %); or a number from 0 to 1; or ASPECT=X, repeatedly. [default: balanced]",
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="auto (the model's own rule), acceptance (each aspect on its own: may find none) or paper (relative to "
        "the other aspects). [default: auto]",
    ),
]
TextColumn = Annotated[str, typer.Option("--text-column", metavar="NAME", help="Column that holds the text.")]
AspectsColumn = Annotated[
    str, typer.Option("--aspects-column", metavar="NAME", help="Column of the examples that holds the aspects.")
]
Engine = Annotated[
    str, typer.Option("--engine", metavar="ENGINE", help="local, or ray: many files, many cores or machines.")
]
Address = Annotated[
    str, typer.Option("--address", metavar="ADDRESS", help="Ray cluster: local (this machine), auto, or HOST:PORT.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Data = Annotated[
    Path, typer.Option("--data", metavar="FOLDER", help="A dataset's folder, with train, val and test files.")
]
Device = Annotated[str, typer.Option("--device", metavar="DEVICE", help="auto, cpu, cuda or mps.")]
Threads = Annotated[
    int, typer.Option("--threads", min=1, help="CPU threads. Only transformers gain from more than one.")
]


def is_ray(engine: str) -> bool:
    """Whether the engine is Ray."""
    from awatt.errors import AwattError

    if engine not in ("local", "ray"):
        raise AwattError(f"--engine is '{engine}', but local or ray is needed.")
    return engine == "ray"
