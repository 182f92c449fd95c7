"""Acceptance: the probability that an aspect is mentioned, for any number of aspects; it can also select none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError
from awatt.thresholds.base import Scored, Threshold
from awatt.thresholds.calibration import best_setting

_MAX_RELATIVE = 3.0  # relative scores are clipped: they explode where an aspect is hardly separated from the others


@dataclass(frozen=True)
class AcceptanceConfig:
    """Size of the network, and the episodes it is trained on: all combinations for which the corpus has enough data."""

    hidden: int = 32
    n_ways: tuple[int, ...] = (1, 2, 3, 5, 10, 20)
    n_shots: tuple[int, ...] = (1, 2, 5, 10, 20)
    none_rates: tuple[float, ...] = (0.0, 0.3, 0.5)
    #: most examples per episode: 20 aspects with 20 examples each take ten times as long and improve nothing
    max_examples: int = 100
    #: calibration chooses from this many thresholds between 0 and 1
    steps: int = 100

    def __post_init__(self) -> None:
        for name, least in (("hidden", 1), ("max_examples", 1), ("steps", 2)):
            if getattr(self, name) < least:
                raise AwattError(f"threshold.{name} is {getattr(self, name)}, needs at least {least}.")
        for name in ("n_ways", "n_shots"):
            if min(getattr(self, name), default=1) < 1:
                raise AwattError(f"threshold.{name} is {getattr(self, name)}, needs whole numbers of at least 1.")
        if not all(0 <= rate < 1 for rate in self.none_rates):
            raise AwattError(
                f"threshold.none_rates is {self.none_rates}, needs numbers from 0 up to, but not including, 1."
            )


class Features(NamedTuple):
    """Inputs of the network for each query and aspect, (episodes, n_query, n_way) each; 0 where undefined."""

    relative: Tensor  # the score on a scale where examples without the aspect have mean 0, those with it mean 1
    from_own: Tensor  # score minus the mean of the aspect's own examples; the only difference a single aspect has
    separation: Tensor  # distance between the two means: how reliable ``relative`` is
    margin: Tensor  # score minus the best score of the other aspects
    share: Tensor  # the aspect's probability in the ranking
    aspects: Tensor  # log of the number of aspects: the more there are, the rarer is each
    examples: Tensor  # log of the number per aspect: the fewer, the closer they are to the summary made from them


def features_of(scored: Scored) -> Features:
    """Score differences are compressed by sign(x) log(1 + |x|), because the scale of scores depends on the method."""
    if scored.support_scores is None:
        raise ValueError("acceptance needs the scores of the examples (support_scores), found None")
    scores, support_scores = scored.scores.detach(), scored.support_scores.detach()
    n_way = scores.shape[-1]
    own, _ = _mean_where(support_scores, scored.support_targets)  # (episodes, 1, n_way)
    other, known = _mean_where(support_scores, ~scored.support_targets)
    separation = torch.where(known, own - other, 0)
    relative = torch.where(separation > 0, (scores - other) / separation.clamp(min=1e-6), 0)
    constant = torch.ones_like(scores)
    return Features(
        relative=relative.clamp(-_MAX_RELATIVE, _MAX_RELATIVE),
        from_own=_compress(scores - own),
        separation=_compress(separation).expand_as(scores),
        margin=_compress(scores - _best_other(scores)) if n_way > 1 else torch.zeros_like(scores),
        share=scored.probabilities.detach(),
        aspects=constant * math.log(n_way),
        examples=constant * math.log(support_scores.shape[-2] / n_way),
    )


def _mean_where(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The mean over the examples where the mask is True, and whether there are any. (episodes, 1, n_way) each"""
    count = mask.sum(-2, keepdim=True)
    return torch.where(mask, values, 0).sum(-2, keepdim=True) / count.clamp(min=1), count > 0


def _best_other(scores: Tensor) -> Tensor:
    """The highest score among the other aspects, same shape: the best one, or the second best for the best itself."""
    top, index = scores.topk(2, -1)
    is_best = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, index[..., :1], True)
    return torch.where(is_best, top[..., 1:], top[..., :1])


def _compress(values: Tensor) -> Tensor:
    return values.sign() * values.abs().log1p()


class Acceptance(Threshold):
    """One small network for all pairs of query and aspect, trained while encoder and model are frozen."""

    config_type = AcceptanceConfig
    config: AcceptanceConfig
    stage = "alone"
    calibrated = True
    sees = frozenset({"examples"})
    probabilistic = True
    value: Tensor

    def __init__(self, config: AcceptanceConfig, n_way: int, dim: int) -> None:
        super().__init__(config, n_way, dim)
        self.network = nn.Sequential(
            nn.Linear(len(Features._fields), config.hidden), nn.Tanh(), nn.Linear(config.hidden, 1)
        )
        self.register_buffer("value", torch.tensor(0.5))

    def shapes(self, shape: EpisodeShape) -> tuple[EpisodeShape, ...]:
        """The run's own shape, then every combination but a single aspect without off-topic queries (always true)."""
        combined = [
            EpisodeShape(n_way, n_shot, shape.n_query, rate)
            for n_shot, rate, n_way in product(self.config.n_shots, self.config.none_rates, self.config.n_ways)
            if n_way * n_shot <= self.config.max_examples and (n_way > 1 or rate > 0)
        ]
        return tuple(dict.fromkeys([shape, *combined]))

    def logits(self, scored: Scored) -> Tensor:
        """(episodes, n_query, n_way)"""
        found: Tensor = self.network(torch.stack(features_of(scored), -1))
        return found[..., 0]

    def evidence(self, scored: Scored) -> Tensor:
        """The probability that the aspect is mentioned."""
        return self.logits(scored).sigmoid()

    def accept(self, evidence: Tensor) -> Tensor:
        return evidence > self.value

    def constant(self, n_way: int) -> float:
        return float(self.value)

    def calibrate(self, validation: Sequence[Scored]) -> None:
        """Choose the threshold with the best macro-F1 on validation; it depends on how many queries are off-topic."""
        with torch.no_grad():
            evidence = [self.evidence(scored) for scored in validation]
        grid = torch.linspace(0, 1, self.config.steps + 1)[1:-1].tolist()
        targets = [scored.targets for scored in validation]
        best = best_setting(grid, lambda value: [found > value for found in evidence], targets)
        self.value.fill_(best)

    def loss(self, scored: Scored) -> Tensor:
        """Binary cross-entropy, averaged over all pairs of query and aspect."""
        logits = self.logits(scored)
        return F.binary_cross_entropy_with_logits(logits, scored.targets.to(logits.dtype))
