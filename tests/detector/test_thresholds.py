"""Thresholds, the paper's softmax and tuning, with numbers computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from awatt import AspectDetector
from awatt.aspect_model.model import shares
from awatt.detector.thresholds import Threshold, best_threshold, change_thresholds, f1, resolve, tune


def aimed(aim: str) -> np.ndarray:  # type: ignore[type-arg]
    return np.array({"balanced": [0.4, 0.3], "precise": [0.9, 0.8], "thorough": [0.2, 0.1]}[aim])


def test_thresholds_of_one_call_reset_those_of_other_aspects() -> None:
    detector = AspectDetector.from_examples({"food": ["Tasty soup."], "staff": ["Rude waiter."]}, threshold=0.9)
    assert detector.thresholds({"food": 0.5}).tolist() == [0.5, 0.9]
    assert detector.thresholds().tolist() == [0.9, 0.9]


def test_shares_are_a_softmax_of_log_odds() -> None:
    found = shares(np.array([[0.5, 0.75, 0.5]]))  # odds 1, 3, 1
    np.testing.assert_allclose(found, [[0.2, 0.6, 0.2]])
    np.testing.assert_allclose(shares(np.array([[1.0, 0.0]])), [[1, 0]], atol=1e-9)
    np.testing.assert_allclose(shares(np.zeros((1, 4))), 0.25)


def test_thresholds_are_resolved_by_aspect() -> None:
    np.testing.assert_array_equal(resolve("auto", ["a", "b"], aimed), [0.4, 0.3])
    np.testing.assert_array_equal(resolve(1, ["a", "b"], aimed), [1, 1])
    np.testing.assert_array_equal(resolve("precise", ["a", "b"], aimed), [0.9, 0.8])
    np.testing.assert_array_equal(resolve({"b": "thorough"}, ["a", "b"], aimed), [0.4, 0.1])
    np.testing.assert_array_equal(resolve({"b": np.float32(0.5)}, ["a", "b"], aimed), [0.4, 0.5])


@pytest.mark.parametrize(
    ("own", "changed"),
    [(0.7, [0.5, 0.7]), ("precise", [0.5, 0.8]), ({"b": 0.2}, [0.5, 0.2]), ({"a": 0.1}, [0.5, 0.3])],
)
def test_a_threshold_for_one_aspect_reset_the_others(own: Threshold, changed: list[float]) -> None:
    np.testing.assert_array_equal(resolve(change_thresholds(own, {"a": 0.5}, "ab"), "ab", aimed), changed)
    assert change_thresholds(own, "thorough", "ab") == "thorough"


def test_micro_f1_over_pairs() -> None:
    truth = np.array([[True, False], [True, True]])
    assert f1(truth, truth) == 1
    assert f1(truth, ~truth) == 0
    assert f1(truth, np.array([[True, True], [False, True]])) == pytest.approx(2 * 2 / (3 + 3))
    assert f1(np.zeros((2, 2), bool), np.zeros((2, 2), bool)) == 1


def test_the_best_threshold_lies_between_the_scores() -> None:
    scores = np.array([[0.9], [0.8], [0.3], [0.1]])
    truth = np.array([[True], [True], [False], [False]])
    assert best_threshold(truth, scores, 0.5) == pytest.approx(0.55)
    assert best_threshold(np.ones((4, 1), bool), scores, 0.5) == pytest.approx(0.05)


def test_equal_scores_are_never_separated() -> None:
    scores = np.array([[0.7], [0.7], [0.2]])
    truth = np.array([[True], [False], [False]])
    assert best_threshold(truth, scores, 0.5) == pytest.approx(0.45)


def test_an_aspect_with_few_labels_gets_the_common_threshold() -> None:
    scores = np.array([[0.9, 0.6]] * 5 + [[0.1, 0.2]] * 5)
    truth = np.array([[True, False]] * 5 + [[False, False]] * 4 + [[False, True]])
    found = tune(truth, scores, ["often", "rare"], 0.5)
    assert found["often"] == pytest.approx(0.5)
    assert found["rare"] == best_threshold(truth, scores, 0.5)
