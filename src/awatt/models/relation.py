"""Relation Network: how well a query fits a class is itself learned."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from awatt.encoders.base import Encoded
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class RelationConfig:
    """Size of the relation module."""

    hidden: int = 50


class Relation(FewShotModel):
    """Sung et al. 2018, "Learning to Compare: Relation Network for Few-Shot Learning".

    https://arxiv.org/abs/1711.06025

    The relation module is two linear layers on query and class side by side; the paper's convolutions before them are
    for images. Scores are the logits of the paper's relation score in (0, 1), so that it is ``sigmoid(scores)``, and
    the ranking of the classes is a softmax like everybody's. Sharing out the relation scores themselves is worse on
    validation, and fails where all of them round to zero.
    """

    config_type = RelationConfig
    config: RelationConfig

    def __init__(self, dim: int, config: RelationConfig) -> None:
        super().__init__(dim, config)
        # A linear layer on two vectors side by side is the sum of one on each: a class meets it once, not per query.
        self.of_query = nn.Linear(dim, config.hidden)
        self.of_class = nn.Linear(dim, config.hidden, bias=False)
        self.relation = nn.Linear(config.hidden, 1, bias=False)

    def summarise(self, support: Encoded) -> Tensor:
        """One vector a class: the mean of its examples, not the paper's sum, to suit any n_shot. (..., n_way, dim)"""
        return sentence_vectors(support).mean(-2)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        queries, classes = self.of_query(sentence_vectors(query)), self.of_class(summary)
        pairs = queries[..., :, None, :] + classes[..., None, :, :]  # (..., n_query, n_way, hidden)
        return self.relation(pairs.relu())[..., 0]
