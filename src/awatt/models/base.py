"""What a few-shot model is: examples are summarised, then queries are scored against the summary.

A model keeps nothing between calls: fitting is ``summarise``, predicting is ``scores`` and a threshold, in training,
evaluation and the product alike. Every tensor may have leading dimensions, one for a batch of episodes.
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
    """One vector a sentence, for the methods that do not look at words. (..., dim)"""
    return sentences.max()


class FewShotModel(nn.Module, ABC):
    """Base of every method. ``config_type`` is a frozen dataclass with the method's settings."""

    config_type: ClassVar[type]
    #: whether ``normalise`` shares one out over the classes
    sums_to_one: ClassVar[bool] = True
    #: whether the scores depend on the order of the classes
    ordered: ClassVar[bool] = False

    def __init__(self, dim: int, config: Any) -> None:
        super().__init__()
        self.dim, self.config = dim, config

    @abstractmethod
    def summarise(self, support: Encoded) -> Tensor:
        """What is to be known of each class. support of shape (..., n_way, n_shot) -> (..., n_way, ...)"""

    @abstractmethod
    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        """Higher is closer. query of shape (..., n_query) -> (..., n_query, n_way)"""

    def normalise(self, scores: Tensor) -> Tensor:
        """The ranking of the classes that thresholds see: sums to one over the classes, if ``sums_to_one``."""
        return softmax(scores)

    def own_loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of the method's own paper, where all are trained with Eq. 7 otherwise (``training.loss``).

        scores and targets (..., n_query, n_way)
        """
        return cross_entropy(scores, targets)

    # -- a person's examples: as many as there are, an unequal number per class

    def summarise_each(self, support: Sequence[Encoded]) -> list[Tensor]:
        """A summary per class from its own examples, of shape (1, n_shot) each -> (1, ...) each."""
        return [self.summarise(examples) for examples in support]

    def scores_each(self, query: Encoded, summaries: Sequence[Tensor]) -> Tensor:
        """``scores`` against what ``summarise_each`` gave. query of shape (n_query,) -> (n_query, n_way)"""
        return torch.cat([self.scores(query, summary) for summary in summaries], -1)

    def word_weights(self, query: Encoded, summary: Tensor) -> Tensor | None:
        """The share of each token in the decision for each class, of methods that attend to words.

        query of shape (n_query,) -> (n_tokens, n_way), which sums to 1 over a sentence
        """
        return None


class DistanceModel(FewShotModel):
    """A model whose score is a negative distance between a query's and a class's vector."""

    @abstractmethod
    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        """Squared difference of each dimension. (..., n_query, n_way, dim)"""

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        return -self.differences(query, summary).sum(-1)

    def differences_each(self, query: Encoded, summaries: Sequence[Tensor]) -> Tensor:
        """``differences`` from what ``summarise_each`` gave. query of shape (n_query,) -> (n_query, n_way, dim)"""
        return torch.cat([self.differences(query, summary) for summary in summaries], -2)
