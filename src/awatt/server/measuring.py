"""How good the detection is, measured: a random sample of the sentences that a person labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, takewhile

import numpy as np

from awatt.arrays import Bools
from awatt.detector.examples import normal_form
from awatt.detector.quality import CoursePoint, Quality, measure, random_order
from awatt.server.content import Content, Example
from awatt.server.responses import Documented
from awatt.server.workbench import Workbench, apply_thresholds, fit_detector

PORTION = 20  # sentences of the sample that are labelled at a time
FOLDS = 5  # parts of the sample, each of which is predicted by what all other labels teach
COURSE = 6  # points in time at which the quality is measured, from the names alone to all examples


@dataclass(frozen=True)
class MeasuredSample(Documented):
    """The quality on the labelled part of a random sample, and the ids of the sentences to label next, in order.

    In each fifth of it aspects are found by what all other labels teach; null while no aspect is known.
    """

    labelled: int
    next: list[int]
    quality: Quality | None


@dataclass(frozen=True)
class Course(Documented):
    """The quality on the random sample after the first examples, after more of them, and after all of them."""

    points: list[CoursePoint]


def measure_sample(workbench: Workbench) -> MeasuredSample:
    """Compare the labels of the random sample with what is found in each of them by what others teach.

    The sample is the beginning of a random order of the sentences, as far as it is labelled without a gap: which
    sentences it has does not depend on what they say, so the numbers hold for all of them.
    """
    content, reviews = workbench.content(), workbench.reviews()
    order, labels = random_order(reviews.texts), {example.text for example in content.examples}
    sample = _labelled_beginning(order, content)
    portion = order[len(sample) : len(sample) + PORTION - len(sample) % PORTION]
    first = {text: key for key, text in zip(reversed(reviews.ids), reversed(reviews.texts), strict=True)}
    following = [first[text] for text in portion if text not in labels]
    quality = _measure_parts(workbench, content, sample) if sample else None
    return MeasuredSample(len(sample), following, quality)


def measure_course(workbench: Workbench, latest: Quality | None = None) -> Course:
    """Measure on the whole labelled sample what was found after each part of the other examples, oldest first.

    And last what is found by all labels: ``latest``, if `measure_sample` has measured it already.
    """
    content = workbench.content()
    sample = _labelled_beginning(random_order(workbench.reviews().texts), content)
    others = sorted(_others(content, sample), key=lambda example: example.id)
    if not sample:
        return Course([])
    counts = sorted({len(others) * step // (COURSE - 1) for step in range(COURSE)})
    measured = [(others[:count], _measure(workbench, content, others[:count], sample)) for count in counts]
    latest = latest or _measure_parts(workbench, content, sample)
    measured.append((sorted(content.examples, key=lambda each: each.id), latest))
    return Course(
        [
            CoursePoint(len(learned), max((each.made for each in learned if each.made), default=None), quality)
            for learned, quality in measured
            if quality is not None
        ]
    )


def _labelled_beginning(order: list[str], content: Content) -> list[str]:
    """The sample: the texts of the random order up to the first one without a label."""
    labelled = {example.text for example in content.examples}
    return list(takewhile(labelled.__contains__, order))


def _others(content: Content, sample: list[str]) -> list[Example]:
    """The examples that are not in the sample, in another case either: the model reads such as the same sentence."""
    taken = set(map(normal_form, sample))
    return [example for example in content.examples if normal_form(example.text) not in taken]


def _measure_parts(workbench: Workbench, content: Content, sample: list[str]) -> Quality | None:
    """The quality on the sample, each part of which is left out in turn; None if no aspect is known then."""
    parts = [sample[part::FOLDS] for part in range(min(FOLDS, len(sample)))]
    found = [_find(workbench, content, _others(content, part), part) for part in parts]
    return _compare(content, list(chain.from_iterable(parts)), found)


def _measure(workbench: Workbench, content: Content, examples: list[Example], sample: list[str]) -> Quality | None:
    """The quality on the sample of a detector that learned from these examples; None if it knows no aspect."""
    return _compare(content, sample, [_find(workbench, content, examples, sample)])


def _find(workbench: Workbench, content: Content, examples: list[Example], texts: list[str]) -> Bools | None:
    """What these examples teach to find in the texts, (n_texts, n_aspects); None if no aspect is known."""
    detector = fit_detector(workbench.untaught, content.aspects, examples, workbench.reviews().sample)
    return None if detector is None else apply_thresholds(detector, content).predictions(texts).accepted


def _compare(content: Content, sample: list[str], found: list[Bools | None]) -> Quality | None:
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    labels = {example.text: example.aspects for example in content.examples}
    truth: Bools = np.array([[aspect.id in labels[text] for aspect in content.aspects] for text in sample])
    return measure(truth, np.concatenate(known), [aspect.name for aspect in content.aspects])
