"""Base classes of few-shot models: summarise the examples, then score queries against the summary.

A model keeps no state between calls. Fitting is ``summarise``; predicting is ``scores`` and a threshold. Training,
evaluation and the detector use the same code. Every tensor may have leading dimensions, such as a batch of episodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from awatt.arrays import softmax
from awatt.encoders.base import Encoded
from awatt.models.losses import cross_entropy


def sentence_vectors(sentences: Encoded) -> Tensor:
    """One vector per sentence (max pooling over its tokens), for methods without word attention. (..., dim)"""
    return sentences.max()


class FewShotModel(nn.Module, ABC):
    """Base of every method. ``config_type`` is a frozen dataclass with the method's settings."""

    config_type: ClassVar[type]
    #: whether the output of ``normalise`` sums to one over the classes
    sums_to_one: ClassVar[bool] = True
    #: whether the scores depend on the order of the classes
    ordered: ClassVar[bool] = False

    def __init__(self, dim: int, config: Any) -> None:
        super().__init__()
        self.dim, self.config = dim, config

    @abstractmethod
    def summarise(self, support: Encoded) -> Tensor:
        """Summary of each class. support of shape (..., n_way, n_shot) -> (..., n_way, ...)"""

    @abstractmethod
    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        """Score of each class, higher is closer. query of shape (..., n_query) -> (..., n_query, n_way)"""

    def normalise(self, scores: Tensor) -> Tensor:
        """The ranking that thresholds work on; sums to one over the classes if ``sums_to_one``."""
        return softmax(scores)

    def own_loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of the method's own paper (``training.loss=own``). By default every method is trained with Eq. 8.

        scores and targets (..., n_query, n_way)
        """
        return cross_entropy(scores, targets)

    # -- the user's examples: any number, not the same for every class

    def summarise_each(self, support: Sequence[Encoded]) -> list[Tensor]:
        """One summary per class, from its own examples. Shape (1, n_shot) each -> (1, ...) each"""
        return [self.summarise(examples) for examples in support]

    def scores_each(self, query: Encoded, summaries: Sequence[Tensor]) -> Tensor:
        """``scores`` against the summaries of ``summarise_each``. query of shape (n_query,) -> (n_query, n_way)"""
        return torch.cat([self.scores(query, summary) for summary in summaries], -1)

    def word_weights(self, query: Encoded, summary: Tensor) -> Tensor | None:
        """Attention weight of each token for each class; None if the method does not attend to words.

        query of shape (n_query,) -> (n_tokens, n_way); the weights of a sentence sum to 1
        """
        return None


class DistanceModel(FewShotModel):
    """A model whose score is the negative squared distance between a query's vector and a class's vector."""

    @abstractmethod
    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        """Squared difference per dimension. (..., n_query, n_way, dim)"""

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        return -self.differences(query, summary).sum(-1)

    def differences_each(self, query: Encoded, summaries: Sequence[Tensor]) -> Tensor:
        """``differences`` for the summaries of ``summarise_each``. Query shape (n_query,) -> (n_query, n_way, dim)"""
        return torch.cat([self.differences(query, summary) for summary in summaries], -2)
