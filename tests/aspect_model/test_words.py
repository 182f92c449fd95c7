"""What single words add, against a ridge regression that is written out."""

from __future__ import annotations

import numpy as np
import pytest

from awatt.arrays import Sentences
from awatt.aspect_model.words import MOST, PENALTY, SCALE, learn_words, no_words, score_words

NORMS = np.array([1.0, 2.0, 0.5, 1.5, 3.0])


def sentences(*ids: list[int]) -> Sentences:
    return Sentences(np.array([i for row in ids for i in row], dtype=np.int64), np.array([len(row) for row in ids]))


def unit_rows(*ids: list[int]) -> np.ndarray:
    rows = np.zeros((len(ids), len(NORMS)))
    for row, words in zip(rows, ids, strict=True):
        row[words] = NORMS[words]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


LABELLED = ([0, 1, 1], [2, 3], [1, 2], [0, 3, 0])
ERRORS = np.array([[0.9, -0.1], [-0.2, 0.4], [0.5, 0.0], [-0.3, -0.6]])
WEIGHTS = np.array([1.0, 0.5, 1.0, 0.25])


def ridge(rows: np.ndarray, errors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The normal equations, over the vocabulary."""
    weighted = rows * weights[:, None]
    return np.linalg.solve(rows.T @ weighted + PENALTY * np.eye(rows.shape[1]), weighted.T @ errors)


def test_words_are_a_weighted_ridge_regression() -> None:
    learned, _ = learn_words(NORMS, sentences(*LABELLED), ERRORS, WEIGHTS)
    new = ([1, 3], [0, 2, 2], [4, 1])
    expected = SCALE * unit_rows(*new) @ ridge(unit_rows(*LABELLED), ERRORS, WEIGHTS)
    assert score_words(learned, NORMS, sentences(*new)) == pytest.approx(expected)


def test_each_sentence_is_left_out() -> None:
    _, left_out = learn_words(NORMS, sentences(*LABELLED), ERRORS, WEIGHTS)
    rows = unit_rows(*LABELLED)
    for number in range(len(rows)):
        others = np.arange(len(rows)) != number
        expected = SCALE * rows[number] @ ridge(rows[others], ERRORS[others], WEIGHTS[others])
        assert left_out[number] == pytest.approx(expected)


def test_words_that_were_never_labelled_say_nothing() -> None:
    learned, _ = learn_words(NORMS, sentences(*LABELLED), ERRORS, WEIGHTS)
    assert (score_words(learned, NORMS, sentences([4], [4, 4])) == 0).all()
    assert (score_words(no_words(3), NORMS, sentences([0, 1])) == np.zeros((1, 3))).all()


def test_thousands_of_labels_are_thinned_out() -> None:
    rng = np.random.default_rng(0)
    many = Sentences(rng.integers(0, 5, 3 * (MOST + 500)), np.full(MOST + 500, 3))
    learned, left_out = learn_words(NORMS, many, rng.normal(size=(MOST + 500, 1)), np.ones(MOST + 500))
    assert left_out.shape == (MOST + 500, 1)
    assert np.isfinite(left_out).all()
    assert learned.ids.tolist() == [0, 1, 2, 3, 4]
