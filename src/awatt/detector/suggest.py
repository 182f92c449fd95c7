"""Chooses which sentences to label next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from awatt.detector.thresholds import Floats, without_nan
from awatt.errors import AwattError

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

CANDIDATES = 500  # number of most uncertain sentences to choose from


@dataclass(frozen=True)
class Suggestion:
    """A sentence worth labelling, with the aspect the detector is least sure of and its score."""

    text: str
    index: int  # position in the given list
    aspect: str
    score: float


def make_suggestions(
    detector: AspectDetector, texts: list[str], k: int, scores: Floats | None = None
) -> list[Suggestion]:
    """The ``k`` most uncertain sentences that differ from each other and are not examples.

    ``scores`` (n_texts, n_aspects) are the scores of the texts, if already computed.
    """
    if k < 1:
        raise AwattError(f"k is {k}, but needs at least 1.")
    scores = detector.predict_proba(texts) if scores is None else scores
    cut = without_nan(detector.thresholds())
    distance = np.abs(_log_odds(scores) - _log_odds(cut))  # (n_texts, n_aspects)
    known = set(detector.examples_.texts) if detector.examples_ else set()
    numbers = [
        number
        for number in np.argsort(distance.min(1), kind="stable").tolist()
        if texts[number].strip() and texts[number].strip() not in known
    ]
    chosen = _choose_diverse(numbers[:CANDIDATES], texts, distance.min(1), k)
    aspects = detector.aspects
    return [
        Suggestion(texts[number], number, aspects[column], round(float(scores[number, column]), 4))
        for number in chosen
        for column in [int(distance[number].argmin())]
    ]


def _choose_diverse(numbers: list[int], texts: list[str], distance: npt.NDArray[np.float64], k: int) -> list[int]:
    """Greedily choose uncertain sentences; similarity to those already chosen counts against a sentence."""
    words = {number: frozenset(texts[number].lower().split()) for number in numbers}
    similarity = dict.fromkeys(numbers, 0.0)  # highest word overlap (Jaccard) with a chosen sentence
    chosen: list[int] = []
    while similarity and len(chosen) < k:
        # a sentence with the same words as a chosen one counts as 2 log-odds more certain
        best = min(similarity, key=lambda number: distance[number] + 2 * similarity[number])
        del similarity[best]
        if any(words[best] == words[other] for other in chosen):
            continue
        chosen.append(best)
        for number in similarity:
            union = len(words[best] | words[number])
            similarity[number] = max(similarity[number], len(words[best] & words[number]) / max(union, 1))
    return chosen


def _log_odds(probabilities: Floats) -> Floats:
    clipped = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(clipped / (1 - clipped))
