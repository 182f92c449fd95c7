"""Which sentences are proposed."""

from __future__ import annotations

import numpy as np

from awatt.aspect_model.suggestions import choose, uncertainty


def test_uncertainty_is_highest_at_the_threshold() -> None:
    """Odds of 1/3 at the threshold; 1/9 and 1 are three times less and more."""
    found = uncertainty(np.array([[0.25], [0.1], [0.5]]), np.array([0.25]))
    np.testing.assert_allclose(found[:, 0], [1, 1 / 3, 1 / 3])


def test_aspects_take_turns() -> None:
    probabilities = np.array([[0.5, 0.0], [0.45, 0.0], [0.0, 0.3]])
    vectors = np.eye(3)
    assert choose(uncertainty(probabilities, np.array([0.5, 0.5])), vectors, 2).tolist() == [0, 2]


def test_no_two_alike() -> None:
    probabilities = np.array([[0.5], [0.5], [0.4]])
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert choose(uncertainty(probabilities, np.array([0.5])), vectors, 2).tolist() == [0, 2]


def test_no_more_than_there_are() -> None:
    assert len(choose(np.array([[1.0]]), np.ones((1, 1)), 10)) == 1
