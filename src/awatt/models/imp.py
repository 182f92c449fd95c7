"""Infinite Mixture Prototypes: a class has as many prototypes as its examples need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor, nn

from awatt.arrays import masked_softmax
from awatt.config import check_above
from awatt.encoders.base import Encoded
from awatt.models.base import DistanceModel, sentence_vectors

_EMPTY = 1e-3  # a cluster with a smaller total weight of examples is empty


@dataclass(frozen=True)
class ImpConfig:
    """Settings that control the number of clusters (about 1.3 per class). Not tuned: sigma 20 validates better."""

    #: concentration of the Dirichlet process: the larger, the more clusters
    alpha: float = 0.1
    #: initial variance of the clusters; learned
    sigma: float = 5.0

    def __post_init__(self) -> None:
        check_above(self, "model", 0, "alpha", "sigma")


class Imp(DistanceModel):
    """Allen et al. 2019, "Infinite Mixture Prototypes for Few-Shot Learning". https://arxiv.org/abs/1902.04552

    One round of clustering as in the paper: an example farther than lambda from every cluster of its class starts a new
    one; then the examples of the class are softly assigned to its clusters. No gradient flows through the assignments.
    """

    config_type = ImpConfig
    config: ImpConfig

    def __init__(self, dim: int, config: ImpConfig) -> None:
        super().__init__(dim, config)
        self.log_sigma = nn.Parameter(torch.tensor(log(config.sigma)))

    def limit(self, means: Tensor) -> Tensor:
        """Lambda = -2 sigma log(alpha / (1 + rho / sigma)^(dim / 2)), where rho is the variance of the class means.

        means (..., n_way, dim) -> (..., 1)
        """
        sigma = self.log_sigma.exp()
        rho = means.var(-2, correction=0).mean(-1, keepdim=True)
        return -2 * sigma * log(self.config.alpha) + self.dim * sigma * torch.log1p(rho / sigma)

    def summarise(self, support: Encoded) -> Tensor:
        """The prototypes; unused slots of a class repeat its largest cluster. (..., n_way, 1 + n_shot, dim)"""
        vectors = sentence_vectors(support)
        return self._prototypes(vectors, self.limit(vectors.mean(-2)))

    def summarise_each(self, support: Sequence[Encoded]) -> list[Tensor]:
        vectors = [sentence_vectors(examples) for examples in support]  # (1, n_shot, dim) each
        limit = self.limit(torch.cat([examples.mean(-2) for examples in vectors]))  # computed over all classes
        return [self._prototypes(examples, limit) for examples in vectors]

    def _prototypes(self, vectors: Tensor, limit: Tensor) -> Tensor:
        with torch.no_grad():
            assignments = self._assign(vectors, limit)
            sizes = assignments.sum(-1, keepdim=True)  # (..., n_way, 1 + n_shot, 1)
            clusters = torch.arange(sizes.shape[-2], device=sizes.device)[:, None]
            clusters = torch.where(sizes > _EMPTY, clusters, sizes.argmax(-2, keepdim=True))
            weights = (assignments / sizes.clamp(min=_EMPTY)).take_along_dim(clusters, -2)
        return weights @ vectors

    def _assign(self, vectors: Tensor, limit: Tensor) -> Tensor:
        """Soft assignment of examples to clusters: the class mean first, then one per example that starts a cluster.

        vectors (..., n_way, n_shot, dim), limit (..., 1) -> (..., n_way, 1 + n_shot, n_shot)
        """
        means = vectors.mean(-2, keepdim=True)
        squared = _distances(vectors, torch.cat([means, vectors], -2)) ** 2  # (..., n_way, n_shot, 1 + n_shot)
        exists = torch.zeros_like(squared[..., 0, :], dtype=torch.bool)  # (..., n_way, 1 + n_shot)
        exists[..., 0] = True
        for example in range(vectors.shape[-2]):
            nearest = squared[..., example, :].masked_fill(~exists, torch.inf).amin(-1)
            exists[..., example + 1] = nearest > limit
        assignments = masked_softmax(-squared / (2 * self.log_sigma.exp()), exists[..., None, :])
        return assignments.transpose(-1, -2)

    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        """To the nearest prototype of each class, divided by 2 sigma: the log density up to a constant."""
        queries = sentence_vectors(query)[..., None, :, :]
        with torch.no_grad():
            nearest = _distances(queries, summary).argmin(-1, keepdim=True)  # (..., n_way, n_query, 1)
        squared = (summary.take_along_dim(nearest, -2) - queries) ** 2  # (..., n_way, n_query, dim)
        return squared.transpose(-2, -3) / (2 * self.log_sigma.exp())


def _distances(these: Tensor, those: Tensor) -> Tensor:
    """(..., these, dim), (..., those, dim) -> (..., these, those), exact for any number of vectors."""
    return torch.cdist(these, those, compute_mode="donot_use_mm_for_euclid_dist")
