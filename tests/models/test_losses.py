"""Losses by hand."""

from __future__ import annotations

import math

import pytest
import torch

from awatt.models.losses import cross_entropy, relation_error, squared_error

TARGETS = torch.tensor([[True, True, False]])


def test_squared_error_uses_targets_that_sum_to_one() -> None:
    # against 0.5, 0.5, 0: 0.1^2 + 0.2^2 + 0.1^2
    assert squared_error(torch.tensor([[0.6, 0.3, 0.1]]), TARGETS).item() == pytest.approx(0.06)


def test_relation_error_uses_targets_of_zero_and_one() -> None:
    # 0.4^2 + 0.7^2 + 0.1^2
    assert relation_error(torch.tensor([[0.6, 0.3, 0.1]]), TARGETS).item() == pytest.approx(0.66)


def test_cross_entropy_is_averaged_over_the_classes_of_a_query() -> None:
    scores = torch.tensor([[math.log(0.6), math.log(0.3), math.log(0.1)]])
    # -(ln 0.6 + ln 0.3) / 2 = (0.510826 + 1.203973) / 2
    assert cross_entropy(scores, TARGETS).item() == pytest.approx(0.857399, abs=1e-6)
    assert cross_entropy(scores, torch.tensor([[False, False, True]])).item() == pytest.approx(2.302585, abs=1e-6)
    assert cross_entropy(scores, torch.tensor([[False] * 3])).item() == 0.0  # no class
