"""Relation Network: its scores and its loss by hand, and our variant."""

from __future__ import annotations

import pytest
import torch

from awatt.encoders.base import Block
from awatt.models.relation import Relation, RelationConfig, RelationSoftmax


def prepared(kind: type[Relation]) -> Relation:
    """One hidden unit: relu(query + 2 class - 1), then times 3, and minus 4 where there is a bias."""
    model = kind(1, RelationConfig(hidden=1))
    for layer, weight in ((model.of_query, 1.0), (model.of_class, 2.0), (model.relation, 3.0)):
        layer.weight.data.fill_(weight)
    model.of_query.bias.data.fill_(-1.0)
    if kind.has_bias:
        model.relation.bias.data.fill_(-4.0)
    return model


def one_word(*values: float) -> Block:
    tokens = torch.tensor(values)[:, None, None]
    return Block(tokens, torch.ones(len(values), 1, dtype=torch.bool))


SUPPORT = Block(torch.tensor([[0.5, 0.5], [0.0, -1.0]])[..., None, None], torch.ones(2, 2, 1, dtype=torch.bool))


def test_relation_scores_by_hand() -> None:
    model = prepared(Relation)
    summary = model.summarise(SUPPORT.pack())
    assert summary.flatten().tolist() == [1.0, -1.0]  # sums of the examples
    found = model.scores(one_word(0.5).pack(), summary)
    # 3 relu(0.5 + 2 - 1) - 4 = 0.5 and 3 relu(0.5 - 2 - 1) - 4 = -4
    assert found.flatten().tolist() == [0.5, -4.0]
    # 1 / (1 + e^-0.5) and 1 / (1 + e^4), independently
    assert model.normalise(found).flatten().tolist() == pytest.approx([0.622459, 0.017986], abs=1e-6)


def test_its_loss_uses_targets_of_zero_and_one() -> None:
    model = prepared(Relation)
    scores, both = torch.tensor([[0.0, 0.0]]), torch.tensor([[True, True]])
    # Relation scores of 0.5 against 1 and 1: 0.25 + 0.25. Against the normalised target it would be 0.
    assert model.own_loss(scores, both).item() == pytest.approx(0.5)


def test_our_variant_takes_the_mean_and_a_softmax() -> None:
    model = prepared(RelationSoftmax)
    summary = model.summarise(SUPPORT.pack())
    assert summary.flatten().tolist() == [0.5, -0.5]
    found = model.scores(one_word(0.5).pack(), summary)
    # 3 relu(0.5 + 1 - 1) = 1.5 and 3 relu(0.5 - 1 - 1) = 0
    assert found.flatten().tolist() == [1.5, 0.0]
    assert model.normalise(found).flatten().tolist() == pytest.approx([0.817574, 0.182426], abs=1e-6)
