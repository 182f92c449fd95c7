"""Saving what was learned, and the sample of a file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from awatt.aspect_model.arrays import from_arrays, to_arrays
from awatt.aspect_model.reviews import sample_reviews


class Inner(NamedTuple):
    """A part."""

    values: np.ndarray  # type: ignore[type-arg]


class Outer(NamedTuple):
    """A whole."""

    inner: Inner
    maybe: Inner | None
    number: float


def test_there_and_back() -> None:
    for maybe in (None, Inner(np.ones(3))):
        given = Outer(Inner(np.arange(2.0)), maybe, 0.5)
        arrays = to_arrays(given)
        assert set(arrays) == {"inner.values", "number"} | ({"maybe.values"} if maybe else set())
        found = from_arrays(Outer, arrays)
        assert found.number == 0.5
        assert (found.maybe is None) == (maybe is None)
        np.testing.assert_array_equal(found.inner.values, [0, 1])


def test_a_sample_is_spread_over_the_file() -> None:
    assert sample_reviews(["a", "b", "c", "d", "e"], 3) == ["a", "c", "e"]


def test_repeated_and_empty_texts_are_left_out() -> None:
    assert sample_reviews(["a", " a ", "...", "", "b"]) == ["a", "b"]
