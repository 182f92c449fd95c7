"""Options that several commands share, and the detector that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from awatt.errors import AwattError, DataError

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

ExamplesFile = Annotated[
    Path | None,
    typer.Option(
        "--examples",
        metavar="FILE",
        help="JSONL, CSV, TSV or Parquet with text and aspects; JSON {aspect: [texts]}.",
    ),
]
ModelFolder = Annotated[
    Path | None, typer.Option("--model", metavar="FOLDER", help="A saved detector, instead of --examples.")
]
Thresholds = Annotated[
    list[str] | None,
    typer.Option("--threshold", metavar="X", help="auto, a number from 0 to 1, or ASPECT=NUMBER, repeatedly."),
]
Mode = Annotated[str, typer.Option("--mode", help="acceptance (may find none) or paper (relative to the others).")]
TextColumn = Annotated[str, typer.Option("--text-column", help="Column that holds the text.")]
AspectsColumn = Annotated[str, typer.Option("--aspects-column", help="Column of the examples that holds the aspects.")]
Engine = Annotated[str, typer.Option("--engine", help="local, or ray: many files, many cores or machines.")]
Address = Annotated[str, typer.Option("--address", help="Ray cluster: local (this machine), auto, or HOST:PORT.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def open_detector(
    examples: Path | None,
    model: Path | None,
    threshold: list[str] | None = None,
    mode: str | None = None,
    text_column: str = "text",
    aspects_column: str = "aspects",
    text_option: str = "--text-column",
) -> AspectDetector:
    """The detector of ``--examples`` or ``--model``; ``text_option`` is what names the examples' text column."""
    from awatt.detector.detector import AspectDetector
    from awatt.detector.examples import Examples

    if (examples is None) == (model is None):
        found = "neither" if examples is None else "both"
        raise AwattError(f"found {found} of --examples and --model. Give one: --examples aspects.jsonl, say.")
    if model is not None:
        detector = AspectDetector.from_pretrained(model)
    else:
        assert examples is not None
        try:
            read = Examples.read(examples, text_column, aspects_column)
        except DataError as error:  # it may advise the option that names the column of most files
            raise AwattError(str(error).replace("--text-column", text_option)) from error.__cause__
        detector = AspectDetector()
        detector._learn(read.checked())
    if threshold:
        detector.set_params(threshold=parse_thresholds(threshold))
    if mode is not None:
        detector.set_params(mode=mode)
    detector.thresholds()  # says now, not after the first row, what is wrong with them
    return detector


def parse_thresholds(items: list[str]) -> str | float | dict[str, float]:
    """``["0.5"]`` -> 0.5, ``["auto"]`` -> "auto", ``["food=0.6", "price=0.3"]`` -> a dict."""
    if len(items) == 1 and "=" not in items[0]:
        needed = "auto, a number or ASPECT=NUMBER is needed"
        return items[0] if items[0] == "auto" else _number(items[0], items[0], needed)
    named = {}
    for item in items:
        aspect, equals, value = item.rpartition("=")
        if not equals:
            raise AwattError(f"--threshold is given {len(items)} times, then each needs ASPECT=NUMBER; found {item!r}.")
        named[aspect] = _number(value, item, "a number is needed after '='; an aspect that is not named has auto")
    return named


def _number(text: str, given: str, needed: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise AwattError(f"--threshold is {given!r}, but {needed}.") from None


def check_engine(engine: str) -> bool:
    """Whether it is Ray."""
    if engine not in ("local", "ray"):
        raise AwattError(f"--engine is '{engine}', but local or ray is needed.")
    return engine == "ray"
