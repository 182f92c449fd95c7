"""IMP: when a class gets another prototype, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from awatt.encoders.base import Block, Encoded
from awatt.models.imp import Imp, ImpConfig


@pytest.fixture
def model() -> Imp:
    return Imp(2, ImpConfig(alpha=0.1, sigma=1.0))


def words(*rows: list[float]) -> Encoded:
    """One word per sentence, at these positions on the first axis; sentences of shape (n_rows, n_positions)."""
    tokens = torch.stack([torch.tensor(rows), torch.zeros(len(rows), len(rows[0]))], -1)[..., None, :]
    return Block(tokens, torch.ones(tokens.shape[:-1], dtype=torch.bool)).pack()


def positions(prototypes: Tensor) -> list[float]:
    """Positions of a class's distinct prototypes on the first axis."""
    return sorted({round(value, 2) for value in prototypes[:, 0].tolist()})


def test_lambda_by_hand(model: Imp) -> None:
    """Class means at 0 and 2: the variance is 1 and 0 in the two dimensions, so rho = 0.5."""
    limit = model.limit(torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    assert limit.item() == pytest.approx(-2 * math.log(0.1 / (1 + 0.5) ** (2 / 2)))


def test_a_class_of_two_groups_has_two_prototypes(model: Imp) -> None:
    """The cluster at the class mean, 10, has no example near it and is dropped; queries use the nearest of the rest."""
    summary = model.summarise(words([0.0, 0.2, 20.0, 20.0], [9.0, 10.0, 10.0, 11.0]))
    assert summary.shape == (2, 5, 2)
    assert positions(summary[0]) == [0.1, 20.0]
    assert positions(summary[1]) == [10.0]
    scores = model.scores(words([19.0, 10.0]), summary[None])[0]
    assert scores[0].tolist() == pytest.approx([-1 / 2, -81 / 2])
    assert scores[1].tolist() == pytest.approx([-(9.9**2) / 2, 0.0], abs=1e-4)


def test_a_larger_variance_keeps_a_class_together() -> None:
    summary = Imp(2, ImpConfig(alpha=0.1, sigma=100.0)).summarise(words([0.0, 0.2, 20.0, 20.0]))
    assert positions(summary[0]) == [10.05]
