"""Prototypical Network: a class is the mean of its examples."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from awatt.encoders.base import Encoded
from awatt.models.base import DistanceModel, sentence_vectors


@dataclass(frozen=True)
class PrototypicalConfig:
    """The method has no settings."""


class Prototypical(DistanceModel):
    """Snell et al. 2017, "Prototypical Networks for Few-shot Learning".

    https://arxiv.org/abs/1703.05175
    """

    config_type = PrototypicalConfig
    config: PrototypicalConfig

    def summarise(self, support: Encoded) -> Tensor:
        """The prototypes (Eq. 1). (..., n_way, dim)"""
        return sentence_vectors(support).mean(-2)

    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        return (summary[..., None, :, :] - sentence_vectors(query)[..., None, :]) ** 2
