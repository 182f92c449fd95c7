"""What a threshold is: the scores of an episode's queries in, a set of aspects for each query out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from awatt.data.sampler import EpisodeShape


@dataclass(frozen=True)
class Scored:
    """A batch of scored episodes: all that a threshold may look at."""

    probabilities: Tensor  # (episodes, n_query, n_way) the ranking; see ``normalise``
    scores: Tensor  # (episodes, n_query, n_way) what the ranking was made from
    differences: Tensor | None  # (episodes, n_query, n_way, dim) squared, of models that measure a distance
    support_targets: Tensor  # (episodes, n_way * n_shot, n_way) which of the aspects each example mentions
    targets: Tensor  # (episodes, n_query, n_way) the truth, for training and calibration only
    query: Tensor | None = (
        None  # (episodes, n_query, dim) mean vector of each query's tokens, if the threshold sees sentences
    )
    support: Tensor | None = None  # (episodes, n_way * n_shot, dim) mean vector of each example's tokens
    support_scores: Tensor | None = (
        None  # (episodes, n_way * n_shot, n_way) the examples scored as if they were queries
    )


class Threshold(nn.Module, ABC):
    """Base of the family. A threshold is learned in a second stage, calibrated on validation, or fixed."""

    config_type: ClassVar[type]
    #: how its parameters are trained in a second stage: "joint" (encoder and model learn on) or "alone" (they are
    #: frozen); "" if it has none
    stage: ClassVar[str] = ""
    #: whether it chooses its settings from scored validation episodes
    calibrated: ClassVar[bool] = False
    #: what it looks at besides the scores, which takes time to compute: "sentences" (their mean vectors), "examples"
    #: (their own scores)
    sees: ClassVar[frozenset[str]] = frozenset()
    #: whether its evidence is the probability that an aspect is mentioned
    probabilistic: ClassVar[bool] = False

    def __init__(self, config: Any, n_way: int, dim: int) -> None:
        super().__init__()
        self.config, self.n_way, self.dim = config, n_way, dim

    @abstractmethod
    def select(self, scored: Scored) -> Tensor:
        """Which aspects each query is given. (episodes, n_query, n_way) bool"""

    def evidence(self, scored: Scored) -> Tensor:
        """Score the decision is based on, comparable across queries. Same shape as ``select``."""
        return scored.probabilities

    def constant(self, n_way: int) -> float | None:
        """The one score from which it selects with this many aspects; None if it decides for each query anew."""
        return None

    def objection(self, n_way: int) -> str | None:
        """Why it cannot serve this number of aspects; None if it can."""
        return None

    def shapes(self, shape: EpisodeShape) -> tuple[EpisodeShape, ...]:
        """The episodes that a trained threshold learns from, in turn, in a run of this shape."""
        return (shape,)

    def calibrate(self, validation: Sequence[Scored]) -> None:
        """What a calibrated threshold does with scored validation episodes."""
        raise NotImplementedError(f"{type(self).__name__} is not calibrated")

    def loss(self, scored: Scored) -> Tensor:
        """What a trained threshold minimises."""
        raise NotImplementedError(f"{type(self).__name__} is not trained")
