"""Proto-HATT: prototypes by attention over examples, distances by attention over features."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from awatt.encoders.base import Encoded
from awatt.models.base import DistanceModel, sentence_vectors
from awatt.models.ops import softmax


@dataclass(frozen=True)
class ProtoHattConfig:
    kernel: int = 5
    dropout: float = 0.5


class ProtoHatt(DistanceModel):
    """Gao et al. 2019, "Hybrid Attention-Based Prototypical Networks for Noisy Few-Shot Relation Classification".

    https://ojs.aaai.org/index.php/AAAI/article/view/4604
    """

    config_type = ProtoHattConfig
    config: ProtoHattConfig

    def __init__(self, dim: int, config: ProtoHattConfig) -> None:
        super().__init__(dim, config)
        self.shared = nn.Linear(dim, dim)
        size, padding = (config.kernel, 1), (config.kernel // 2, 0)
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, size, padding=padding),
            nn.ReLU(),
            nn.Conv2d(32, 64, size, padding=padding),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Conv2d(64, 1, size, padding=padding),
        )
        nn.init.ones_(self.features[-1].bias)

    def summarise(self, support: Encoded) -> Tensor:
        """(..., n_way, n_shot, dim)"""
        return sentence_vectors(support)

    def instance_attention(self, queries: Tensor, support: Tensor) -> Tensor:
        """(..., n_query, n_way, n_shot)"""
        products = self.shared(queries)[..., None, None, :] * self.shared(support)[..., None, :, :, :]
        return softmax(torch.tanh(products).sum(-1))

    def feature_attention(self, support: Tensor) -> Tensor:
        """(..., n_way, dim)"""
        maps = self.features(support.reshape(-1, 1, *support.shape[-2:]))
        return torch.relu(maps.mean(-2)).view(*support.shape[:-2], self.dim)

    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        queries = sentence_vectors(query)
        weights = self.instance_attention(queries, summary)
        prototypes = torch.einsum("...qnk,...nkd->...qnd", weights, summary)
        return (prototypes - queries[..., None, :]) ** 2 * self.feature_attention(summary)[..., None, :, :]
