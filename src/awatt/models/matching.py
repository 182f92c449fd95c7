"""Matching Network: the probability of a class is the attention that a query pays to its examples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from awatt.config import check_above
from awatt.encoders.base import Encoded
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class MatchingConfig:
    """How sharp the attention is."""

    #: factor of the cosines. With the paper's 1, probabilities of the classes differ so little (at most by a factor of
    #: e^2) that training stalls and a threshold of 0.3 finds little. Chosen on validation from 1, 5, 10 and 20.
    scale: float = 10.0

    def __post_init__(self) -> None:
        check_above(self, "model", 0, "scale")


class Matching(FewShotModel):
    """Vinyals et al. 2016, "Matching Networks for One Shot Learning". https://arxiv.org/abs/1606.04080

    The attention is the paper's softmax over cosines. Its full context embeddings (an LSTM that reads the examples in
    their order) are left out.
    """

    config_type = MatchingConfig
    config: MatchingConfig

    def summarise(self, support: Encoded) -> Tensor:
        """One unit vector per example. (..., n_way, n_shot, dim)"""
        return F.normalize(sentence_vectors(support), dim=-1)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        """Log of the attention of each class, before normalisation. (..., n_query, n_way)

        The softmax over the classes is the paper's Eq. 1: the attention over all examples, summed per class.
        """
        queries = F.normalize(sentence_vectors(query), dim=-1)
        cosines = torch.einsum("...qd,...nkd->...qnk", queries, summary)
        return torch.logsumexp(self.config.scale * cosines, -1)
