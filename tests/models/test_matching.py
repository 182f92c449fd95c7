"""Matching Network: the attention mass of a class, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from awatt.encoders.base import Block
from awatt.errors import AwattError
from awatt.models.matching import Matching, MatchingConfig


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_softmax_of_the_scores_is_the_attention_mass(scale: float) -> None:
    """Cosines 1 and 0 in one class, -1 and 0 in the other; lengths do not matter."""
    support = torch.tensor([[[3.0, 0.0], [0.0, 0.5]], [[-2.0, 0.0], [0.0, -1.0]]])[..., None, :]
    query = torch.tensor([[[7.0, 0.0]]])
    model = Matching(2, MatchingConfig(scale=scale))
    summary = model.summarise(Block(support, torch.ones(2, 2, 1, dtype=torch.bool)).pack())
    shares = model.normalise(model.scores(Block(query, torch.ones(1, 1, dtype=torch.bool)).pack(), summary))
    mass = [math.exp(scale) + 1, math.exp(-scale) + 1]
    assert shares[0].tolist() == pytest.approx([mass[0] / sum(mass), mass[1] / sum(mass)])


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_a_scale_that_ranks_the_farthest_class_first_was_accepted(scale: float) -> None:
    with pytest.raises(AwattError, match=rf"model\.scale is {scale}, needs a number above 0\."):
        MatchingConfig(scale=scale)
