"""Relation Network: how well a query fits a class is itself learned."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from awatt.encoders.base import Encoded
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class RelationConfig:
    hidden: int = 50


class Relation(FewShotModel):
    """Sung et al. 2018, "Learning to Compare: Relation Network for Few-Shot Learning".

    https://arxiv.org/abs/1711.06025
    """

    config_type = RelationConfig
    config: RelationConfig

    def __init__(self, dim: int, config: RelationConfig) -> None:
        super().__init__(dim, config)
        self.query = nn.Linear(dim, config.hidden)
        self.aspect = nn.Linear(dim, config.hidden, bias=False)
        self.relation = nn.Sequential(nn.ReLU(), nn.Linear(config.hidden, 1))

    def summarise(self, support: Encoded) -> Tensor:
        return sentence_vectors(support).mean(-2)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        pairs = self.query(sentence_vectors(query))[..., None, :] + self.aspect(summary)[..., None, :, :]
        return self.relation(pairs)[..., 0]
