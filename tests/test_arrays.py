"""The small functions: hand-computed numbers, the same with numpy and torch, and no NaN where nothing is valid."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from awatt import arrays

E, E2 = np.e, np.e**2
#: (function, its arguments, the result by hand)
CASES: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {
    "softmax": (arrays.softmax, [[[0.0, 1.0, 2.0]]], [[1 / (1 + E + E2), E / (1 + E + E2), E2 / (1 + E + E2)]]),
    "softmax of large scores": (arrays.softmax, [[1e4, 1e4, -1e4]], [0.5, 0.5, 0.0]),
    "logistic": (arrays.logistic, [[0.0, 1.0, -2.0]], [0.5, E / (1 + E), 1 / (1 + E2)]),
    "masked softmax": (
        arrays.masked_softmax,
        [[[0.0, 1.0, 9.0], [3.0, 9.0, 9.0]], [[True, True, False], [True, False, False]]],
        [[1 / (1 + E), E / (1 + E), 0.0], [1.0, 0.0, 0.0]],
    ),
    "masked softmax without a valid place": (arrays.masked_softmax, [[5.0, -5.0], [False, False]], [0.5, 0.5]),
}


def as_numpy(value: Any) -> np.ndarray[Any, Any]:
    array = np.array(value)
    return array if array.dtype == bool else array.astype(np.float32)


@pytest.mark.parametrize("convert", [as_numpy, lambda value: torch.from_numpy(as_numpy(value))], ids=["numpy", "torch"])
@pytest.mark.parametrize("case", CASES)
def test_results_by_hand(case: str, convert: Callable[[Any], Any]) -> None:
    function, arguments, expected = CASES[case]
    found = function(*map(convert, arguments))
    assert type(found) is type(convert(arguments[0]))
    assert found.dtype == convert(arguments[0]).dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-7)


def random_scores(seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Scores (2, 3, 4, 7) and a mask with rows of every length, none at all among them."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(0, 8, size=(2, 3, 4))
    lengths[0, 0, 0], lengths[1, 2, 3] = 0, 7
    return chance.normal(0, 3, (2, 3, 4, 7)).astype(np.float32), np.arange(7) < lengths[..., None]


@pytest.mark.parametrize("seed", range(3))
def test_numpy_and_torch_give_the_same(seed: int) -> None:
    scores, mask = random_scores(seed)
    for function, arguments in ((arrays.softmax, [scores]), (arrays.masked_softmax, [scores, mask])):
        found = function(*arguments)
        like = function(*map(torch.from_numpy, arguments)).numpy()
        assert found.dtype == like.dtype == np.float32
        np.testing.assert_allclose(found, like, rtol=1e-6, atol=1e-6)


def test_a_fully_masked_row_has_no_nan_and_no_nan_gradient() -> None:
    scores, mask = map(torch.from_numpy, random_scores(0))
    scores.requires_grad_()
    found = arrays.masked_softmax(scores, mask)
    assert torch.isfinite(found).all()
    (found**2).sum().backward()
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


def test_masked_positions_change_nothing() -> None:
    scores, mask = random_scores(1)
    mask[..., 0] = True  # what a row without a valid place gives has no meaning
    other = np.where(mask, scores, np.float32(77))
    np.testing.assert_array_equal(arrays.masked_softmax(scores, mask), arrays.masked_softmax(other, mask))


def test_a_masked_softmax_sums_to_one_over_the_valid_positions() -> None:
    scores, mask = random_scores(2)
    weights = arrays.masked_softmax(scores, mask)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    assert (weights[~mask & mask.any(-1, keepdims=True)] == 0).all()


def test_the_namespace_is_that_of_the_array() -> None:
    assert arrays.namespace(np.zeros(1)) is np
    assert arrays.namespace(torch.zeros(1)) is torch
