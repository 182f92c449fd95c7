"""Metrics against scikit-learn and scipy, against numbers worked out by hand, and under permutation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.metrics import f1_score, roc_auc_score

from awatt.errors import AwattError
from awatt.metrics import (
    Interval,
    argmax_f1,
    calibration_error,
    compare_paired,
    false_aspects,
    macro_f1,
    mean_ci95,
    none_auroc,
    roc_auc,
)

quick = settings(max_examples=60)
shapes = st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(2, 4))
any_scores = st.floats(-1e6, 1e6)
tied_scores = st.sampled_from([-1.0, -0.0, 0.0, 0.5])
seeds = st.integers(0, 2**32 - 1)


@st.composite
def scored(draw: st.DrawFn, elements: st.SearchStrategy[float]) -> tuple[NDArray, NDArray]:
    shape = draw(shapes)
    return draw(arrays(np.float64, shape, elements=elements)), draw(arrays(np.bool_, shape))


@st.composite
def predicted_and_targets(draw: st.DrawFn) -> tuple[NDArray, NDArray]:
    shape = draw(shapes)
    return draw(arrays(np.bool_, shape)), draw(arrays(np.bool_, shape))


def sklearn_auc(scores: NDArray, targets: NDArray) -> float:
    """Mean over the columns that hold both classes; NaN if none does."""
    both = targets.any(0) & ~targets.all(0)
    if not both.any():
        return math.nan
    return float(roc_auc_score(targets[:, both], scores[:, both], average="macro"))


def sklearn_f1(predicted: NDArray, targets: NDArray) -> float:
    return float(f1_score(targets, predicted, average="macro", zero_division=0))


def check_auc(scores: NDArray, targets: NDArray) -> None:
    expected = [sklearn_auc(s, t) for s, t in zip(scores, targets, strict=True)]
    np.testing.assert_allclose(roc_auc(scores, targets), expected, rtol=0, atol=1e-9)


# ---- AUC


@quick
@given(scored(any_scores))
def test_auc_equals_scikit_learn(case: tuple[NDArray, NDArray]) -> None:
    check_auc(*case)


@quick
@given(scored(tied_scores))
def test_auc_equals_scikit_learn_on_ties(case: tuple[NDArray, NDArray]) -> None:
    check_auc(*case)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_auc_equals_scikit_learn_on_larger_episodes(dtype: type) -> None:
    rng = np.random.default_rng(3)
    scores = (rng.normal(size=(4, 300, 6)) * 40).astype(dtype)
    targets = rng.random(scores.shape) < 0.2
    targets[0, :, 0], targets[1, :, 1:] = False, True
    check_auc(scores, targets)


def test_auc_by_hand() -> None:
    # Column 0: positives .8, .4 and negatives .6, .4: wins 1 + 1 + 0, one tie: 2.5 of 4. Column 1: 3 of 3.
    scores = [[0.8, 0.9], [0.4, 0.1], [0.6, 0.2], [0.4, 0.3]]
    targets = [[1, 1], [1, 0], [0, 0], [0, 0]]
    assert roc_auc(scores, targets) == pytest.approx((2.5 / 4 + 1) / 2, abs=1e-12)


def test_auc_leaves_out_aspects_with_one_class() -> None:
    scores = [[0.1, 0.9, 0.5], [0.7, 0.2, 0.5]]
    assert roc_auc(scores, [[1, 1, 0], [0, 1, 0]]) == 0.0  # only column 0 counts, and it is the wrong way round
    assert math.isnan(roc_auc(scores, [[1, 1, 0], [1, 1, 0]]))


def test_auc_ranks_infinite_scores() -> None:
    scores = [[np.inf], [np.inf], [-np.inf], [0.0]]
    assert roc_auc(scores, [[1], [0], [0], [0]]) == pytest.approx(2.5 / 3)


# ---- F1


@quick
@given(predicted_and_targets())
def test_f1_equals_scikit_learn(case: tuple[NDArray, NDArray]) -> None:
    predicted, targets = case
    for some in (predicted, np.zeros_like(predicted), np.ones_like(predicted)):
        expected = [sklearn_f1(p, t) for p, t in zip(some, targets, strict=True)]
        np.testing.assert_allclose(macro_f1(some, targets), expected, rtol=0, atol=1e-9)


def test_f1_by_hand() -> None:
    # Column 0: 1 hit, 1 false alarm, 1 miss: 2/4. Column 1: 1 hit, 1 miss: 2/3. Column 2: never named: 0.
    predicted = [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    targets = [[1, 1, 0], [0, 0, 0], [1, 1, 0]]
    assert macro_f1(predicted, targets) == pytest.approx((1 / 2 + 2 / 3 + 0) / 3, abs=1e-12)


@quick
@given(scored(tied_scores))
def test_argmax_f1_equals_f1_of_the_first_best(case: tuple[NDArray, NDArray]) -> None:
    scores, targets = case
    best = np.eye(scores.shape[-1], dtype=bool)[scores.argmax(-1)]
    expected = [sklearn_f1(p, t) for p, t in zip(best, targets, strict=True)]
    np.testing.assert_allclose(argmax_f1(scores, targets), expected, rtol=0, atol=1e-9)


# ---- none of the above


@quick
@given(scored(tied_scores))
def test_none_auroc_equals_scikit_learn(case: tuple[NDArray, NDArray]) -> None:
    scores, targets = case
    best, is_none = scores.max(-1, keepdims=True), ~targets.any(-1, keepdims=True)
    expected = [sklearn_auc(-b, n) for b, n in zip(best, is_none, strict=True)]
    np.testing.assert_allclose(none_auroc(scores, targets), expected, rtol=0, atol=1e-9)


def test_none_auroc_by_hand() -> None:
    # Best scores: none .3 and .7, aspects .9 and .5; the pairs (.3, .9), (.3, .5), (.7, .9) are right.
    scores = [[0.3, 0.1], [0.7, 0.2], [0.9, 0.9], [0.1, 0.5]]
    assert none_auroc(scores, [[0, 0], [0, 0], [1, 1], [1, 0]]) == pytest.approx(3 / 4)
    assert math.isnan(none_auroc(scores, np.zeros((4, 2))))


def test_false_aspects_by_hand() -> None:
    predicted = [[1, 1], [0, 0], [1, 1], [1, 0]]
    assert false_aspects(predicted, [[0, 0], [0, 0], [1, 0], [0, 0]]) == 100 * 3 / 3
    assert false_aspects(predicted, [[0, 0], [0, 0], [1, 0], [0, 1]]) == 100 * 2 / 2
    assert math.isnan(false_aspects(predicted, np.ones((4, 2))))


# ---- probabilities


def test_calibration_error_by_hand() -> None:
    # Bin 0.2 to 0.3: mean .24, half of them right; bin 0.9 to 1: mean .97, two of three right.
    probabilities, targets = [0.2, 0.28, 0.91, 1.0, 1.0], [0, 1, 1, 0, 1]
    expected = 2 / 5 * abs(0.24 - 0.5) + 3 / 5 * abs(0.97 - 2 / 3)
    assert calibration_error(probabilities, targets) == pytest.approx(expected)
    assert calibration_error(probabilities, targets, n_bins=1) == pytest.approx(abs(3.39 / 5 - 3 / 5))


def test_calibration_error_of_the_truth_is_zero_and_of_its_opposite_one() -> None:
    truth = np.array([0, 1, 1, 0])
    assert calibration_error(truth, truth) == 0
    assert calibration_error(1 - truth, truth) == 1
    with pytest.raises(AwattError, match=r"targets have shape \(3,\), but \(4,\) is needed"):
        calibration_error(truth, truth[:3])


# ---- what all measures have in common


@pytest.mark.parametrize("measure", [roc_auc, macro_f1, argmax_f1, none_auroc, false_aspects])
@quick
@given(case=scored(tied_scores), seed=seeds)
def test_batches_and_order_change_nothing(measure, case: tuple[NDArray, NDArray], seed: int) -> None:
    first, targets = case
    if measure in (macro_f1, false_aspects):
        first = first > 0
    if measure is argmax_f1:  # only without ties does the order of the aspects not matter
        first = np.random.default_rng(seed).random(first.shape)
    values = measure(first, targets)
    assert values.shape == first.shape[:1]
    np.testing.assert_array_equal(values, [measure(f, t) for f, t in zip(first, targets, strict=True)])
    np.testing.assert_array_equal(measure(first[None, :, None], targets[None, :, None]), values[None, :, None])

    rng = np.random.default_rng(seed)
    queries, aspects = rng.permutation(first.shape[1]), rng.permutation(first.shape[2])
    shuffled = measure(first[:, queries][:, :, aspects], targets[:, queries][:, :, aspects])
    np.testing.assert_allclose(shuffled, values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("measure", [roc_auc, macro_f1, argmax_f1, none_auroc, false_aspects])
def test_wrong_input_is_refused(measure) -> None:
    ones = np.ones((2, 3, 4))
    with pytest.raises(AwattError, match=r"targets have shape \(2, 3, 5\), but \(2, 3, 4\) is needed"):
        measure(ones, np.ones((2, 3, 5)))
    with pytest.raises(AwattError, match=r"targets have shape \(3, 4\)"):  # would broadcast
        measure(ones, np.ones((3, 4)))
    with pytest.raises(AwattError, match=r"targets hold 2\.0, but only 0 and 1"):
        measure(ones, 2 * ones)
    for empty in (np.ones((0, 3, 4)), np.ones((2, 0, 4)), np.ones(3)):
        with pytest.raises(AwattError, match="non-empty"):
            measure(empty, empty)


@pytest.mark.parametrize("measure", [roc_auc, argmax_f1, none_auroc])
def test_nan_scores_are_counted(measure) -> None:
    scores = np.ones((2, 3, 4))
    scores[0, 0, :2] = scores[1, 2, 3] = np.nan
    with pytest.raises(AwattError, match="3 of 24 scores are NaN"):
        measure(scores, np.ones((2, 3, 4)))


def test_scores_are_not_predictions() -> None:
    with pytest.raises(AwattError, match=r"predicted hold 0\.5.*threshold"):
        macro_f1(np.full((2, 2), 0.5), np.ones((2, 2)))


def test_inputs_are_not_changed() -> None:
    rng = np.random.default_rng(0)
    scores, targets = rng.random((1, 5, 1)), rng.random((1, 5, 1)) < 0.5  # already contiguous by column
    before = scores.copy(), targets.copy()
    roc_auc(scores, targets)
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(targets, before[1])


# ---- intervals and comparisons


@pytest.mark.parametrize("n_values", [2, 5, 600])
def test_interval_equals_scipy(n_values: int) -> None:
    values = np.random.default_rng(n_values).random(n_values)
    mean, half_width = mean_ci95(values)
    low, high = scipy.stats.t.interval(0.95, n_values - 1, values.mean(), scipy.stats.sem(values))
    assert (mean - half_width, mean + half_width) == pytest.approx((low, high), abs=1e-12)
    assert mean_ci95([*values, math.nan]) == pytest.approx((mean, half_width), abs=1e-12)  # left out


def test_interval_by_hand() -> None:
    # Mean 2, standard deviation 1, t(2, 0.975) = 4.302653.
    assert mean_ci95([1, 2, 3]) == pytest.approx(Interval(2, 4.302653 / math.sqrt(3)), abs=1e-6)


def test_interval_of_one_or_no_value() -> None:
    one, none = mean_ci95([0.5, math.nan]), mean_ci95([math.nan, math.nan])
    assert one.mean == 0.5
    assert math.isnan(one.half_width)
    assert math.isnan(none.mean)
    assert math.isnan(none.half_width)


@pytest.mark.parametrize(("values", "message"), [([], "shape"), ([[1.0]], "shape"), ([np.inf, 1], "infinite")])
def test_interval_of_unusable_values_is_refused(values, message: str) -> None:
    with pytest.raises(AwattError, match=message):
        mean_ci95(values)


@quick
@given(st.integers(2, 40), seeds)
def test_paired_comparison_equals_scipy(n_values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.random(n_values), rng.random(n_values)
    ours, scipys = compare_paired(first, second), scipy.stats.ttest_rel(first, second)
    interval = scipys.confidence_interval(0.95)
    assert ours.p_value == pytest.approx(scipys.pvalue, rel=1e-9, abs=1e-12)
    assert ours.difference == pytest.approx(first.mean() - second.mean(), abs=1e-12)
    assert ours.half_width == pytest.approx((interval.high - interval.low) / 2, rel=1e-9)


def test_paired_comparison_leaves_out_undefined_pairs() -> None:
    first, second = [0.5, math.nan, 0.8, 0.4], [0.4, 0.1, 0.5, math.nan]
    assert compare_paired(first, second) == compare_paired([0.5, 0.8], [0.4, 0.5])


def test_paired_comparison_of_identical_runs() -> None:
    assert compare_paired([0.1, 0.7, 0.3], [0.1, 0.7, 0.3]) == (0.0, 0.0, 1.0)
    assert compare_paired([2.0, 3.0], [1.0, 2.0]) == (1.0, 0.0, 0.0)  # a constant gain


def test_paired_comparison_of_unpaired_runs_is_refused() -> None:
    with pytest.raises(AwattError, match="first run has 2 values and the second 3"):
        compare_paired([1, 2], [1, 2, 3])
    with pytest.raises(AwattError, match="share 1 defined value,"):
        compare_paired([1, math.nan], [1, 2])
