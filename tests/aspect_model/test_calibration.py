"""The calibration: hand-computed cases, scikit-learn as the oracle, and what the prior holds on to."""

from __future__ import annotations

import numpy as np
import pytest

from awatt.aspect_model.calibration import (
    CalibrationPrior,
    assign_folds,
    calibrate,
    drawn_weights,
    representative_weights,
    uncalibrated,
)


def test_without_labels_the_model_keeps_its_own_calibration() -> None:
    values = np.array([[[0.5, 9.0], [-1.0, 9.0]]])
    calibration = uncalibrated(2, 2, CalibrationPrior())
    np.testing.assert_allclose(calibration.logits(values), [[0.5, -1.0]])
    np.testing.assert_allclose(np.diag(calibration.covariance), [0.25, 0.25, 1, 1, 1])


def test_no_weight_is_as_no_label() -> None:
    values, labels = np.zeros((3, 1, 1)), np.ones((3, 1), dtype=bool)
    calibration = calibrate(values, labels, np.zeros(3), CalibrationPrior())
    assert calibration.shift[0] == pytest.approx(0)


def test_many_labels_decide() -> None:
    """Logits of 0, a quarter of them true: the shift is near log(1/3), a common and an aspect's part of it."""
    values, labels = np.zeros((4000, 1, 1)), (np.arange(4000) % 4 == 0)[:, None]
    calibration = calibrate(values, labels, np.ones(4000), CalibrationPrior())
    assert calibration.shift[0] == pytest.approx(np.log(1 / 3), abs=0.01)


def test_a_wide_prior_is_logistic_regression() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 1, 2))
    labels = rng.random((300, 1)) < 1 / (1 + np.exp(-(2 * values[..., 0] - values[..., 1] + 0.5)))
    found = calibrate(values, labels, np.ones(300), CalibrationPrior(100, 100, 100, 100))
    oracle = linear_model.LogisticRegression(C=1e6).fit(values[:, 0], labels[:, 0])
    np.testing.assert_allclose(found.weights, oracle.coef_[0], rtol=1e-3)
    np.testing.assert_allclose(found.shift, oracle.intercept_, rtol=1e-2)


def test_an_aspect_with_few_labels_follows_the_others() -> None:
    """Nine aspects are overestimated; the tenth, almost without labels, is corrected in the same direction."""
    values, labels = np.zeros((200, 10, 1)), np.zeros((200, 10), dtype=bool)
    labels[:20, :9] = True
    calibration = calibrate(values[:, :], labels, np.ones(200), CalibrationPrior())
    assert calibration.shift[9] < -0.5


def test_the_more_labels_the_surer() -> None:
    rng = np.random.default_rng(0)
    spreads = []
    for count in (10, 100, 1000):
        labels = rng.random((count, 2)) < 0.3
        covariance = calibrate(np.zeros((count, 2, 1)), labels, np.ones(count), CalibrationPrior()).covariance
        spreads.append(covariance[1, 1] + covariance[2, 2] + 2 * covariance[1, 2])
    assert spreads[0] > spreads[1] > spreads[2]


def test_examples_that_were_chosen_count_less() -> None:
    """The file: 80 % off-topic, each aspect 10 %. 20 chosen examples, and 10 sentences as they came: 8 off-topic."""
    labels = np.zeros((30, 2), dtype=bool)
    labels[:11, 0] = labels[11:22, 1] = True
    file = np.zeros((100, 2))
    file[:10, 0] = file[10:20, 1] = 1
    weights = representative_weights(labels, file)
    np.testing.assert_allclose(weights[22:], 1)  # off-topic
    np.testing.assert_allclose(weights[:22], 10 * 0.1 / 11)  # a sample of 10 would have one of each


def test_examples_alone_say_nothing_of_a_file_with_off_topic_sentences() -> None:
    file = np.zeros((100, 2))
    file[:10, 0] = file[10:20, 1] = 1
    assert representative_weights(np.eye(2, dtype=bool), file).sum() == 0


def test_labels_with_off_topic_ones_stand_for_a_file() -> None:
    """6 of one aspect, 8 of another, 20 off-topic: of each 2.5 may have been chosen."""
    labels = np.zeros((34, 2), dtype=bool)
    labels[:6, 0] = labels[6:14, 1] = True
    wanted = [*[3.5 / 6] * 6, *[5.5 / 8] * 8, *[17.5 / 20] * 20]
    np.testing.assert_allclose(drawn_weights(labels), wanted)
    labels[0] = True  # with both aspects: 6 and 9
    assert drawn_weights(labels)[0] == pytest.approx(3.5 / 6)
    assert not drawn_weights(labels[:18]).any()  # four off-topic ones are too few
    assert not drawn_weights(labels[10:]).any()  # nearly all of them
    assert drawn_weights(np.eye(2, dtype=bool).repeat(20, 0)).all()  # many, none of them off-topic


def test_folds_share_the_aspects_out() -> None:
    labels = np.repeat(np.eye(3, dtype=bool), 5, axis=0)
    folds = assign_folds(labels, 5)
    assert [sorted(folds[rows].tolist()) for rows in (slice(5), slice(5, 10), slice(10, 15))] == [[0, 1, 2, 3, 4]] * 3
    uneven = np.repeat(np.eye(3, dtype=bool), [4, 6, 5], axis=0)
    np.testing.assert_array_equal(assign_folds(uneven[:, [2, 0, 1]], 5), assign_folds(uneven, 5))
