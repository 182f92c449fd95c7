"""Base of all thresholds, which turn the scores of an episode's queries into a set of aspects per query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from awatt.data.sampler import EpisodeShape


@dataclass(frozen=True)
class Scored:
    """A batch of scored episodes: everything a threshold may use."""

    probabilities: Tensor  # (episodes, n_query, n_way) the ranking, from ``normalise``
    scores: Tensor  # (episodes, n_query, n_way) before normalisation
    differences: Tensor | None  # (episodes, n_query, n_way, dim) squared; only for distance models
    support_targets: Tensor  # (episodes, n_way * n_shot, n_way) which of the aspects each example mentions
    targets: Tensor  # (episodes, n_query, n_way) true labels, for training and calibration only
    query: Tensor | None = None  # (episodes, n_query, dim) mean token vector, if the threshold sees "sentences"
    support: Tensor | None = None  # (episodes, n_way * n_shot, dim) mean token vector
    support_scores: Tensor | None = (
        None  # (episodes, n_way * n_shot, n_way) the examples scored as if they were queries
    )


class Threshold(nn.Module, ABC):
    """A threshold is trained in a second stage, calibrated on validation, or fixed."""

    config_type: ClassVar[type]
    #: how its parameters are trained in a second stage: "joint" (together with encoder and model) or "alone" (these
    #: are frozen); "" if it has no parameters
    stage: ClassVar[str] = ""
    #: whether it chooses its settings from scored validation episodes
    calibrated: ClassVar[bool] = False
    #: inputs it needs besides the scores, computed only on request: "sentences" (their mean vectors), "examples" (their
    #: own scores)
    sees: ClassVar[frozenset[str]] = frozenset()
    #: whether its evidence is the probability that an aspect is mentioned
    probabilistic: ClassVar[bool] = False

    def __init__(self, config: Any, n_way: int, dim: int) -> None:
        super().__init__()
        self.config, self.n_way, self.dim = config, n_way, dim

    @abstractmethod
    def accept(self, evidence: Tensor) -> Tensor:
        """Which aspects each query gets, from ``evidence``. (episodes, n_query, n_way) -> the same, bool"""

    def select(self, scored: Scored) -> Tensor:
        """Which aspects each query gets. (episodes, n_query, n_way) bool"""
        return self.accept(self.evidence(scored))

    def evidence(self, scored: Scored) -> Tensor:
        """Score the decision is based on, comparable across queries. Same shape as ``select``."""
        return scored.probabilities

    def constant(self, n_way: int) -> float | None:
        """The fixed threshold for this number of aspects; None if there is no single one."""
        return None

    def objection(self, n_way: int) -> str | None:
        """Why it does not work with this number of aspects; None if it does."""
        return None

    def shapes(self, shape: EpisodeShape) -> tuple[EpisodeShape, ...]:
        """Shapes of the episodes a trained threshold learns from, used in turn, in a run of this shape."""
        return (shape,)

    def calibrate(self, validation: Sequence[Scored]) -> None:
        """Choose the settings of a calibrated threshold from scored validation episodes."""
        raise NotImplementedError(f"{type(self).__name__} is not calibrated")

    def loss(self, scored: Scored) -> Tensor:
        """The loss of a trained threshold."""
        raise NotImplementedError(f"{type(self).__name__} is not trained")
