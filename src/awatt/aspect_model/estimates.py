"""Expected precision, recall and F1, with intervals that reflect how much the labels show.

The calibration's posterior says which other calibrations the labels allow. Under each of them the file's labels, and
with them precision, recall and F1 at the thresholds in use, would be others: their spread is the interval.
With names or a handful of examples the posterior is the prior, and the interval says that little can be known yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import logistic
from awatt.aspect_model.learner import LearnedAspects

Floats = npt.NDArray[np.float64]

DRAWS = 400
REPEATS = 4  # every sentence of the file's sample stands for so many: the truth is measured on some 2,000 sentences
LEVEL = 0.9
BELOW, ABOVE = 0.02, 0.04  # what the posterior does not know; a detector of all labels is better than those of folds
ENOUGH_DRAWN = 20.0  # labelled sentences, without a file, that may be a sample of one
TOO_WIDE = 0.46  # an interval of F1 that says nothing


class Estimate(NamedTuple):
    """Median, and the interval that holds the truth in 90 % of the cases."""

    median: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether the interval says anything."""
        return self.high - self.low < TOO_WIDE


class AspectEstimates(NamedTuple):
    """What to expect of one aspect."""

    precision: Estimate
    recall: Estimate
    f1: Estimate


class Quality(NamedTuple):
    """What to expect of each aspect, and of their mean F1."""

    aspects: list[AspectEstimates]
    macro_f1: Estimate


class Expectation(NamedTuple):
    """Under each drawn calibration; (n_draws, n_aspects) each."""

    precision: Floats
    recall: Floats
    f1: Floats


def estimate_quality(learned: LearnedAspects, thresholds: Floats) -> Quality | None:
    """None where nothing can be known: without a file, and without enough labels that stand for one."""
    if not learned.n_reviews and learned.n_drawn < ENOUGH_DRAWN:
        return None
    expected = expect_under_posterior(learned, thresholds)
    aspects = [
        AspectEstimates(*(_interval(values[:, column]) for values in expected)) for column in range(len(thresholds))
    ]
    return Quality(aspects, _interval(expected.f1.mean(1)))


def expect_under_posterior(learned: LearnedAspects, thresholds: Floats) -> Expectation:
    """Draw calibrations, and labels by them; what is accepted stays as it is.

    Labels are drawn, too, because any measurement has only a limited number of labels: of a rare aspect only a few.
    """
    calibration, of_file = learned.calibration, learned.known_weights > 0
    values, weights = learned.known_values[of_file], learned.known_weights[of_file, None]
    accepted = logistic(calibration.logits(values)) >= thresholds
    n_values = values.shape[2]
    rng = np.random.default_rng(0)
    noise = rng.multivariate_normal(np.zeros(len(calibration.covariance)), calibration.covariance, DRAWS)
    precision, recall, f1 = (np.zeros((DRAWS, values.shape[1])) for _ in range(3))
    for number, drawn in enumerate(noise):
        slope = calibration.weights + drawn[:n_values]
        shift = calibration.shift + drawn[n_values] + drawn[n_values + 1 :]
        likely = logistic(values @ slope + shift)
        likely = weights * rng.binomial(REPEATS, likely) / REPEATS
        right, found, total = (likely * accepted).sum(0), (weights * accepted).sum(0), likely.sum(0)
        precision[number] = right / np.maximum(found, 1e-9)
        recall[number] = right / np.maximum(total, 1e-9)
        f1[number] = 2 * right / np.maximum(found + total, 1e-9)
    return Expectation(precision, recall, f1)


def _interval(values: Floats) -> Estimate:
    outside = (1 - LEVEL) / 2
    low, median, high = np.quantile(values, [outside, 0.5, 1 - outside])
    return Estimate(float(median), max(0.0, float(low) - BELOW), min(1.0, float(high) + ABOVE))
