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
    """So training starts close to the Prototypical Network, and no feature is dead."""
    weights = model.feature_attention(torch.randn(3, n_shot, 2))
    assert weights.shape == (3, 2)
    assert (weights > 0.5).all()
    assert (weights < 1.5).all()


def test_the_convolutions_span_all_examples() -> None:
    """With kernel = K the last one reduces K vectors to one."""
    model = ProtoHatt(1, ProtoHatt.config_type(kernel=2)).eval()
    images: list[torch.Size] = []
    for layer in model.importance:
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda layer, given, found: images.append(found.shape))
    model.feature_attention(torch.randn(1, 2, 1))
    assert images == [(1, 32, 2, 1), (1, 64, 2, 1), (1, 1, 1, 1)]
    # All weights 0 but the last bias (1) and one path: 0.5 a + 0.5 b of the last layer's first channel.
    for value in model.parameters():
        nn.init.zeros_(value)
    first, second, last = (layer for layer in model.importance if isinstance(layer, nn.Conv2d))
    # Padded at the end, a kernel of 2 looks at an example and the next one; here at the example alone.
    first.weight.data[0, 0, 0] = second.weight.data[0, 0, 0] = 1.0
    last.weight.data[0, 0, :, 0] = 0.5
    last.bias.data[:] = 1.0  # type: ignore[union-attr]
    # 0.5 * 2 + 0.5 * 4 + 1; negative numbers would be cut off on the way
    assert model.feature_attention(torch.tensor([[[2.0], [4.0]]])).item() == 4.0
    # A single example is padded with zero: 0.5 * 2 + 1. Of three, the mean of 0.5 * (2 + 4) + 1 and 0.5 * (4 + 6) + 1.
    assert model.feature_attention(torch.tensor([[[2.0]]])).item() == 2.0
    assert model.feature_attention(torch.tensor([[[2.0], [4.0], [6.0]]])).item() == 5.0
