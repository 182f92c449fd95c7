"""Ridge regression and its left-out predictions."""

from __future__ import annotations

import numpy as np
import pytest

from awatt.aspect_model.classifiers import PLENTY, Settings, follow_labels, ridge


@pytest.mark.parametrize("n_rows", [6, 30])  # below and above the dimension: both closed forms
def test_left_out_predictions_are_those_of_a_fit_without_the_row(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(1, n_rows, 10)), rng.choice([-1.0, 1.0], (2, n_rows))
    weights = rng.uniform(0.5, 2, (2, n_rows))
    _, left_out = ridge(rows, targets, weights, 0.3, n_left_out=3)
    for row in range(3):
        kept = np.arange(n_rows) != row
        refitted, _ = ridge(rows[:, kept], targets[:, kept], weights[:, kept], 0.3)
        np.testing.assert_allclose(left_out[:, row], refitted @ rows[0, row], atol=1e-8)


def test_ridge_by_hand() -> None:
    """One row (2,), target 1, weight 1, penalty 1: 2 / (4 + 1)."""
    found, _ = ridge(np.array([[[2.0]]]), np.array([[1.0]]), np.array([[1.0]]), 1.0)
    np.testing.assert_allclose(found, [[0.4]])


def test_the_penalty_falls_when_labels_are_many() -> None:
    settings = Settings(12, 24, 12, 0.5, 0.05, 0.03, 0.4, np.zeros(2, dtype=np.float32))
    assert follow_labels(settings, PLENTY) == settings
    assert follow_labels(settings, 32 * PLENTY).penalty == pytest.approx(0.05 / 8)
