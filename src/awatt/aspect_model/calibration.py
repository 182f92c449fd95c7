"""What labels say about the scores: a slope and a shift for all aspects, and a shift for each, learned in the logits.

The labelled sentences are scored by detectors that were fitted without them (cross-fitting). On these left-out logits z
a logistic regression with a prior is fitted: logit p = (1 + slope) z + shift + shift of the aspect, each of the three
a small number unless the labels say otherwise. With few labels the model's own calibration stays; with many, the labels
decide, and an aspect with many labels decides for itself. The posterior's covariance says how sure this is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STEPS = 30  # of Newton's method; it stops far earlier
_TOLERANCE = 1e-8
_LARGEST_STEP = 2.0


class CalibrationPrior(NamedTuple):
    """Standard deviations of what the model's own calibration may be wrong by."""

    slope: float
    shift: float
    aspect_shift: float


class Calibration(NamedTuple):
    """logit p = slope * logit + shift[aspect]. The covariance is of (slope, common shift, shift of each aspect)."""

    slope: float
    shift: Floats  # (n_aspects,) the common one included
    covariance: Floats  # (2 + n_aspects, 2 + n_aspects)

    def apply(self, logits: Floats) -> Floats:
        """Calibrated logits. (n_sentences, n_aspects) -> the same"""
        return self.slope * logits + self.shift


def uncalibrated(n_aspects: int, prior: CalibrationPrior) -> Calibration:
    """The model's own calibration, as uncertain as the prior says."""
    return Calibration(1.0, np.zeros(n_aspects), np.diag(_variances(n_aspects, prior)))


def calibrate(logits: Floats, labels: npt.NDArray[np.bool_], weights: Floats, prior: CalibrationPrior) -> Calibration:
    """From left-out logits and labels, both (n_sentences, n_aspects), and weights (n_sentences,) or the same shape."""
    n_aspects = logits.shape[1]
    precision = 1 / _variances(n_aspects, prior)
    weights = np.broadcast_to(weights[:, None] if weights.ndim == 1 else weights, logits.shape)
    found, curvature = np.zeros(2 + n_aspects), np.diag(precision)
    for _ in range(_STEPS):
        calibrated = (1 + found[0]) * logits + found[1] + found[2:]
        expected = 1 / (1 + np.exp(-calibrated))
        gradient = _gradient(weights * (expected - labels), logits) + precision * found
        curvature = _curvature(weights * expected * (1 - expected), logits) + np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, _LARGEST_STEP / max(np.abs(step).max(), 1e-12))
        found -= step
        if np.abs(step).max() < _TOLERANCE:
            break
    return Calibration(float(1 + found[0]), found[1] + found[2:], np.linalg.inv(curvature))


def _variances(n_aspects: int, prior: CalibrationPrior) -> Floats:
    return np.array([prior.slope, prior.shift, *[prior.aspect_shift] * n_aspects]) ** 2


def _gradient(errors: Floats, logits: Floats) -> Floats:
    """Of the loss by (slope, common shift, shift of each aspect)."""
    per_aspect = errors.sum(0)
    return np.concatenate([[(errors * logits).sum(), per_aspect.sum()], per_aspect])


def _curvature(certainty: Floats, logits: Floats) -> Floats:
    """Second derivatives of the loss, in the same order."""
    squares, products, sums = ((certainty * power).sum(0) for power in (logits**2, logits, 1.0))
    n_aspects = logits.shape[1]
    found = np.zeros((2 + n_aspects, 2 + n_aspects))
    found[0, 0], found[1, 1], found[0, 1] = squares.sum(), sums.sum(), products.sum()
    found[0, 2:], found[1, 2:] = products, sums
    found[2:, 2:] = np.diag(sums)
    return np.triu(found) + np.triu(found, 1).T
