"""Proto-HATT: attention over examples for the prototypes, attention over features for the distances."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.arrays import softmax
from awatt.config import check_at_least
from awatt.encoders.base import Encoded
from awatt.errors import AwattError
from awatt.models.base import DistanceModel, sentence_vectors


@dataclass(frozen=True)
class ProtoHattConfig:
    """The paper's sizes."""

    #: examples that a convolution spans: all of them in the paper, so set this to n_shot
    kernel: int = 5
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_at_least(self, "model", kernel=1, dropout=0)
        if self.dropout >= 1:
            raise AwattError(f"model.dropout is {self.dropout}, needs a number from 0 to below 1.")


class ProtoHatt(DistanceModel):
    """Gao et al. 2019, "Hybrid Attention-Based Prototypical Networks for Noisy Few-Shot Relation Classification".

    https://ojs.aaai.org/index.php/AAAI/article/view/4604

    The paper's convolutions span all K examples; the last one, without padding, reduces K vectors to one, as here with
    ``kernel`` = K. Fewer examples are padded with zeros; with more, the outputs of the last convolution are averaged.
    So any n_shot works.
    """

    config_type = ProtoHattConfig
    config: ProtoHattConfig

    def __init__(self, dim: int, config: ProtoHattConfig) -> None:
        super().__init__(dim, config)
        self.shared = nn.Linear(dim, dim)

        def convolution(n_in: int, n_out: int) -> nn.Conv2d:
            return nn.Conv2d(n_in, n_out, (config.kernel, 1))

        def padding() -> nn.Module:
            return nn.ZeroPad2d((0, 0, (config.kernel - 1) // 2, config.kernel // 2))  # keeps the length

        last = convolution(64, 1)
        # Weights start close to one, at the Prototypical Network. From zero the final ReLU may cut off every feature,
        # and with them every gradient.
        nn.init.ones_(last.bias)  # type: ignore[arg-type]
        self.importance = nn.Sequential(
            *(padding(), convolution(1, 32), nn.ReLU()),
            *(padding(), convolution(32, 64), nn.ReLU()),
            *(nn.Dropout(config.dropout), last),
        )

    def summarise(self, support: Encoded) -> Tensor:
        """One vector per example; the query decides which of them matter. (..., n_way, n_shot, dim)"""
        return sentence_vectors(support)

    def instance_attention(self, queries: Tensor, support: Tensor) -> Tensor:
        """Weight of each example in the prototype for a query. (..., n_query, n_way, n_shot)

        queries (..., n_query, dim), support (..., n_way, n_shot, dim)
        """
        products = self.shared(queries)[..., :, None, None, :] * self.shared(support)[..., None, :, :, :]
        return softmax(torch.tanh(products).sum(-1))

    def feature_attention(self, support: Tensor) -> Tensor:
        """Weight of each dimension in the distance from a class. (..., n_way, n_shot, dim) -> (..., n_way, dim)"""
        images = support.reshape(-1, 1, *support.shape[-2:])  # (classes, 1, n_shot, dim)
        images = F.pad(images, (0, 0, 0, max(0, self.config.kernel - images.shape[-2])))
        return self.importance(images).mean(-2).relu().view(*support.shape[:-2], self.dim)

    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        """Weighted by the feature attention. (..., n_query, n_way, dim)"""
        queries = sentence_vectors(query)
        shares = self.instance_attention(queries, summary)
        prototypes = torch.einsum("...qnk,...nkd->...qnd", shares, summary)
        return (prototypes - queries[..., None, :]) ** 2 * self.feature_attention(summary)[..., None, :, :]

    def word_weights(self, query: Encoded, summary: Tensor) -> Tensor | None:
        """Feature attention of the dimensions in which each word is the maximum (sentence vectors are max-pooled)."""
        is_largest = (query.tokens == query.spread(query.max())).to(query.tokens.dtype)  # (n_tokens, dim)
        shares = is_largest / query.spread(query.sum(is_largest))  # equal words share a dimension
        weights = shares @ self.feature_attention(summary).transpose(-1, -2)
        return weights / query.spread(query.sum(weights)).clamp(min=1e-12)
