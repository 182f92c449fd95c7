"""Proto-HATT: its two kinds of attention."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from awatt.models.proto_hatt import ProtoHatt


@pytest.fixture
def model() -> ProtoHatt:
    torch.manual_seed(0)
    return ProtoHatt(2, ProtoHatt.config_type()).eval()


def test_instance_attention_by_hand(model: ProtoHatt) -> None:
    """With the identity as the shared map: tanh(1) for the example that is like the query, 0 for the other."""
    nn.init.eye_(model.shared.weight)
    nn.init.zeros_(model.shared.bias)
    weights = model.instance_attention(torch.tensor([[1.0, 0.0]]), torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
    first = math.exp(math.tanh(1)) / (math.exp(math.tanh(1)) + 1)
    assert weights[0, 0].tolist() == pytest.approx([first, 1 - first])


@pytest.mark.parametrize("n_shot", [1, 2, 5, 10])
def test_feature_attention_is_close_to_one_at_the_start(model: ProtoHatt, n_shot: int) -> None:
    """So that training begins near the Prototypical Network and no feature is dead."""
    weights = model.feature_attention(torch.randn(3, n_shot, 2))
    assert weights.shape == (3, 2)
    assert (weights > 0.5).all()
    assert (weights < 1.5).all()
