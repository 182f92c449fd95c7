"""``awatt explain``: why an aspect was found."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from itertools import compress
from typing import TYPE_CHECKING, Annotated

import typer

from awatt.cli.options import (
    AsJson,
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

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector
    from awatt.detector.results import Detection, Review


def explain(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A sentence or a whole review; - is stdin.")],
    examples: ExamplesFile = None,
    aspects: AspectNames = None,
    model: ModelName = None,
    threshold: Thresholds = None,
    mode: Mode = None,
    learn_from: LearnFrom = None,
    text_column: TextColumn = "text",
    aspects_column: AspectsColumn = "aspects",
    examples_text_column: ExamplesTextColumn = None,
    reviews: SplitReviews = False,
    as_json: AsJson = False,
) -> None:
    """Show the score of every aspect and its deciding words.

    With --model FOLDER (a saved detector) they are as in a row of 'awatt detect' with this text. With --examples or
    --aspects the detector learns from these alone, while 'awatt detect' also looks at its file: to get the same
    scores and thresholds, give that file with --learn-from.
    """
    from awatt.detector.opening import open_detector
    from awatt.detector.results import Review
    from awatt.detector.words import split_sentences

    check_stdin({"TEXT": text, "--examples": examples, "--learn-from": learn_from})
    of_examples = {"--examples FILE": examples}
    of_texts = {**of_examples, "--learn-from REVIEWS": learn_from}
    check_columns(context, text_column=of_texts, aspects_column=of_examples, examples_text_column=of_examples)
    columns = (examples_text_column or text_column, aspects_column, "--examples-text-column")
    detector = open_detector(examples, model, aspects, threshold, mode, *columns, learn_from, text_column, reviews, say)
    given = _read_stdin() if text == "-" else text
    review = detector.detect_review(given) if reviews else Review(given, [detector.detect(given)])
    if not reviews and (count := sum(1 for _ in split_sentences(given))) > 1:
        say(f"{count} sentences, read as one. Add --reviews to split them.")
    if as_json:
        typer.echo(json.dumps(_as_dict(review), ensure_ascii=False, indent=1))
        return
    typer.echo(str(review))
    typer.echo()
    _print_scores(detector, review)


def _read_stdin() -> str:
    from awatt.errors import AwattError

    try:
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise AwattError(f"stdin is not UTF-8 (byte {error.start + 1}). Convert it first.") from None


def _print_scores(detector: AspectDetector, review: Review) -> None:
    from awatt.cli.drawing import bar

    width = max(map(len, review.scores))
    cuts = dict(zip(detector.aspects, detector.thresholds().tolist(), strict=True))
    for aspect, score in sorted(review.scores.items(), key=lambda item: -item[1]):
        words = ", ".join(f"{word.text} {word.weight:.2f}" for word in review.words.get(aspect, []))
        compared = _compared(score, cuts[aspect], aspect in review.aspects)
        typer.echo(f"{aspect:<{width}}  {bar(score, 16)} {compared}  {words}".rstrip())
    without = ~(detector.counts_ > 0)
    if never := list(compress(detector.aspects, without & ~detector._known)):
        say(f"no example of {', '.join(never)}: never found. Add some.")
    if named := list(compress(detector.aspects, without & detector._known)):
        say(f"no example of {', '.join(named)}: found by name alone. Add some.")
    weak = [aspect for aspect, count in zip(detector.aspects, detector.counts_, strict=True) if count == 1]
    if weak:
        each = "each " if len(weak) > 1 else ""
        say(f"only 1 example {each}of {', '.join(weak)}, which is weak. Aim for about 5.")


def _compared(score: float, cut: float, is_found: bool) -> str:
    """With two decimals, or with more where rounding would move the score across the threshold."""
    sign = "≥" if is_found else "<"
    if math.isnan(cut):
        return f"{score:.2f} {sign} its own"  # the model decides per sentence
    digits = next((n for n in (2, 3) if (round(score, n) >= round(cut, n)) == is_found), 4)
    return f"{score:.{digits}f} {sign} {cut:.{digits}f}"


def _as_dict(review: Review) -> dict[str, object]:
    def found(part: Detection | Review) -> dict[str, object]:
        words = {aspect: [dataclasses.asdict(word) for word in each] for aspect, each in part.words.items()}
        return {"text": part.text, "aspects": part.aspects, "scores": part.scores, "words": words}

    sentences = [{**found(part), "start": part.start, "end": part.end} for part in review.sentences]
    return {**found(review), "sentences": sentences}
