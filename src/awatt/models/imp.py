"""Infinite Mixture Prototypes: a class has as many prototypes as its examples need."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor, nn

from awatt.encoders.base import Encoded
from awatt.models.base import DistanceModel, sentence_vectors
from awatt.models.ops import masked_softmax


@dataclass(frozen=True)
class ImpConfig:
    #: concentration of the Dirichlet process: more clusters the larger it is
    alpha: float = 0.1
    #: the clusters' variance at the start; it is learned
    sigma: float = 1.0


class Imp(DistanceModel):
    """Allen et al. 2019, "Infinite Mixture Prototypes for Few-Shot Learning".

    https://arxiv.org/abs/1902.04552
    """

    config_type = ImpConfig
    config: ImpConfig

    def __init__(self, dim: int, config: ImpConfig) -> None:
        super().__init__(dim, config)
        self.log_sigma = nn.Parameter(torch.tensor(log(config.sigma)))

    def threshold(self, prototypes: Tensor) -> Tensor:
        """Lambda, from how much the class means differ: -2 sigma log(alpha / (1 + rho / sigma)^(dim / 2)). (..., 1)

        prototypes (..., n_way, dim)
        """
        sigma = self.log_sigma.exp()
        rho = prototypes.var(-2, correction=0).mean(-1, keepdim=True)
        return 2 * sigma * -log(self.config.alpha) + self.dim * sigma * torch.log1p(rho / sigma)

    def summarise(self, support: Encoded) -> Tensor:
        """Prototypes of each class; places that it does not need repeat one of its others. (..., n_way, 1 + n_shot, dim)"""
        vectors = sentence_vectors(support)
        with torch.no_grad():
            shares = self._assign(vectors)  # (..., n_way, n_shot, 1 + n_shot)
            mass = shares.sum(-2)  # (..., n_way, 1 + n_shot)
            # A cluster that no example belongs to is no cluster; the fullest one of its class takes its place.
            fullest = mass.argmax(-1, keepdim=True)
            places = torch.where(mass > 1e-3, torch.arange(mass.shape[-1], device=mass.device), fullest)
            weights = (shares / mass[..., None, :].clamp(min=1e-3)).transpose(-1, -2)
            weights = weights.take_along_dim(places[..., None], -2)  # (..., n_way, 1 + n_shot, n_shot)
        return weights @ vectors

    def _assign(self, vectors: Tensor) -> Tensor:
        """The share of each cluster in each example: first the mean of the class, then one that starts at each example.

        vectors (..., n_way, n_shot, dim) -> (..., n_way, n_shot, 1 + n_shot)
        """
        means = vectors.mean(-2, keepdim=True)
        clusters = torch.cat([means, vectors], -2)
        distances = torch.cdist(vectors, clusters) ** 2
        limit = self.threshold(means[..., 0, :])
        exists = [torch.ones_like(distances[..., 0, 0], dtype=torch.bool)]
        for place in range(vectors.shape[-2]):
            to_existing = torch.where(torch.stack(exists, -1), distances[..., place, : place + 1], torch.inf)
            exists.append(to_existing.amin(-1) > limit)
        mask = torch.stack(exists, -1)[..., None, :]
        return masked_softmax(-distances / (2 * self.log_sigma.exp()), mask)

    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        """Squared differences from the nearest prototype of each class, over 2 sigma. (..., n_query, n_way, dim)"""
        queries = sentence_vectors(query)
        with torch.no_grad():
            nearest = torch.cdist(queries[..., None, :, :], summary).argmin(-1)  # (..., n_way, n_query)
        prototypes = summary.take_along_dim(nearest[..., None], -2)  # (..., n_way, n_query, dim)
        squared = (prototypes - queries[..., None, :, :]) ** 2
        return squared.transpose(-2, -3) / (2 * self.log_sigma.exp())
