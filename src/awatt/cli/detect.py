"""``awatt detect``: find the aspects in every row of a file."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from awatt.cli.drawing import count_chart
from awatt.cli.options import (
    MAX_LISTED,
    OUT_FORMATS,
    Address,
    AspectNames,
    AspectsColumn,
    Engine,
    ExamplesFile,
    InputFormat,
    Mode,
    ModelName,
    ReviewsFile,
    SplitReviews,
    TextColumn,
    Thresholds,
    check_columns,
    check_stdin,
    is_ray,
    say,
    say_more_rows,
)
from awatt.errors import AwattError, plural

if TYPE_CHECKING:
    from awatt.detector.bulk import Summary
    from awatt.detector.comparison import Tally


def detect(
    context: typer.Context,
    source: ReviewsFile,
    examples: ExamplesFile = None,
    aspects: AspectNames = None,
    model: ModelName = None,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Output file; its suffix sets the format unless --out-format does. - is stdout.",
        ),
    ] = "-",
    text_column: TextColumn = "text",
    aspects_column: AspectsColumn = "aspects",
    examples_text_column: Annotated[
        str, typer.Option(metavar="NAME", help="Column with the text in the file of --examples.")
    ] = "text",
    threshold: Thresholds = None,
    mode: Mode = None,
    reviews: SplitReviews = False,
    words: Annotated[bool, typer.Option("--words", help="Add the deciding words and their offsets.")] = False,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="Prefix for the names of the new columns. [default: no prefix]")
    ] = "",
    input_format: InputFormat = None,
    out_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help=f"Format of --out: {OUT_FORMATS}. [default: from its suffix; jsonl for stdout]"
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Compare the shares of the aspects by a column such as stars; dates by month. Can be repeated. "
            "[default: no comparison]",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output file if it exists.")] = False,
    engine: Engine = "local",
    address: Address = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --engine ray: number of parallel tasks. [default: one per core]")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes that detect on this machine; the output is the same.")
    ] = 1,
    max_errors: Annotated[
        int, typer.Option(min=0, help="Unreadable rows to list; further ones are only counted.")
    ] = MAX_LISTED,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the summary as JSON: on stdout if --out is a file, otherwise on stderr."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress and no summary.")] = False,
) -> None:
    """Find the aspects in every row. Keeps the input's columns and adds the aspects found and every aspect's score.

    Rows that cannot be read are listed and skipped, and the exit code is 3. With --engine ray, FILE may be a pattern
    such as 'reviews/*.parquet', local or in an object store, and --out is a folder.
    """
    from awatt.detector.bulk import AlreadyCompleteError, BulkConfig, detect_file, estimate_rows
    from awatt.detector.opening import open_detector

    check_stdin({"FILE": source, "--examples": examples})
    of_examples = {"--examples FILE": examples}
    check_columns(context, aspects_column=of_examples, examples_text_column=of_examples)
    on_ray = is_ray(engine, address, workers)
    columns = (examples_text_column, aspects_column, "--examples-text-column")
    detector = open_detector(examples, model, aspects, threshold, mode, *columns)
    config = BulkConfig(text_column, input_format, out_format, reviews, words, prefix, tuple(by or ()))
    options: dict[str, Any] = {"overwrite": overwrite, "resume": resume, "max_errors": max_errors}
    options["also_read"] = () if examples is None else (str(examples),)
    options["learn_from_input"] = examples is not None or aspects is not None  # a saved detector stays as it is
    began = time.monotonic()
    show = not quiet and sys.stderr.isatty()
    try:
        with _Progress(estimate_rows(source, input_format) if show else None, show) as progress:
            options["on_batch"] = progress.update
            if on_ray:
                if by:
                    raise AwattError("--by does not work with --engine ray. Use the local engine, or awatt report.")
                if jobs > 1:
                    raise AwattError("--jobs is for this machine alone. With --engine ray give --workers.")
                from awatt.scale.detection import detect_files

                summary = detect_files(detector, source, out, config, address=address, workers=workers, **options)
            else:
                summary = detect_file(detector, source, out, config, jobs=jobs, **options)
    except AlreadyCompleteError as note:
        say(str(note))
        return
    seconds = time.monotonic() - began
    for fault in summary.faults:
        say(fault)
    say_more_rows(summary.n_faults - len(summary.faults))
    if as_json:
        typer.echo(json.dumps(_as_dict(summary, seconds), ensure_ascii=False), err=out == "-")
    elif not quiet:
        _print_summary(summary, seconds, "review" if reviews else "sentence")
    if summary.n_faults:
        raise typer.Exit(3)


def _as_dict(summary: Summary, seconds: float) -> dict[str, object]:
    return {
        "rows": summary.rows,
        "aspects": summary.aspects,
        "none": summary.none,
        "failed": summary.n_faults,
        "several_sentences": summary.several,
        **({"by": [dataclasses.asdict(each) for each in summary.tally.comparisons()]} if summary.tally else {}),
        "seconds": round(seconds, 3),
    }


def _print_summary(summary: Summary, seconds: float, unit: str) -> None:
    failed = f", {plural(summary.n_faults, 'row')} left out" if summary.n_faults else ""
    typer.echo(f"{plural(summary.rows, unit)} in {seconds:.1f} s{failed}", err=True)
    for line in count_chart(summary.aspects, summary.none, summary.rows):
        typer.echo(line, err=True)
    if summary.tally:
        _print_comparisons(summary.tally)
    for note in summary.notes:
        say(note)


def _print_comparisons(tally: Tally) -> None:
    made = tally.comparisons()
    for comparison in made:
        typer.echo(f"\n{comparison}", err=True)
    for name, found in tally.others().items():
        typer.echo(f"awatt: the column '{name}' has {found}, so it is not compared.", err=True)
    if made:
        typer.echo(
            "Share of the rows that mention each aspect, with 95 % intervals; what differs most first.", err=True
        )


class _Progress:
    """Shows rows done, speed and time left on stderr, if it is a terminal."""

    def __init__(self, total: int | None, show: bool) -> None:
        self.total, self.show, self.first = total, show, -1

    def __enter__(self) -> _Progress:
        if self.show:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar: Any = Progress(
                BarColumn(),
                TextColumn("{task.completed:,.0f} rows, {task.fields[rate]:,.0f}/s"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.task = self.bar.add_task("", total=self.total, rate=0.0)
            self.bar.start()
        return self

    def update(self, summary: Summary) -> None:
        """Show the progress after a batch."""
        if not self.show:
            return
        if self.first < 0:  # rows done before a resume do not count towards the speed
            self.first, self.began = summary.rows, time.monotonic()
        rate = (summary.rows - self.first) / max(time.monotonic() - self.began, 1e-3)
        total = None if self.total is None else max(self.total, summary.rows)
        self.bar.update(self.task, completed=summary.rows, total=total, rate=rate)

    def __exit__(self, *_: object) -> None:
        if self.show:
            self.bar.stop()
