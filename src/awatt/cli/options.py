"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from awatt.errors import DataError
    from awatt.records.source import OnError

FORMATS = "jsonl, csv, tsv, parquet or txt, optionally with .gz"
MAX_LISTED = 20  # unreadable rows; further ones are only counted
OUT_FORMATS = "jsonl, csv, tsv or parquet, optionally with .gz; or excel, a CSV that Excel opens correctly"

ExamplesFile = Annotated[
    Path | None,
    typer.Option(
        "--examples",
        metavar="FILE",
        help="Example sentences: JSONL, CSV, TSV or Parquet with a text and an aspects column, or JSON {aspect: "
        "[texts]}. [default: those of the saved detector in --model]",
    ),
]
AspectNames = Annotated[
    str | None,
    typer.Option(
        "--aspects",
        metavar="NAMES",
        help="Aspects by name alone, such as battery,screen, with quotes around a name that has a comma, or a JSON "
        "list; with --examples: more aspects. [default: those of the examples]",
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="fast|accurate|FOLDER",
        help="fast, or accurate (reads words in their context; slower); or the folder of a saved detector (needs no "
        "--examples), of a run of 'awatt train' or of a model of 'awatt train-detector'. [default: fast]",
    ),
]
ModelToFit = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="fast|accurate|FOLDER",
        help="fast, or accurate (reads words in their context; slower); or the folder of a run of 'awatt train' or of "
        "a model of 'awatt train-detector'.",
    ),
]
Thresholds = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        metavar="X",
        help="What to aim for: balanced (best expected F1; auto is the same), precise (expected precision of 90 %) or "
        "thorough (expected recall of 90 %); or a number from 0 to 1; or ASPECT=X, repeatedly. "
        "[default: balanced, or as saved in --model]",
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="How to decide: auto (the model's own rule), acceptance (each aspect on its own; may find none) or paper "
        "(relative to the other aspects). [default: auto, or as saved in --model]",
    ),
]
TextColumn = Annotated[str, typer.Option("--text-column", metavar="NAME", help="Column with the text.")]
ExamplesTextColumn = Annotated[
    str | None,
    typer.Option(
        "--examples-text-column",
        metavar="NAME",
        help="Column with the text in the file of --examples. [default: that of --text-column]",
    ),
]
LearnFrom = Annotated[
    str | None,
    typer.Option(
        "--learn-from",
        metavar="REVIEWS",
        help="A file of unlabelled reviews to look at as well, as 'awatt detect' does with its FILE: the detector is "
        "then the same as there. [default: none, it learns from the examples alone]",
    ),
]
AspectsColumn = Annotated[
    str, typer.Option("--aspects-column", metavar="NAME", help="Column with the aspects in the file of --examples.")
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine", metavar="ENGINE", help="local (this machine, without Ray), or ray (many cores or machines)."
    ),
]
Address = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="Cluster of --engine ray: local (start one on this machine), auto (the running one), or HOST:PORT.",
    ),
]
SplitReviews = Annotated[
    bool, typer.Option("--reviews", help="The text, or each row, is a whole review: split it into sentences.")
]
ReviewsFile = Annotated[
    str,
    typer.Argument(metavar="FILE", help="Reviews: JSONL, CSV, TSV, Parquet or plain text, optionally .gz; - is stdin."),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help=f"Format of FILE: {FORMATS}. [default: from its suffix; jsonl for stdin]"
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Data = Annotated[Path, typer.Option("--data", metavar="FOLDER", help="Dataset folder, with train, val and test files.")]
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", help="Device for torch: auto (the fastest available), cpu, cuda or mps."
    ),
]
Threads = Annotated[
    int, typer.Option("--threads", min=1, help="CPU threads. Only transformer encoders benefit from more than one.")
]


def is_ray(engine: str, address: str, workers: int | None = None) -> bool:
    """Whether the engine is Ray. Raise if it is not and an option is given that only Ray uses."""
    from awatt.errors import AwattError

    if engine not in ("local", "ray"):
        raise AwattError(f"--engine is '{engine}', but local or ray is needed.")
    for option, given in (("--workers", workers is not None), ("--address", address != "local")):
        if given and engine != "ray":
            other = ", or give --jobs instead" if option == "--workers" else f", or leave out {option}"
            raise AwattError(f"{option} needs --engine ray. Add it{other}.")
    return engine == "ray"


def check_stdin(inputs: Mapping[str, object]) -> None:
    """Raise if two of these inputs are stdin."""
    from awatt.errors import AwattError
    from awatt.records.formats import STANDARD_STREAM

    named = [name for name, given in inputs.items() if str(given) == STANDARD_STREAM]
    if len(named) > 1:
        both = " and ".join(named[:2])
        raise AwattError(f"{both} are both stdin, which can be read once. Name a file for one of them.")


def check_columns(context: typer.Context, **files: Mapping[str, object]) -> None:
    """Raise if an option names a column of files of which none is given. ``files`` by the parameter of the option."""
    from awatt.errors import AwattError

    for parameter, inputs in files.items():
        source = context.get_parameter_source(parameter)
        if source is not None and source.name == "COMMANDLINE" and all(given is None for given in inputs.values()):
            option = f"--{parameter.replace('_', '-')}"
            raise AwattError(f"{option} needs {' or '.join(inputs)}. Add it, or leave out {option}.")


def say(line: str) -> None:
    """Print one line on stderr, whatever line breaks a file name or a cell in it contains."""
    typer.echo(f"awatt: {' '.join(line.splitlines())}", err=True)


def say_no_rows(source: str) -> None:
    """Say on stderr why nothing is printed."""
    say(f"{'stdin' if source == '-' else source} has no rows, so there is nothing to suggest.")


def say_more_rows(count: int) -> None:
    """Say on stderr how many unreadable rows were not listed, if any."""
    from awatt.errors import plural

    if count > 0:
        say(f"and {plural(count, 'more row')} that cannot be read")


@contextmanager
def bad_rows_left_out() -> Iterator[OnError]:
    """Within, rows that cannot be read are listed on stderr and left out; if there were any, exit with 3 at the end."""
    count = 0

    def leave_out(error: DataError) -> None:
        nonlocal count
        count += 1
        if count <= MAX_LISTED:
            say(str(error))

    try:
        yield leave_out
    finally:
        say_more_rows(count - MAX_LISTED)
    if count:
        raise typer.Exit(3)
