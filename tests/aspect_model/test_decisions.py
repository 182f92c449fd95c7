"""Thresholds from probabilities, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from awatt.aspect_model.decisions import common_threshold, expect, move_towards, thresholds

RANKED = np.array([0.9, 0.6, 0.3, 0.2])  # sum 2.0


def test_what_each_cut_would_give() -> None:
    expected = expect(RANKED, np.ones(4))
    np.testing.assert_allclose(expected.precision, [0.9, 0.75, 0.6, 0.5])
    np.testing.assert_allclose(expected.recall, [0.45, 0.75, 0.9, 1.0])
    np.testing.assert_allclose(expected.f1, [2 * 0.9 / 3, 2 * 1.5 / 4, 2 * 1.8 / 5, 2 * 2.0 / 6])


@pytest.mark.parametrize(("aim", "cut"), [("balanced", 0.45), ("precise", 0.75), ("thorough", 0.25)])
def test_a_threshold_lies_half_way_between_two_sentences(aim: str, cut: float) -> None:
    assert thresholds(RANKED[[2, 0, 3, 1], None], aim)[0] == pytest.approx(cut)


def test_nothing_is_precise_enough() -> None:
    assert thresholds(np.array([[0.5], [0.2]]), "precise")[0] == 0.9


@pytest.mark.parametrize("probability", [0.0, 1e-15])
def test_thorough_does_not_fail_for_an_aspect_without_any_probability(probability: float) -> None:
    cut = thresholds(np.full((20, 1), probability), "thorough")[0]
    assert 0 <= cut <= probability


def test_weights_count_as_repeated_sentences() -> None:
    twice = thresholds(np.array([[0.9], [0.6], [0.6], [0.1]]), "balanced")
    weighted = thresholds(np.array([[0.9], [0.6], [0.1]]), "balanced", np.array([1.0, 2.0, 1.0]))
    np.testing.assert_allclose(twice, weighted)


def test_a_rare_aspect_has_a_lower_threshold_than_a_sure_one() -> None:
    rare, sure = np.array([0.3, *[0.02] * 20]), np.array([*[0.95] * 10, *[0.02] * 11])
    cut = thresholds(np.stack([rare, sure], 1), "balanced")
    assert cut[0] < cut[1]


def test_the_common_threshold_has_the_best_expected_macro_f1() -> None:
    probabilities = np.array([[0.9, 0.2], [0.4, 0.5], [0.1, 0.05], [0.05, 0.05]])
    weights = np.array([1.0, 2.0, 1.0, 1.0])

    def expected(value: float) -> float:
        found = probabilities >= value
        right = (weights[:, None] * probabilities * found).sum(0)
        return float((2 * right / (weights @ found + weights @ probabilities)).mean())

    best = common_threshold(probabilities, weights)
    assert expected(best) == max(expected(value) for value in np.linspace(0.02, 0.7, 69))


def test_thresholds_move_in_log_odds() -> None:
    odds = np.array([1 / 4, 4.0])
    moved = move_towards(odds / (1 + odds), 0.5, 0.5)
    np.testing.assert_allclose(moved, [1 / 3, 2 / 3])
    np.testing.assert_allclose(move_towards(np.array([0.1, 0.7]), 0.3, 1.0), [0.3, 0.3])
