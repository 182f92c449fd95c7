"""Which sentences to label next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from awatt.detector.thresholds import Floats, without_nan
from awatt.errors import AwattError

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

CANDIDATES = 500  # the most uncertain sentences, among which different ones are chosen


@dataclass(frozen=True)
class Suggestion:
    """A sentence worth labelling: the aspect of which the detector is least sure, and its score."""

    text: str
    index: int  # in the list that was given
    aspect: str
    score: float


def make_suggestions(
    detector: AspectDetector, texts: list[str], k: int, scores: Floats | None = None
) -> list[Suggestion]:
    """The ``k`` most uncertain sentences, of which no two are alike and none is an example already.

    ``scores`` are those of the texts (n_texts, n_aspects), where they are known already.
    """
    if k < 1:
        raise AwattError(f"{k} suggestions were asked for, but at least 1 is needed.")
    scores = detector.predict_proba(texts) if scores is None else scores
    cut = without_nan(detector.thresholds())
    distance = np.abs(_log_odds(scores) - _log_odds(cut))  # (n_texts, n_aspects)
    known = set(detector.examples_.texts) if detector.examples_ else set()
    numbers = [
        number
        for number in np.argsort(distance.min(1), kind="stable").tolist()
        if texts[number].strip() and texts[number].strip() not in known
    ]
    chosen = _different(numbers[:CANDIDATES], texts, distance.min(1), k)
    aspects = detector.aspects
    return [
        Suggestion(texts[number], number, aspects[column], round(float(scores[number, column]), 4))
        for number in chosen
        for column in [int(distance[number].argmin())]
    ]


def _different(numbers: list[int], texts: list[str], distance: npt.NDArray[np.float64], k: int) -> list[int]:
    """Greedily the most uncertain sentence, where likeness to the chosen ones counts as certainty."""
    words = {number: frozenset(texts[number].lower().split()) for number in numbers}
    likeness = dict.fromkeys(numbers, 0.0)
    chosen: list[int] = []
    while likeness and len(chosen) < k:
        # the greatest shared fraction of words with a chosen sentence; two log-odds weigh as much as the same words
        best = min(likeness, key=lambda number: distance[number] + 2 * likeness[number])
        del likeness[best]
        if any(words[best] == words[other] for other in chosen):
            continue
        chosen.append(best)
        for number in likeness:
            union = len(words[best] | words[number])
            likeness[number] = max(likeness[number], len(words[best] & words[number]) / max(union, 1))
    return chosen


def _log_odds(probabilities: Floats) -> Floats:
    sure = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(sure / (1 - sure))
