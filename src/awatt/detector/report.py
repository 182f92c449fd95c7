"""Expected quality of a detector, and how well it finds the aspects of examples that it did not learn from."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations, compress
from typing import TYPE_CHECKING

import numpy as np

from awatt.arrays import Bools, log_odds
from awatt.aspect_model.estimates import Estimate
from awatt.aspect_model.file import FEWEST_REVIEWS
from awatt.aspect_model.learner import FOLDS, LearnedAspects, OnPart
from awatt.aspect_model.model import AspectModel
from awatt.data.episode import Prediction
from awatt.detector.examples import Examples
from awatt.detector.html import report_html
from awatt.detector.thresholds import Floats, f1, without_nan
from awatt.errors import AwattError, plural
from awatt.records.formats import short_repr

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

MAX_LEAVE_ONE_OUT = 200  # up to this many examples, each is left out on its own
GROUPS = 20  # above that, this many groups are left out in turn: seconds instead of minutes
FEW = 3  # an aspect with fewer examples is called weak
MIN_CONFUSED = 2  # two aspects mixed up in at least this many examples are reported as confusable
FAR_LIKELIER = 3.0  # log-odds: from there on most of the listed examples are mislabelled ones (results/LOG.md)
SUREST = 1e-4  # probability: those below are not told apart
RESAMPLES = 1000
UNKNOWN = "The quality cannot be estimated yet. "
NO_LABELS = "Label some thirty randomly chosen sentences of your reviews, including off-topic ones."
NO_REVIEWS = (
    "That takes your reviews, too, and some thirty labelled sentences of them, "
    "chosen at random, off-topic ones included."
)


@dataclass(frozen=True)
class Expectation:
    """A number that is to be expected on the file, and the interval that holds it in 90 % of the cases."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AspectReport:
    """How well an aspect is found in left-out examples, and what to expect of it on the file."""

    name: str
    examples: int
    recall: float | None  # share of its examples in which it is found; None with fewer than two, as the next two
    precision: float | None  # share of the examples in which it is found that are its own
    f1: float | None
    expected_precision: Expectation | None = None  # None where it cannot be estimated
    expected_recall: Expectation | None = None
    expected_f1: Expectation | None = None
    known: bool = True  # False without an example and with a name that the model cannot read: it is never found


@dataclass(frozen=True)
class Confusion:
    """Two aspects, and in how many examples of only one of them the other one is found."""

    aspects: tuple[str, str]
    mixed_up: int
    examples: int


@dataclass(frozen=True)
class Suspect:
    """An example that looks mislabelled to a detector that learned from the others."""

    text: str
    aspects: tuple[str, ...]
    looks_like: tuple[str, ...]
    scores: dict[str, float]


@dataclass(frozen=True)
class Report:
    """Each example predicted by a detector that did not learn from it, and what to expect on the file."""

    aspects: list[AspectReport]
    confusions: list[Confusion]
    suspects: list[Suspect]
    f1: float | None  # None if no aspect has two examples
    f1_interval: tuple[float, float]  # 95 %, bootstrapped over examples; (0, 1) if F1 is None
    n_examples: int
    left_out: int  # number of examples left out at a time
    expected_f1: Expectation | None = None  # mean over the aspects; None where it cannot be estimated yet
    n_reviews: int | None = 0  # sentences of the file that were used; None if the model cannot tell what to expect

    def expectations(self) -> list[str]:
        """What to expect on the file, in sentences."""
        (low, high), expected = self.f1_interval, self.expected_f1
        lines = [] if self.n_reviews is None else [UNKNOWN + (NO_LABELS if self.n_reviews else NO_REVIEWS)]
        if expected is not None:
            where = "sentences like those labelled"
            if self.n_reviews:
                were = "was" if self.n_reviews == 1 else "were"
                where = f"your reviews, of which {plural(self.n_reviews, 'sentence')} {were} looked at"
            numbers = f"{expected.value:.2f} ({expected.low:.2f} to {expected.high:.2f})"
            lines = [f"Expect an F1 of about {numbers} on {where}."]
        if (low, high) != (0.0, 1.0):
            groups = "one at a time" if self.left_out == 1 else f"{self.left_out} at a time"
            counted = f"{plural(self.n_examples, 'example')}, left out {groups}"
            lines.append(f"On the examples themselves F1 is {_two(self.f1)} ({low:.2f} to {high:.2f}; {counted}).")
        return lines

    def __str__(self) -> str:
        heads, rows = self.table()
        lines = [[*heads, ""], *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = []
        for name, *numbers, note in lines:
            cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
            text.append("  ".join([name.ljust(widths[0]), *cells, note]).rstrip())
        text += ["", *self.expectations()]
        for title, found in self.findings():
            text += ["", title, *(f"  {line}" for line in found)]
        return "\n".join(text)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The names of the columns, and a row per aspect with a note at its end."""
        rows = []
        for aspect in self.aspects:
            note = "weak: 1 example, which cannot be checked; add at least 4" if aspect.examples == 1 else ""
            if 1 < aspect.examples < FEW:
                note = f"weak: {aspect.examples} examples; 5 or more are better"
            if not aspect.examples:
                note = (
                    "found by its name alone; add examples"
                    if aspect.known
                    else "never found by its name; add an example"
                )
            numbers = [_percent(aspect.recall), _percent(aspect.precision), _two(aspect.f1)]
            rows.append([aspect.name, str(aspect.examples), *numbers, note])
        return ["aspect", "examples", "found", "right", "F1"], rows

    def findings(self) -> list[tuple[str, list[str]]]:
        """What looks wrong: a title and its lines, for each kind of finding that there is."""
        confused = [
            f"{' and '.join(pair.aspects)}: mixed up in {pair.mixed_up} of {pair.examples} examples"
            for pair in self.confusions
        ]
        suspect = [
            f"{short_repr(s.text)}: labelled {', '.join(s.aspects) or 'none'}, looks like {', '.join(s.looks_like)}"
            for s in self.suspects
        ]
        named = [("Confusable aspects:", confused), ("Examples that look mislabelled, clearest first:", suspect)]
        return [(title, lines) for title, lines in named if lines]

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return report_html(self)


def make_report(detector: AspectDetector, on_part: OnPart = lambda done, total: None) -> Report:
    """Predict every example with a detector that learned from the others, and estimate what to expect on the file."""
    examples, model = detector.examples, detector.loaded_model
    count = len(examples.texts)
    cut = without_nan(detector.thresholds())
    quality = None
    if isinstance(model, AspectModel) and detector.mode != "paper":
        groups = max(1, min(count, FOLDS))
        scores = _left_out_scores(detector, model, on_part)
        found = scores >= cut
        if detector._known.any():
            quality = model.expected_quality(detector.fitted_, cut[detector._known])
    else:
        if count < 2:
            needed = "but a report leaves one out and needs at least 2. Add examples."
            raise AwattError(f"found {plural(count, 'example')}, {needed}")
        groups = count if count <= MAX_LEAVE_ONE_OUT else GROUPS
        scores, found = _left_out_predictions(detector, examples, groups, on_part)
    checkable = examples.labels & (examples.counts >= 2)  # leaving out an only example leaves nothing to learn from
    checked = np.asarray(~(examples.labels & ~checkable).any(1))
    truth, found = examples.labels[checked], found[checked]
    low, high = _interval(truth, found)
    aspects = [
        replace(_aspect_report(examples, truth, found, column), known=bool(known))
        for column, known in enumerate(detector._known)
    ]
    if quality is not None:
        columns = compress(range(len(aspects)), detector._known)
        for column, expected in zip(columns, quality.aspects, strict=True):
            aspects[column] = replace(
                aspects[column],
                expected_precision=_expectation(expected.precision),
                expected_recall=_expectation(expected.recall),
                expected_f1=_expectation(expected.f1),
            )
    return Report(
        aspects,
        _confusions(examples.aspects, truth, found),
        _suspects(examples.take(checked), scores[checked], cut),
        f1(truth, found) if truth.any() else None,
        (low, high),
        count,
        -(-count // groups),
        None if quality is None else _expectation(quality.macro_f1),
        _count_reviews(detector),
    )


def _count_reviews(detector: AspectDetector) -> int | None:
    learned, reviews = detector.fitted_, detector.reviews
    if not isinstance(learned, LearnedAspects) or detector.mode == "paper":
        return None
    used = reviews is not None and len(reviews.lengths) >= FEWEST_REVIEWS
    return round(float(learned.known_weights.sum())) if used else 0


def _expectation(estimate: Estimate) -> Expectation | None:
    if not estimate.known:
        return None
    return Expectation(*(round(value, 4) for value in estimate))


def _left_out_scores(detector: AspectDetector, model: AspectModel, on_part: OnPart) -> Floats:
    """Of each example by what the others teach, with the detector's own calibration. (n_examples, n_aspects)"""
    examples, known = detector.examples, detector._known
    scores = np.zeros(examples.labels.shape)
    if len(examples.texts) and known.any():
        tokens, names = model.tokenize(examples.texts), list(compress(examples.aspects, known))
        scores[:, known] = model.left_out_scores(
            detector.fitted_, tokens, examples.labels[:, known], names, detector.reviews, on_part
        )
    return scores


def _left_out_predictions(detector: AspectDetector, examples: Examples, groups: int, on_part: OnPart) -> Prediction:
    """Predict each example from the other groups. (n_examples, n_aspects)"""
    scores, accepted = np.zeros(examples.labels.shape), np.zeros(examples.labels.shape, dtype=bool)
    group_of = np.arange(len(examples.texts)) % groups
    for group in range(groups):
        on_part(group, groups)
        out = group_of == group
        others = copy(detector).learn(examples.take(~out))
        scores[out], accepted[out] = others.predictions(examples.take(out).texts)
    return Prediction(scores, accepted)


def _aspect_report(examples: Examples, truth: Bools, found: Bools, column: int) -> AspectReport:
    name, count = examples.aspects[column], int(examples.counts[column])
    n_true, n_found = int(truth[:, column].sum()), int(found[:, column].sum())
    if not n_true:
        return AspectReport(name, count, None, None, None)
    right = int((truth[:, column] & found[:, column]).sum())
    quality = f1(truth[:, [column]], found[:, [column]])
    return AspectReport(name, count, right / n_true, right / max(1, n_found), quality)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _two(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def _confusions(aspects: tuple[str, ...], truth: Bools, found: Bools) -> list[Confusion]:
    wrong = (truth.T.astype(np.int64) @ (found & ~truth)).tolist()  # (aspect, wrongly found aspect) counts
    alone = (truth.T.astype(np.int64) @ ~truth).tolist()
    pairs = [
        Confusion((aspects[one], aspects[two]), wrong[one][two] + wrong[two][one], alone[one][two] + alone[two][one])
        for one, two in combinations(range(len(aspects)), 2)
    ]
    named = (pair for pair in pairs if pair.mixed_up >= MIN_CONFUSED)
    return sorted(named, key=lambda pair: -pair.mixed_up / pair.examples)


def _suspects(examples: Examples, scores: Floats, cut: Floats) -> list[Suspect]:
    """Examples in which another aspect is found and is far more likely than any of their own; clearest first.

    An example in which nothing is found is not suspect: it merely differs from the other examples.
    """
    other = np.where(examples.labels, 0.0, scores).max(1)
    own = np.where(examples.labels.any(1), np.where(examples.labels, scores, 0.0).max(1), 1 - other)
    clear = log_odds(other, SUREST) - log_odds(own, SUREST)
    found = scores >= cut
    wrong = (found & ~examples.labels).any(1) & ~(found & examples.labels).any(1) & (clear > FAR_LIKELIER)
    pairs = examples.pairs()
    return [
        Suspect(
            pairs[number][0],
            pairs[number][1],
            tuple(np.array(examples.aspects)[found[number]].tolist()),
            dict(zip(examples.aspects, scores[number].round(4).tolist(), strict=True)),
        )
        for number in np.argsort(-clear, kind="stable").tolist()
        if wrong[number]
    ]


def _interval(truth: Bools, found: Bools) -> tuple[float, float]:
    """The 95 % bootstrap interval of F1 over examples; everything is possible where F1 is not known."""
    if not truth.any():
        return 0.0, 1.0
    picks = np.random.default_rng(0).integers(len(truth), size=(RESAMPLES, len(truth)))
    right, wrong = (truth & found).sum(1)[picks].sum(1), (truth != found).sum(1)[picks].sum(1)
    values = 2 * right / np.maximum(2 * right + wrong, 1)
    low, high = np.quantile(np.where(right + wrong, values, 1.0), [0.025, 0.975])
    return float(low), float(high)
