"""``awatt suggest``: which sentences of a file to label next."""

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
    InputFormat,
    Mode,
    ModelName,
    ReviewsFile,
    SplitReviews,
    TextColumn,
    Thresholds,
    bad_rows_left_out,
    check_columns,
    check_stdin,
    say_no_rows,
)


def suggest(
    context: typer.Context,
    source: ReviewsFile,
    examples: ExamplesFile = None,
    aspects: AspectNames = None,
    model: ModelName = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Number of sentences to suggest.")] = 10,
    threshold: Thresholds = None,
    mode: Mode = None,
    text_column: TextColumn = "text",
    aspects_column: AspectsColumn = "aspects",
    examples_text_column: Annotated[
        str, typer.Option(metavar="NAME", help="Column with the text in the file of --examples.")
    ] = "text",
    reviews: SplitReviews = False,
    input_format: InputFormat = None,
    as_json: AsJson = False,
) -> None:
    """Print the sentences that are most useful to label next.

    They are those that the detector is least sure of, no two alike.

    Each is printed with the aspect in question and its score. Label them, add them to the examples, and repeat.
    """
    from awatt.detector.opening import open_detector
    from awatt.detector.suggest import suggest_from_file

    check_stdin({"FILE": source, "--examples": examples})
    of_examples = {"--examples FILE": examples}
    check_columns(context, aspects_column=of_examples, examples_text_column=of_examples)
    columns = (examples_text_column, aspects_column, "--examples-text-column")
    detector = open_detector(examples, model, aspects, threshold, mode, *columns)
    learn = examples is not None or aspects is not None  # a saved detector stays as it is
    with bad_rows_left_out() as on_error:
        found, texts = suggest_from_file(detector, source, count, text_column, input_format, reviews, learn, on_error)
        if not texts:
            say_no_rows(source)
        if as_json:
            typer.echo(json.dumps([dataclasses.asdict(each) for each in found], ensure_ascii=False, indent=1))
            return
        width = max((len(each.aspect) for each in found), default=0)
        for each in found:
            typer.echo(f"{each.aspect:<{width}}  {each.score:.2f}  {' '.join(each.text.split())}")
