"""Which sentences to label next: those from whose labels the detector learns most, no two alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from awatt.arrays import Integers

Floats = npt.NDArray[np.float64]

CANDIDATES = 500  # the most useful sentences, among which different ones are chosen
LIKENESS = 1.0  # how much likeness to a chosen sentence takes off


def uncertainty(probabilities: Floats, thresholds: Floats) -> Floats:
    """How near each score is to its threshold: 1 at the threshold, 0 at certainty. The same shape.

    Each side is measured by the odds at the threshold, as rare aspects have low ones.
    """
    odds = probabilities / np.maximum(1 - probabilities, 1e-9)
    cut = thresholds / np.maximum(1 - thresholds, 1e-9)
    ratio = np.minimum(odds / cut, cut / np.maximum(odds, 1e-12))
    return np.asarray(ratio)


def choose(doubt: Floats, vectors: Floats, k: int) -> Integers:
    """The numbers of ``k`` sentences, from their uncertainty (n_sentences, n_aspects) and unit vectors.

    The aspects take turns, so that one that is unsure everywhere does not take all: each picks the sentence of which it
    is least sure, less the likeness to those already chosen.
    """
    candidates = np.argsort(-doubt.max(1), kind="stable")[:CANDIDATES]
    doubt, vectors = doubt[candidates], vectors[candidates]
    alike = np.zeros(len(candidates))
    chosen: list[int] = []
    while len(chosen) < min(k, len(candidates)):
        worth = doubt[:, len(chosen) % doubt.shape[1]] - LIKENESS * alike
        worth[chosen] = -np.inf
        best = int(worth.argmax())
        chosen.append(best)
        alike = np.maximum(alike, np.maximum(vectors @ vectors[best], 0))
    return np.asarray(candidates[chosen])
