"""Relation Network: a learned score of how well a query fits a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from awatt.config import check_at_least
from awatt.encoders.base import Encoded
from awatt.models.base import FewShotModel, sentence_vectors
from awatt.models.losses import relation_error


@dataclass(frozen=True)
class RelationConfig:
    """Size of the relation module."""

    hidden: int = 50

    def __post_init__(self) -> None:
        check_at_least(self, "model", hidden=1)


class Relation(FewShotModel):
    """Sung et al. 2018, "Learning to Compare: Relation Network for Few-Shot Learning".

    https://arxiv.org/abs/1711.06025

    The relation module is two linear layers on the concatenated query and class vectors, as in the paper; the
    convolutions before them are for images and left out. ``scores`` are the logits of the relation scores, each of
    which is in (0, 1); they do not sum to one.
    """

    config_type = RelationConfig
    config: RelationConfig
    sums_to_one = False
    #: whether the last layer has a bias; a softmax over the classes would cancel it
    has_bias: ClassVar[bool] = True

    def __init__(self, dim: int, config: RelationConfig) -> None:
        super().__init__(dim, config)
        # A linear layer on two concatenated vectors is a sum of two layers, so a class is mapped once, not per query.
        self.of_query = nn.Linear(dim, config.hidden)
        self.of_class = nn.Linear(dim, config.hidden, bias=False)
        self.relation = nn.Linear(config.hidden, 1, bias=self.has_bias)

    def summarise(self, support: Encoded) -> Tensor:
        """One vector per class: the sum of its examples. (..., n_way, dim)"""
        return sentence_vectors(support).sum(-2)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        queries, classes = self.of_query(sentence_vectors(query)), self.of_class(summary)
        pairs = queries[..., :, None, :] + classes[..., None, :, :]  # (..., n_query, n_way, hidden)
        return self.relation(pairs.relu())[..., 0]

    def normalise(self, scores: Tensor) -> Tensor:
        """The relation scores."""
        return scores.sigmoid()

    def own_loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        return relation_error(self.normalise(scores), targets)


class RelationSoftmax(Relation):
    """Our variant of Sung et al. 2018. https://arxiv.org/abs/1711.06025

    The ranking is a softmax over the logits, as in the other methods, and a class is the mean of its examples, so that
    n_shot does not change the scale.
    """

    sums_to_one = True
    has_bias = False

    def summarise(self, support: Encoded) -> Tensor:
        """One vector per class: the mean of its examples. (..., n_way, dim)"""
        return sentence_vectors(support).mean(-2)

    def normalise(self, scores: Tensor) -> Tensor:
        return FewShotModel.normalise(self, scores)

    def own_loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        return FewShotModel.own_loss(self, scores, targets)
