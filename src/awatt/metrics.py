"""AUC, macro-F1 and none-of-the-above measures per episode; mean, interval and paired test over episodes.

Arrays are (..., n_query, n_way): any leading dimensions (episodes, seeds), then an episode's queries, then
its aspects. A measure gives one number per episode, (...), and NaN where it is undefined. Numbers are
fractions (0.81, not 81); only ``false_aspects`` is a count per 100 sentences.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from awatt.errors import AwattError, plural, require

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# ---- per episode: detection


def roc_auc(scores: ArrayLike, targets: ArrayLike) -> Floats:
    """Mean over the aspects of the probability that a query with the aspect outscores one without; a tie is half.

    ``scores`` and ``targets`` are (..., n_query, n_way); gives (...). An aspect that no query or every query
    mentions has no AUC and is left out of the mean; NaN if this holds for all aspects of the episode.
    """
    scores = _scores(scores)
    return _roc_auc(scores, _flags(targets, "targets", scores.shape))


def macro_f1(predicted: ArrayLike, targets: ArrayLike) -> Floats:
    """Mean F1 over the aspects; an aspect that is neither predicted nor mentioned counts as 0.

    ``predicted`` and ``targets`` are (..., n_query, n_way); gives (...).
    """
    predicted = _flags(predicted, "predicted")
    return _macro_f1(predicted, _flags(targets, "targets", predicted.shape))


def argmax_f1(scores: ArrayLike, targets: ArrayLike) -> Floats:
    """Macro-F1 when only the highest-scored aspect of each query is predicted (the first on a tie).

    ``scores`` and ``targets`` are (..., n_query, n_way); gives (...).
    """
    scores = _scores(scores)
    best = scores.argmax(axis=-1)[..., None] == np.arange(scores.shape[-1])
    return _macro_f1(best, _flags(targets, "targets", scores.shape))


# ---- per episode: none of the above


def none_auroc(scores: ArrayLike, targets: ArrayLike) -> Floats:
    """Probability that a query without aspects has a lower best score than one with aspects; a tie is half.

    ``scores`` and ``targets`` are (..., n_query, n_way); gives (...). NaN unless there are queries of both kinds.
    """
    scores = _scores(scores)
    is_none = _is_none(_flags(targets, "targets", scores.shape))
    return _roc_auc(-scores.max(axis=-1, keepdims=True), is_none)


def false_aspects(predicted: ArrayLike, targets: ArrayLike) -> Floats:
    """Number of aspects predicted per 100 queries that mention none of them.

    ``predicted`` and ``targets`` are (..., n_query, n_way); gives (...). NaN if every query mentions one.
    """
    predicted = _flags(predicted, "predicted")
    is_none = _is_none(_flags(targets, "targets", predicted.shape))
    n_false = np.count_nonzero(predicted & is_none, axis=(-2, -1))
    return _ratio(100 * n_false, np.count_nonzero(is_none, axis=(-2, -1)), otherwise=np.nan)


# ---- over all episodes: probabilities


def calibration_error(probabilities: ArrayLike, targets: ArrayLike, n_bins: int = 10) -> float:
    """Expected calibration error: |mean probability - fraction of positives| in bins of equal width, weighted by size.

    ``probabilities`` from 0 to 1 and ``targets``, one flag per probability; both (n_pairs,).
    """
    probabilities = _values(probabilities)
    truth = np.asarray(targets, dtype=np.float64)
    if truth.shape != probabilities.shape:
        raise AwattError(
            f"targets have shape {truth.shape}, but {probabilities.shape} is needed: one flag per probability."
        )
    bins = np.clip((probabilities * n_bins).astype(np.int64), 0, n_bins - 1)
    # In each bin, size * |mean - mean| equals the absolute value of the summed differences.
    return float(np.abs(np.bincount(bins, probabilities - truth, n_bins)).sum() / probabilities.size)


class ReliabilityBin(NamedTuple):
    """A bin of a reliability diagram: mean probability, share of true ones, number of pairs."""

    probability: float
    share: float
    pairs: int


def reliability(probabilities: ArrayLike, targets: ArrayLike, n_bins: int = 10) -> list[ReliabilityBin]:
    """The bins of ``calibration_error`` that hold anything, for a diagram."""
    values, truth = np.ravel(np.asarray(probabilities)), np.ravel(np.asarray(targets))
    bins = np.minimum((values * n_bins).astype(np.int64), n_bins - 1)
    held = [bins == number for number in range(n_bins) if (bins == number).any()]
    return [ReliabilityBin(float(values[each].mean()), float(truth[each].mean()), int(each.sum())) for each in held]


# ---- over episodes or seeds


class Interval(NamedTuple):
    """The 95 % interval is ``mean`` ± ``half_width``."""

    mean: float
    half_width: float


class PairedComparison(NamedTuple):
    """Mean of first minus second, half-width of its 95 % interval, and p-value of the two-sided paired t-test."""

    difference: float
    half_width: float
    p_value: float


def mean_ci95(values: ArrayLike) -> Interval:
    """Mean of ``values`` (n_values,) and half-width of its 95 % interval (Student's t, n - 1 degrees of freedom).

    NaN values (episodes in which the measure is undefined) are left out. The half-width of a
    single value is NaN; without any value both are NaN.
    """
    values = _values(values)
    values = values[~np.isnan(values)]
    if values.size < 2:
        return Interval(float(values[0]) if values.size else math.nan, math.nan)
    quantile = float(require("scipy.special", "train").stdtrit(values.size - 1, 0.975))
    return Interval(float(values.mean()), quantile * _standard_error(values))


def compare_paired(first: ArrayLike, second: ArrayLike) -> PairedComparison:
    """Compare two runs over the same episodes or the same seeds; both (n_values,).

    Pairs with a NaN are left out. Identical runs have p = 1, runs that differ by a constant p = 0.
    """
    first, second = _values(first), _values(second)
    if first.size != second.size:
        raise AwattError(
            f"the first run has {plural(first.size, 'value')} and the second {second.size}, but a paired comparison "
            "needs the same episodes or seeds in both. Evaluate both runs with the same settings."
        )
    differences = first - second
    differences = differences[~np.isnan(differences)]
    if differences.size < 2:
        raise AwattError(
            f"the runs share {plural(differences.size, 'defined value')}, but a paired comparison needs at least 2. "
            "Evaluate both over more episodes or seeds."
        )
    difference, half_width = mean_ci95(differences)
    error = _standard_error(differences)
    if error == 0:  # t would be 0 / 0 or infinite
        return PairedComparison(difference, half_width, 0.0 if difference else 1.0)
    tail = float(require("scipy.special", "train").stdtr(differences.size - 1, -abs(difference / error)))
    return PairedComparison(difference, half_width, 2 * tail)


# ---- shared by the measures


def _roc_auc(scores: NDArray[Any], targets: Flags) -> Floats:
    """AUC from the ranks of the positives (Mann-Whitney): one sort, and memory linear in the number of queries.

    Comparing all pairs of queries was 4 times slower with 25 queries, and 7 times slower with 50.
    """
    n_query = scores.shape[-2]
    scores = np.ascontiguousarray(np.swapaxes(scores, -1, -2))  # (..., n_way, n_query), as all arrays below
    order = scores.argsort(axis=-1)
    scores = np.take_along_axis(scores, order, axis=-1)
    positive = np.take_along_axis(np.swapaxes(targets, -1, -2), order, axis=-1)
    del order  # the largest array

    # Equal scores are consecutive in this order and share the mean of their first and last rank.
    edge = np.ones((*scores.shape[:-1], n_query + 1), dtype=np.bool_)
    np.not_equal(scores[..., 1:], scores[..., :-1], out=edge[..., 1:-1])
    place = np.arange(n_query, dtype=np.int32)
    twice_rank = np.maximum.accumulate(np.where(edge[..., :-1], place, 0), axis=-1)
    ends = np.where(edge[..., 1:], place, n_query)[..., ::-1]
    twice_rank += np.minimum.accumulate(ends, axis=-1)[..., ::-1]
    twice_rank *= positive

    n_positive = np.count_nonzero(positive, axis=-1)  # (..., n_way)
    n_pairs = n_positive * (n_query - n_positive)
    # A rank counts all queries below it; the p (p - 1) / 2 pairs of two positives are not wins.
    wins = (twice_rank.sum(axis=-1) - n_positive * (n_positive - 1)) / 2
    area = _ratio(wins, n_pairs, otherwise=0.0)
    return _ratio(area.sum(axis=-1), np.count_nonzero(n_pairs, axis=-1), otherwise=np.nan)


def _macro_f1(predicted: Flags, targets: Flags) -> Floats:
    hits = np.count_nonzero(predicted & targets, axis=-2)  # (..., n_way)
    named = np.count_nonzero(predicted, axis=-2) + np.count_nonzero(targets, axis=-2)
    return np.asarray(_ratio(2 * hits, named, otherwise=0.0).mean(axis=-1))


def _is_none(targets: Flags) -> Flags:
    """Whether a query mentions no aspect. (..., n_query, 1)"""
    return np.asarray(~targets.any(axis=-1, keepdims=True))


def _ratio(numerator: ArrayLike, denominator: ArrayLike, otherwise: float) -> Floats:
    """``otherwise`` where the denominator is 0, without a warning."""
    out: Floats = np.full(np.shape(denominator), otherwise)
    np.divide(numerator, denominator, out=out, where=np.asarray(denominator) != 0)
    return out


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(values.size)


# ---- checks


def _scores(scores: ArrayLike) -> NDArray[Any]:
    scores = np.asarray(scores)
    if scores.dtype.kind != "f":  # float32 is kept: the ranks are the same, and it needs less memory
        scores = scores.astype(np.float64)
    _check_shape(scores.shape, "scores")
    if n_nan := np.count_nonzero(np.isnan(scores)):
        raise AwattError(
            f"{n_nan} of {scores.size} scores are NaN, which cannot be ranked. "
            "Check for training that diverged, or a query without words."
        )
    return scores


def _flags(flags: ArrayLike, name: str, like: tuple[int, ...] | None = None) -> Flags:
    flags = np.asarray(flags)
    _check_shape(flags.shape, name)
    if like is not None and flags.shape != like:
        raise AwattError(f"{name} have shape {flags.shape}, but {like} is needed: a flag per query and aspect.")
    as_bool = flags.astype(np.bool_, copy=False)
    if flags.dtype != np.bool_ and (wrong := flags[flags != as_bool]).size:
        raise AwattError(f"{name} hold {wrong[0]}, but only 0 and 1 are allowed. Apply a threshold first.")
    return as_bool


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) < 2 or 0 in shape:
        raise AwattError(f"{name} have shape {shape}, but a non-empty (..., n_query, n_way) is needed.")


def _values(values: ArrayLike) -> Floats:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise AwattError(f"values have shape {values.shape}, but one number per episode or seed is needed.")
    if n_infinite := np.count_nonzero(np.isinf(values)):
        raise AwattError(f"{n_infinite} of {values.size} values are infinite and have no mean. Remove them.")
    return values
