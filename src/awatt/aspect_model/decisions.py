"""From calibrated probabilities to thresholds: what one aims for, in words.

If a score is a probability, the scores of a file tell what any threshold would give: of the sentences above it, their
probabilities' sum is the expected number that is right; the sum over the whole file is what there is to be found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import log_odds, logistic

Floats = npt.NDArray[np.float64]

WANTED = 0.9  # expected precision of "precise", expected recall of "thorough"


class Expected(NamedTuple):
    """What each cut of one aspect's ranked probabilities would give; the k-th accepts the k + 1 highest. (n,) each"""

    precision: Floats
    recall: Floats
    f1: Floats


def expect(ranked: Floats, weights: Floats) -> Expected:
    """From probabilities in descending order, and how much each counts, both (n,)."""
    right, accepted = np.cumsum(weights * ranked), np.cumsum(weights)
    total = max(float(right[-1]), 1e-12)
    return Expected(right / np.maximum(accepted, 1e-12), right / total, 2 * right / (accepted + total))


def balanced(expected: Expected) -> int | None:
    """The cut with the best expected F1."""
    return int(expected.f1.argmax())


def precise(expected: Expected) -> int | None:
    """The cut that finds the most with an expected precision of at least 90 %; None where no cut has it."""
    enough = np.flatnonzero(expected.precision >= WANTED - 1e-9)
    return int(enough[-1]) if len(enough) else None


def thorough(expected: Expected) -> int | None:
    """The cut that finds the least with an expected recall of at least 90 %, or all if nothing is to be found."""
    enough = np.flatnonzero(expected.recall >= WANTED - 1e-9)
    return int(enough[0]) if len(enough) else len(expected.recall) - 1


class Thresholds(NamedTuple):
    """One threshold per aspect for each aim. (n_aspects,) each"""

    balanced: Floats
    precise: Floats
    thorough: Floats


AIMS: dict[str, Callable[[Expected], int | None]] = {"balanced": balanced, "precise": precise, "thorough": thorough}


def thresholds(probabilities: Floats, aim: str, weights: Floats | None = None) -> Floats:
    """One threshold per aspect, half-way between two probabilities of a file. (n_sentences, n_aspects) -> (n_aspects,)

    Where no sentence of the file is probable enough for "precise", the threshold is 90 % or above all of them.
    """
    weights = np.ones(len(probabilities)) if weights is None else weights
    return np.array([_threshold(column, weights, aim) for column in probabilities.T])


def common_threshold(probabilities: Floats, weights: Floats) -> float:
    """One threshold for all aspects: the one with the best expected macro-F1. From (n_sentences, n_aspects)"""
    total = np.maximum(weights @ probabilities, 1e-12)
    candidates = np.linspace(0.02, 0.7, 69)
    accepted = [probabilities >= value for value in candidates]
    expected = [2 * (weights @ (probabilities * found)) / (weights @ found + total) for found in accepted]
    return float(candidates[int(np.argmax(np.mean(expected, 1)))])


def move_towards(thresholds: Floats, target: Floats | float, share: Floats | float) -> Floats:
    """Part of the way to other thresholds, in log-odds: 0 is not at all, 1 is all the way. The same shape."""
    moved = (1 - share) * log_odds(thresholds) + share * log_odds(np.asarray(target))
    return logistic(np.asarray(moved))


def _threshold(probabilities: Floats, weights: Floats, aim: str) -> float:
    order = np.argsort(-probabilities, kind="stable")
    ranked = probabilities[order]
    cut = AIMS[aim](expect(ranked, weights[order]))
    if cut is None:
        return max(WANTED, float(ranked[0]) + 1e-9)
    following = ranked[cut + 1] if cut + 1 < len(ranked) else 0.0
    return float((ranked[cut] + following) / 2)
