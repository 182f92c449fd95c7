"""``awatt score``: measure a detector on the user's own labelled file."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from awatt.cli.options import (
    AsJson,
    AspectNames,
    AspectsColumn,
    ExamplesFile,
    ExamplesTextColumn,
    InputFormat,
    LearnFrom,
    Mode,
    ModelName,
    TextColumn,
    Thresholds,
    bad_rows_left_out,
    check_columns,
    check_stdin,
    say,
)


def score(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Labelled sentences, with the columns text and aspects; - is stdin."),
    ],
    examples: ExamplesFile = None,
    aspects: AspectNames = None,
    model: ModelName = None,
    threshold: Thresholds = None,
    mode: Mode = None,
    learn_from: LearnFrom = None,
    text_column: TextColumn = "text",
    aspects_column: AspectsColumn = "aspects",
    examples_text_column: ExamplesTextColumn = None,
    input_format: InputFormat = None,
    as_json: AsJson = False,
) -> None:
    """Measure precision, recall and F1 on a labelled file. Prints them per aspect, with 95 % intervals.

    FILE should be a random part of the reviews, off-topic sentences included. Sentences that are also examples are left
    out. The detector learns from the examples alone; 'awatt detect' also looks at its file. To measure the same
    detector, give that file with --learn-from.
    """
    from awatt.detector.opening import open_detector
    from awatt.detector.quality import measure_file

    check_stdin({"FILE": source, "--examples": examples, "--learn-from": learn_from})
    check_columns(context, examples_text_column={"--examples FILE": examples})
    columns = (examples_text_column or text_column, aspects_column, "--examples-text-column")
    detector = open_detector(examples, model, aspects, threshold, mode, *columns, learn_from, text_column, say=say)
    with bad_rows_left_out() as on_error:
        quality = measure_file(detector, source, text_column, aspects_column, input_format, on_error)
        typer.echo(json.dumps(dataclasses.asdict(quality), ensure_ascii=False, indent=1) if as_json else str(quality))
