"""``awatt report``: how good the examples are, or with ``--html`` everything that was found in a file, to share."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from awatt.cli.options import (
    FORMATS,
    AsJson,
    AspectNames,
    AspectsColumn,
    ExamplesFile,
    LearnFrom,
    Mode,
    ModelName,
    SplitReviews,
    TextColumn,
    Thresholds,
    bad_rows_left_out,
    check_columns,
    check_stdin,
    say,
)

PAGE_SUFFIXES = (".html", ".htm")


def report(
    context: typer.Context,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="With --html: the reviews. JSONL, CSV, TSV, Parquet or plain text, optionally .gz.",
            show_default=False,
        ),
    ] = None,
    examples: ExamplesFile = None,
    aspects: AspectNames = None,
    model: ModelName = None,
    threshold: Thresholds = None,
    mode: Mode = None,
    learn_from: LearnFrom = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="OUT",
            help="Write a report about FILE as one HTML page: shares, comparisons by column, typical sentences. "
            "[default: none, only the examples are checked]",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="LABELLED",
            help="With --html: a random part of the sentences with their aspects, to measure the quality on, with the "
            "same text column as FILE. [default: not measured]",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the page. [default: the name of FILE]")
    ] = None,
    reviews: SplitReviews = False,
    text_column: TextColumn = "text",
    aspects_column: AspectsColumn = "aspects",
    examples_text_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column with the text in the file of --examples. [default: text; without --html as --text-column]",
        ),
    ] = None,
    input_format: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help=f"Format of FILE: {FORMATS}. [default: from its suffix]"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the page if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the examples by predicting each from others.

    Prints the expected F1, confusable aspects and examples that look mislabelled. A fifth of the examples is left out
    at a time (with --mode paper or a run of 'awatt train' a single one, or a twentieth of more than 200). The detector
    learns from the examples and, if there is one, the file of --learn-from; with --html, and in 'awatt detect' and
    'awatt suggest', from the examples and FILE.

    With --html, detect in FILE and write a page to share: how often each aspect is mentioned, by every column, over
    time, with typical sentences and how good the detection is. Print it to get a PDF.
    """
    from awatt.detector.opening import open_detector
    from awatt.errors import AwattError

    if (source is None) != (html is None):
        raise AwattError("a page needs both: awatt report FILE --html OUT. Without them, the examples are checked.")
    of_page = {"--labels": labels, "--title": title, "--reviews": reviews, "--format": input_format}
    for option, given in {**of_page, "--overwrite": overwrite}.items():
        if html is None and given:
            raise AwattError(f"{option} needs --html OUT.")
    if html is not None and learn_from is not None:
        raise AwattError("--learn-from is for a report without --html: a page is about FILE, and learns from it.")
    check_stdin({"FILE": source, "--examples": examples, "--labels": labels, "--learn-from": learn_from})
    of_examples = {"--examples FILE": examples}
    check_columns(
        context,
        text_column={**of_examples, "FILE": source, "--learn-from REVIEWS": learn_from},
        aspects_column={**of_examples, "--labels LABELLED": labels},
        examples_text_column=of_examples,
    )
    if html is not None and html.suffix.lower() not in PAGE_SUFFIXES:
        raise AwattError(f"--html is '{html}', but the page is a file whose name ends in .html. Name such a file.")
    own_column = examples_text_column or ("text" if html else text_column)
    columns = (own_column, aspects_column, "--examples-text-column")
    detector = open_detector(examples, model, aspects, threshold, mode, *columns, learn_from, text_column, say=say)
    if source is None or html is None:
        with _bar() as on_part:
            made = detector.report(on_part)
        typer.echo(json.dumps(dataclasses.asdict(made), ensure_ascii=False, indent=1) if as_json else str(made))
        return
    from awatt.detector.bulk import check_apart
    from awatt.detector.report_page import report_file
    from awatt.files import write_text

    for read in (source, labels, None if examples is None else str(examples)):
        if read is not None:
            check_apart(str(html), read)
    if html.exists() and not overwrite:
        raise AwattError(f"{html} exists. Choose another file, or add --overwrite.")
    if not html.absolute().parent.is_dir():
        raise AwattError(f"{html}: there is no folder '{html.absolute().parent}'. Create it first.")
    learn = examples is not None or aspects is not None  # a saved detector stays as it is
    with bad_rows_left_out() as on_error:
        page = report_file(
            detector,
            source,
            title,
            labels,
            learn=learn,
            split=reviews,
            text_column=text_column,
            aspects_column=aspects_column,
            format=input_format,
            on_error=on_error,
        )
        try:
            write_text(html, page.html())
        except OSError as error:
            error.filename = html  # not the temporary file beside it
            raise
        if as_json:
            typer.echo(json.dumps(dataclasses.asdict(page), ensure_ascii=False, indent=1))
        else:
            typer.echo(f"{html}: {page.summary}", err=True)


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; seconds pass with hundreds of aspects."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:  # it would leave an empty line
        yield lambda done, total: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("leaving examples out", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
