"""Ridge regression and its left-out predictions."""

from __future__ import annotations

import numpy as np
import pytest

from awatt.aspect_model.classifiers import PLENTY, Settings, follow_labels
from awatt.aspect_model.ridge import approach_ridge, invert_lower, ridge, shared_ridge


@pytest.mark.parametrize("n_rows", [6, 30])  # below and above the dimension: both closed forms
def test_left_out_predictions_are_those_of_a_fit_without_the_row(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(2, n_rows, 10)), rng.choice([-1.0, 1.0], (2, n_rows))
    weights = rng.uniform(0.5, 2, (2, n_rows))
    _, left_out = ridge(rows, targets, weights, 0.3, n_left_out=3)
    for row in range(3):
        kept = np.arange(n_rows) != row
        refitted, _ = ridge(rows[:, kept], targets[:, kept], weights[:, kept], 0.3)
        np.testing.assert_allclose(left_out[:, row], np.einsum("nd,nd->n", refitted, rows[:, row]), atol=1e-8)


def test_ridge_by_hand() -> None:
    """One row (2,), target 1, weight 1, penalty 1: 2 / (4 + 1)."""
    found, _ = ridge(np.array([[[2.0]]]), np.array([[1.0]]), np.array([[1.0]]), 1.0)
    np.testing.assert_allclose(found, [[0.4]])


def test_single_precision_is_exact_to_the_sixth_digit() -> None:
    """Sums over rows in single precision, and a thousand rows of little weight beside a few of much."""
    rng = np.random.default_rng(1)
    rows, targets = rng.normal(size=(1, 1000, 150)) / 12, rng.choice([-1.0, 1.0], (1, 1000))
    weights = np.where(np.arange(1000) < 5, 0.2, 0.001)[None]
    wide, wide_left_out = ridge(rows, targets, weights, 0.01, n_left_out=900)
    single, left_out = ridge(*(each.astype(np.float32) for each in (rows, targets, weights)), 0.01, n_left_out=900)
    np.testing.assert_allclose(single, wide, atol=2e-6)
    np.testing.assert_allclose(left_out, wide_left_out, atol=2e-6)


@pytest.mark.parametrize(("n_rows", "n", "heavy"), [(4, 3, 0.2), (30, 3, 0.2), (30, 6, 0.1), (30, 6, 0.7)])
def test_regressions_on_the_same_rows(n_rows: int, n: int, heavy: float) -> None:
    """One by one, by one inverse for many, and with too many heavier rows for it; the last has other weights."""
    rng = np.random.default_rng(2)
    rows, targets = rng.normal(size=(n_rows, 10)), rng.choice([-1.0, 1.0], (n_rows, n))
    weights = np.where(rng.random((n_rows, n)) < heavy, 0.5, 0.1)
    weights[:, -1] *= 2
    expected, _ = ridge(np.stack([rows] * n), targets.T, weights.T, 0.3)
    groups = [(rows[:3], rows[3:]), (targets[:3], targets[3:]), (weights[:3], weights[3:])]
    np.testing.assert_allclose(shared_ridge(*groups, 0.3), expected, atol=1e-10)


@pytest.mark.parametrize("n_rows", [8, 300, 5000])  # the last in parts
def test_a_few_steps_come_close_to_the_solution(n_rows: int) -> None:
    rng = np.random.default_rng(4)
    shared = rng.normal(size=40) / 6  # as sentences have much in common
    rows = (shared + rng.normal(size=(2, n_rows, 40)) / 6).astype(np.float32)
    targets = rng.choice(np.array([-1, 1], np.float32), (2, n_rows))
    weights = np.full((2, n_rows), 2 / n_rows, np.float32)
    exact, _ = ridge(rows, targets, weights, 0.02)
    found = approach_ridge(rows, targets, weights, 0.02, np.zeros_like(exact))
    np.testing.assert_allclose(found, exact, atol=0.05 * np.abs(exact).max())
    alike = ridge(rows, targets, weights, 0.04)[0]  # a start nearer by
    nearer = approach_ridge(rows, targets, weights, 0.02, alike)
    assert np.abs(nearer - exact).max() < np.abs(alike - exact).max() / 10
    np.testing.assert_array_equal(approach_ridge(rows * 0, targets, weights, 0.02, exact * 0), 0)


def test_the_inverse_of_a_triangular_matrix() -> None:
    matrix = np.tril(np.random.default_rng(3).normal(size=(150, 150)) / 20) + 2 * np.eye(150)
    np.testing.assert_allclose(invert_lower(matrix) @ matrix, np.eye(150), atol=1e-10)


def test_the_penalty_falls_when_labels_are_many() -> None:
    settings = Settings(12, 24, 12, 0.5, 0.05, 0.03, 0.4, np.zeros(2, dtype=np.float32))
    assert follow_labels(settings, PLENTY) == settings
    assert follow_labels(settings, 32 * PLENTY).penalty == pytest.approx(0.05 / 8)
