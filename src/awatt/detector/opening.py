"""Creates the detector that ``--examples`` and ``--model`` describe."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from awatt.aspect_model.file import FEWEST_REVIEWS
from awatt.detector.checks import check_teachable
from awatt.detector.detector import AspectDetector
from awatt.detector.examples import Examples
from awatt.detector.models import NAMES, model_folder
from awatt.detector.reviews import read_sample
from awatt.detector.thresholds import change_thresholds, parse_thresholds
from awatt.errors import AwattError, DataError, plural
from awatt.files import parse_json
from awatt.folders import DETECTOR, KINDS, RUN, open_folder
from awatt.records.formats import short_repr

Say = Callable[[str], None]


def open_detector(
    examples: Path | None,
    model: str | None,
    aspects: str | None = None,
    threshold: Sequence[str] | None = None,
    mode: str | None = None,
    text_column: str = "text",
    aspects_column: str = "aspects",
    text_option: str = "--text-column",
    learn_from: str | None = None,
    reviews_column: str = "text",
    split: bool = False,
    say: Say = lambda line: None,
) -> AspectDetector:
    """Load the saved detector in ``model``, or learn from ``examples`` with ``model`` (by default "fast").

    ``aspects`` are comma-separated names of aspects that need no examples. ``text_option`` is the option for the
    examples' text column, named in messages. ``learn_from`` is a file of unlabelled reviews to look at as well: their
    text is in ``reviews_column``, and ``split`` makes sentences of them. ``say`` gets what the user should know of it.
    """
    names = [] if aspects is None else parse_names(aspects)
    learns = examples is not None or bool(names)
    if not learns and model is None:
        given = "--examples FILE (sentences with their aspects), --aspects NAMES (battery,screen)"
        raise AwattError(f"Give {given}, or --model FOLDER (a saved detector).")
    kind = None if model is None else open_folder(model_folder(model)).kind
    if kind is not None and kind != DETECTOR and not learns:
        found = f"{model} is {'a model of the package' if model in NAMES else KINDS[kind][0]}"
        needed = "--examples FILE" if kind == RUN else "--examples FILE or --aspects NAMES"
        raise AwattError(f"{found}, which has no aspects yet. Add {needed}.")
    if kind == DETECTOR and learns:
        option = "--aspects" if examples is None else "--examples"
        raise AwattError(f"{model} is a saved detector, which already has its examples. Leave out {option} or --model.")
    if kind == DETECTOR:
        detector, read = AspectDetector.from_pretrained(str(model)), None
    else:
        read = Examples.from_pairs((), names)
        if examples is not None:
            with other_file_errors(text_option):
                known = Examples.read(str(examples), text_column, aspects_column)
            read = Examples.from_pairs(known.pairs(), [*known.aspects, *names])
        detector = AspectDetector(model=model)
        check_teachable(detector.loaded_model, model, read.validated())
    reviews = None if learn_from is None else _read_reviews(detector, learn_from, reviews_column, split, say)
    if read is not None:
        detector.learn(read, reviews)
    elif reviews is not None:
        detector.use_reviews(reviews)
    if threshold:
        wanted = change_thresholds(detector.threshold, parse_thresholds(threshold), detector.aspects)
        detector.set_params(threshold=wanted)
    if mode is not None:
        detector.set_params(mode=mode)
    detector.thresholds()  # raises for invalid thresholds now, not at the first row
    return detector


def parse_names(given: str) -> list[str]:
    """The names in a row of CSV, where quotes keep a comma in a name, or in a JSON list."""
    try:
        if given.lstrip().startswith("["):
            names = parse_json(given)
        else:
            names = next(csv.reader([given], skipinitialspace=True, strict=True), [])
        found = [name.strip() for name in names if name.strip()]
    except (csv.Error, ValueError, AttributeError, RecursionError):  # a broken quote or list, or what is not text
        found = []
    if not found:
        example = """battery,screen or '"waiting time, queue",price'"""
        raise AwattError(f"--aspects is {short_repr(given)}, but names with commas between them are needed: {example}.")
    return found


def _read_reviews(detector: AspectDetector, path: str, text_column: str, split: bool, say: Say) -> list[str]:
    if not detector.loaded_model.learns_from_reviews:
        raise AwattError("--learn-from does not work with a run of 'awatt train', which learns from examples alone.")
    faults: list[DataError] = []
    with other_file_errors("--text-column"):
        found = read_sample(path, text_column, split, faults.append)
    if faults:
        say(f"nothing is learned from {plural(len(faults), 'row')} that cannot be read. The first: {faults[0]}")
    if not found:
        raise AwattError(f"{path} has no sentences to learn from. Choose another file after --learn-from.")
    if len(found) < FEWEST_REVIEWS:
        has = f"{path} has only {plural(len(found), 'different sentence')}"
        say(f"{has}, but at least {FEWEST_REVIEWS} are needed: nothing is learned from it. Choose a larger file.")
    return found


@contextmanager
def other_file_errors(text_option: str) -> Iterator[None]:
    """Errors of a file other than FILE: replace the advice to use options that mean FILE."""
    try:
        yield
    except DataError as error:
        said = str(error).replace("--text-column", text_option)
        said = said.replace("Add --format ", "Save it as a file that ends in .")
        raise AwattError(said) from error.__cause__
