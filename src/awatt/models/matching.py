"""Matching Network: a class is as likely as the attention that a query pays to its examples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from awatt.encoders.base import Encoded
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class MatchingConfig:
    """The paper's attention is a softmax over plain cosines."""

    #: what cosines are multiplied with before the softmax
    scale: float = 1.0


class Matching(FewShotModel):
    """Vinyals et al. 2016, "Matching Networks for One Shot Learning", without full context embeddings.

    https://arxiv.org/abs/1606.04080
    """

    config_type = MatchingConfig
    config: MatchingConfig

    def summarise(self, support: Encoded) -> Tensor:
        """Every example as a vector of length one. (..., n_way, n_shot, dim)"""
        return F.normalize(sentence_vectors(support), dim=-1)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        """The log of each class's attention, up to what all classes share: their softmax is the paper's Eq. 1."""
        queries = F.normalize(sentence_vectors(query), dim=-1)
        cosines = torch.einsum("...qd,...nkd->...qnk", queries, summary)
        return torch.logsumexp(self.config.scale * cosines, -1)
