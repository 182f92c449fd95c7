"""What labels say about the scores: cross-fitted predictions, and a small logistic regression on them with a prior.

Labelled sentences are scored by detectors that were fitted without them. On these left-out values x (the network's
logit first, then a few single scores) the calibration is

    logit p = x . weights + shift[aspect],

weights near (1, 0, 0, ...) and shifts near 0 unless the labels say otherwise. With few labels the model's own
calibration stays; with many, the labels decide, and an aspect with many labels decides for itself. The covariance of
the posterior says how sure this is; the report's intervals come from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import Bools, cut, logistic

Floats = npt.NDArray[np.float64]

_STEPS = 30  # of Newton's method; it stops far earlier
_TOLERANCE = 1e-8
_LARGEST_STEP = 2.0
_TOGETHER = 2000  # sentences; bounds the memory with many
CHOSEN = 10  # examples that a person chooses of an aspect, at most
USUALLY_CHOSEN = 5
FEWEST_OFF_TOPIC = 20  # labelled sentences without a file, from which on the labelled ones stand for one
MANY_PER_ASPECT = 20  # labelled sentences that do so even without off-topic ones
FEWEST_DRAWN = 5.0  # sentences that may be a sample of the file, below which labels do not calibrate
_FREQUENT = 0.05  # share of a file from which on an aspect's labels tell how many sentences were drawn at random


class CalibrationPrior(NamedTuple):
    """Standard deviations: by how much the model's own calibration may be wrong."""

    slope: float = 0.5  # of the weight of the network's logit, around 1
    other_weights: float = 0.5  # of the weights of single scores, around 0
    shift: float = 1.0  # common to all aspects
    aspect_shift: float = 1.0


class Calibration(NamedTuple):
    """logit p = x . weights + shift[aspect]. The covariance is of (weights, common shift, shift of each aspect)."""

    weights: Floats  # (n_values,)
    shift: Floats  # (n_aspects,) the common one included
    covariance: Floats  # (n_values + 1 + n_aspects, the same)

    def logits(self, values: npt.NDArray[np.floating]) -> Floats:
        """(n_sentences, n_aspects, n_values) -> (n_sentences, n_aspects)"""
        found = np.empty(values.shape[:2])
        for part in cut(len(values), _TOGETHER):
            np.matmul(values[part], self.weights, out=found[part])
        return found + self.shift


def uncalibrated(n_values: int, n_aspects: int, prior: CalibrationPrior) -> Calibration:
    """The model's own calibration, as uncertain as the prior says."""
    weights = np.zeros(n_values)
    weights[0] = 1
    return Calibration(weights, np.zeros(n_aspects), np.diag(_variances(n_values, n_aspects, prior)))


def calibrate(
    values: npt.NDArray[np.floating], labels: Bools, sentence_weights: Floats, prior: CalibrationPrior
) -> Calibration:
    """From left-out values (n_sentences, n_aspects, n_values) and labels (n_sentences, n_aspects): Newton's method."""
    n_aspects, n_values = values.shape[1:]
    start = np.zeros(n_values + 1 + n_aspects)
    start[0] = 1
    precision = 1 / _variances(n_values, n_aspects, prior)
    found, curvature = start.copy(), np.diag(precision)
    for _ in range(_STEPS):
        gradient, curvature = precision * (found - start), np.diag(precision)
        for part in cut(len(values), _TOGETHER):
            wide, weights = values[part].astype(np.float64), sentence_weights[part, None]
            expected = logistic(wide @ found[:n_values] + found[n_values] + found[n_values + 1 :])
            gradient += _gradient(weights * (expected - labels[part]), wide)
            curvature += _curvature(weights * expected * (1 - expected), wide)
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, _LARGEST_STEP / max(float(np.abs(step).max()), 1e-12))
        found -= step
        if np.abs(step).max() < _TOLERANCE:
            break
    shift = found[n_values] + found[n_values + 1 :]
    return Calibration(found[:n_values], shift, np.asarray(np.linalg.inv(curvature), dtype=np.float64))


def _variances(n_values: int, n_aspects: int, prior: CalibrationPrior) -> Floats:
    spreads = [prior.slope, *[prior.other_weights] * (n_values - 1), prior.shift, *[prior.aspect_shift] * n_aspects]
    return np.array(spreads) ** 2


def _gradient(errors: Floats, values: Floats) -> Floats:
    """Of the loss, by (weights, common shift, shift of each aspect)."""
    return np.concatenate([np.einsum("sa,sav->v", errors, values), [errors.sum()], errors.sum(0)])


def _curvature(certainty: Floats, values: Floats) -> Floats:
    """Second derivatives of the loss, in the same order."""
    n_values, n_aspects = values.shape[2], values.shape[1]
    by_aspect = np.einsum("sa,sav->av", certainty, values)
    found = np.zeros((n_values + 1 + n_aspects, n_values + 1 + n_aspects))
    found[:n_values, :n_values] = np.einsum("sa,sav,saw->vw", certainty, values, values)
    found[:n_values, n_values] = found[n_values, :n_values] = by_aspect.sum(0)
    found[:n_values, n_values + 1 :] = by_aspect.T
    found[n_values + 1 :, :n_values] = by_aspect
    per_aspect = certainty.sum(0)
    found[n_values, n_values] = per_aspect.sum()
    found[n_values, n_values + 1 :] = found[n_values + 1 :, n_values] = per_aspect
    found[n_values + 1 :, n_values + 1 :] = np.diag(per_aspect)
    return found


def representative_weights(labels: Bools, probabilities: Floats) -> Floats:
    """How much each labelled sentence says about how frequent aspects are in the file. (n_labelled,)

    Examples were chosen for their aspect, so that aspects are more frequent among labels than in the file, and the
    calibration would find too much. Nobody tells which sentences were chosen and which were drawn from the file, but
    two things are known. Hardly anybody chooses more than ten of a group (an aspect, or off-topic): of a group with n
    labels at least n - 10 came as they are. And the file's own probabilities (n_file, n_aspects)
    say how often each group should come: at most min(count / share) labels, over the frequent groups, can be a random
    sample. A group's weight is the larger of the two estimates; a sentence has the lowest weight of its groups.
    """
    groups = np.concatenate([labels, ~labels.any(1, keepdims=True)], 1)
    counts = np.maximum(groups.sum(0), 1)
    weights = np.maximum(counts - CHOSEN, 0) / counts
    shares = np.append(probabilities.mean(0), np.prod(1 - probabilities, 1).mean())
    frequent = shares >= _FREQUENT
    sizes = groups.sum(0)[frequent] / shares[frequent]
    drawn = min(len(labels), float(sizes.min())) if len(sizes) else len(labels)
    weights = np.maximum(weights, np.minimum(1.0, drawn * shares / counts))
    return np.asarray(np.where(groups, weights, np.inf).min(1))


def drawn_weights(labels: Bools) -> Floats:
    """The same without a file: all 0 unless the labels look like those of one. (n_labelled,)

    That is so with enough off-topic ones, or with a great many. Of each aspect up to five may have been chosen as
    examples, as many as the rarest has, and as many off-topic ones, or none at all: half of that is taken.
    """
    groups = np.concatenate([labels, ~labels.any(1, keepdims=True)], 1)
    counts = groups.sum(0)
    chosen = min(USUALLY_CHOSEN, counts[:-1].min()) / 2
    shares = np.maximum(counts - chosen, 0) / np.maximum(counts, 1)
    weights = np.asarray(np.where(groups, shares, np.inf).min(1))
    enough = counts[-1] >= FEWEST_OFF_TOPIC or len(labels) >= MANY_PER_ASPECT * labels.shape[1]
    return weights * float(enough and weights[labels.any(1)].sum() >= FEWEST_DRAWN)


def assign_folds(labels: Bools, n_folds: int) -> npt.NDArray[np.int64]:
    """Folds for cross-fitting, each with about as many sentences of every aspect. (n_labelled,)

    They do not depend on the order of the aspects.
    """
    columns = sorted(labels.T, key=lambda column: column.tobytes())
    ordered = np.stack(columns, 1) if columns else labels
    first_aspect = np.where(ordered.any(1), ordered.argmax(1), ordered.shape[1])
    folds = np.empty(len(labels), dtype=np.int64)
    folds[np.argsort(first_aspect, kind="stable")] = np.arange(len(labels)) % n_folds
    return folds
