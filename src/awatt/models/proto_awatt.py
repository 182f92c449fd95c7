"""Proto-AWATT: prototypes and queries denoised by aspect-wise attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from awatt.arrays import masked_softmax
from awatt.encoders.base import Block, Encoded
from awatt.errors import AwattError
from awatt.models.base import DistanceModel
from awatt.models.losses import squared_error

FORMS = ("printed", "linear")


@dataclass(frozen=True)
class ProtoAwattConfig:
    """Settings of the paper's method; each switch is one of its ablations."""

    #: how often the common aspect vector is repeated (Eq. 3): the best on validation of 1, 2, 4 and 10
    e_m: int = 4
    #: of Eq. 3: "printed", or "linear" (see ``ProtoAwatt._project``), the better one on validation
    form: str = "linear"
    support_attention: bool = True  # False: "w/o SA"
    attention_matrix: bool = True  # False: "w/o W^i"
    query_attention: bool = True  # False: "w/o QA"

    def __post_init__(self) -> None:
        if self.e_m < 1:
            raise AwattError(f"model.e_m is {self.e_m}, needs at least 1.")
        if self.form not in FORMS:
            raise AwattError(f"model.form is '{self.form}', needs one of: {', '.join(FORMS)}.")


class ProtoAwatt(DistanceModel):
    """Hu et al. 2021, "Multi-Label Few-Shot Learning for Aspect Category Detection".

    https://aclanthology.org/2021.acl-long.495
    """

    config_type = ProtoAwattConfig
    config: ProtoAwattConfig

    def __init__(self, dim: int, config: ProtoAwattConfig) -> None:
        super().__init__(dim, config)
        if config.support_attention and config.attention_matrix:
            # W (d x e_M) and b (d) of Eq. 3, drawn from N(0, 0.1) as the paper's appendix says.
            self.weight = nn.Parameter(torch.randn(dim, config.e_m) * 0.1)
            self.bias = nn.Parameter(torch.randn(dim) * 0.1)

    def summarise(self, support: Encoded) -> Tensor:
        """The prototypes r^i. (..., n_way, dim)"""
        if not self.config.support_attention:
            return support.mean().mean(-2)
        # Eq. 2: the word-level average over all words of the class's sentences.
        common = support.spread(support.mean(over=1), over=1)  # (n_tokens, dim): v^i of each token's class
        # Eq. 4: beta = softmax(v tanh(H W^i)), r_j = beta H
        attention = torch.linalg.vecdot(torch.tanh(self._project(support.tokens, common)), common)
        weights = support.softmax(attention[:, None])
        denoised = support.sum(weights * support.tokens)  # (..., n_way, n_shot, dim)
        return denoised.mean(-2)  # Eq. 5

    def _project(self, tokens: Tensor, common: Tensor) -> Tensor:
        """H W^i. (n_tokens, dim)

        Eq. 3 as printed multiplies W (d x e_M) by v, repeated e_M times (e_M x d): W^i[a, c] = w[a] v[c] + b[a], where
        w are the row sums of W. A linear layer that takes the repeated v as d rows of e_M numbers gives the transpose,
        W^i[a, c] = v[a] w[c] + b[c]. Either is a matrix of rank one and a bias, so H W^i needs no d x d matrix.
        """
        if not self.config.attention_matrix:
            return tokens
        row_sums = self.weight.sum(-1)
        if self.config.form == "printed":  # (H w) v + (H b) 1
            factors = tokens @ torch.stack([row_sums, self.bias], -1)  # (n_tokens, 2)
            return factors[:, :1] * common + factors[:, 1:]
        factors = torch.stack([torch.linalg.vecdot(tokens, common), tokens.sum(-1)], -1)  # (n_tokens, 2)
        return factors @ torch.stack([row_sums, self.bias])  # (H v) w + (H 1) b

    def represent(self, query: Encoded, prototypes: Tensor) -> Tensor:
        """One representation of the query per prototype, r^i_q. (..., n_query, n_way or 1, dim)"""
        if not self.config.query_attention:
            return query.mean()[..., None, :]
        return query.in_blocks(_attend, prototypes)

    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        return (summary[..., None, :, :] - self.represent(query, summary)) ** 2

    def own_loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        return squared_error(self.normalise(scores), targets)

    def word_weights(self, query: Encoded, summary: Tensor) -> Tensor | None:
        """rho^i of Eq. 6, the query-set attention."""
        if not self.config.query_attention:
            return None
        return query.softmax(torch.tanh(query.tokens) @ summary.transpose(-1, -2))


def _attend(query: Block, prototypes: Tensor) -> Tensor:
    """Eq. 6: rho^i = softmax(r^i tanh(H_q)), r^i_q = rho^i H_q. prototypes and result (n_sentences, n_way, dim)"""
    attention = prototypes @ torch.tanh(query.tokens).transpose(-1, -2)
    return masked_softmax(attention, query.mask[:, None, :]) @ query.tokens
