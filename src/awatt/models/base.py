"""What a few-shot model is: examples are summarised, then queries are scored against the summary.

A model keeps nothing between calls: fitting is ``summarise``, predicting is ``scores`` and a threshold, in training,
evaluation and the product alike. Every tensor may have leading dimensions, one for a batch of episodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from awatt.encoders.base import Encoded
from awatt.models.losses import cross_entropy
from awatt.models.ops import softmax


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


class DistanceModel(FewShotModel):
    """A model whose score is a negative distance between a query's and a class's vector."""

    @abstractmethod
    def differences(self, query: Encoded, summary: Tensor) -> Tensor:
        """Squared difference of each dimension. (..., n_query, n_way, dim)"""

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        return -self.differences(query, summary).sum(-1)
