"""``awatt save``: a detector as a folder that works offline and anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from awatt.cli.options import (
    AspectNames,
    AspectsColumn,
    ExamplesFile,
    Mode,
    ModelName,
    TextColumn,
    Thresholds,
)


def save(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write; use it with --model.")],
    examples: ExamplesFile = None,
    aspects: AspectNames = None,
    model: ModelName = None,
    threshold: Thresholds = None,
    mode: Mode = None,
    text_column: TextColumn = "text",
    aspects_column: AspectsColumn = "aspects",
    without_examples: Annotated[
        bool, typer.Option("--without-examples", help="Leave the example sentences out of the folder.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it exists.")] = False,
) -> None:
    """Save a detector as a folder. It holds the model, the aspects, the thresholds and the examples.

    It learns from the examples alone and stays as it is: with --model FOLDER, 'awatt detect' does not learn from its
    file.
    """
    from awatt.detector.opening import open_detector

    detector = open_detector(examples, model, aspects, threshold, mode, text_column, aspects_column)
    saved = detector.save_pretrained(folder, examples=not without_examples, overwrite=overwrite)
    typer.echo(f"awatt: saved. Use it with: awatt detect FILE --model {saved}", err=True)
