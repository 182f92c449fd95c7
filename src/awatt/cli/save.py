"""``awatt save``: a detector as a folder that works offline and anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from awatt.cli.options import (
    AspectNames,
    AspectsColumn,
    ExamplesFile,
    ExamplesTextColumn,
    LearnFrom,
    Mode,
    ModelName,
    SplitReviews,
    TextColumn,
    Thresholds,
    check_columns,
    check_stdin,
    say,
)


def save(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write; use it with --model.")],
    examples: ExamplesFile = None,
    aspects: AspectNames = None,
    model: ModelName = None,
    threshold: Thresholds = None,
    mode: Mode = None,
    learn_from: LearnFrom = None,
    reviews: SplitReviews = False,
    text_column: TextColumn = "text",
    aspects_column: AspectsColumn = "aspects",
    examples_text_column: ExamplesTextColumn = None,
    without_examples: Annotated[
        bool, typer.Option("--without-examples", help="Leave the example sentences out of the folder.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it exists.")] = False,
) -> None:
    """Save a detector as a folder. It holds the model, the aspects, the thresholds and the examples.

    It stays as it is: with --model FOLDER, 'awatt detect' does not learn from its file. Give a file of such reviews
    with --learn-from (and --reviews, if its rows are to be split), so that the saved detector knows them.
    """
    from awatt.detector.opening import open_detector
    from awatt.errors import AwattError

    check_stdin({"--examples": examples, "--learn-from": learn_from})
    of_examples = {"--examples FILE": examples}
    of_texts = {**of_examples, "--learn-from REVIEWS": learn_from}
    check_columns(context, text_column=of_texts, aspects_column=of_examples, examples_text_column=of_examples)
    if reviews and learn_from is None:
        raise AwattError("--reviews needs --learn-from REVIEWS.")
    columns = (examples_text_column or text_column, aspects_column, "--examples-text-column")
    detector = open_detector(examples, model, aspects, threshold, mode, *columns, learn_from, text_column, reviews, say)
    saved = detector.save_pretrained(folder, examples=not without_examples, overwrite=overwrite)
    say(f"saved. Use it with: awatt detect FILE --model {saved}")
