"""Acceptance: how likely each aspect is mentioned, for any number of aspects, in any order; none is an answer, too."""

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

_FAR = 3.0  # relative scores are cut here: where a class hardly differs from the others they say nothing


@dataclass(frozen=True)
class AcceptanceConfig:
    """The network's size, and the episodes that it learns from: all combinations that the corpus can serve."""

    hidden: int = 32
    n_ways: tuple[int, ...] = (1, 2, 3, 5, 10, 20)
    n_shots: tuple[int, ...] = (1, 2, 5, 10, 20)
    none_rates: tuple[float, ...] = (0.0, 0.3, 0.5)
    #: of an episode: 20 aspects with 20 examples each take the time of ten others and teach nothing more
    max_examples: int = 100
    #: calibration chooses from this many thresholds between 0 and 1
    steps: int = 100

    def __post_init__(self) -> None:
        for name, least in (("hidden", 1), ("max_examples", 1), ("steps", 2)):
            if getattr(self, name) < least:
                raise AwattError(f"threshold.{name} is {getattr(self, name)}, needs at least {least}.")
        for name in ("n_ways", "n_shots"):
            if min(getattr(self, name), default=1) < 1:
                raise AwattError(f"threshold.{name} is {getattr(self, name)}, needs whole numbers from 1 on.")
        if not all(0 <= rate < 1 for rate in self.none_rates):
            raise AwattError(f"threshold.none_rates is {self.none_rates}, needs shares from 0 to below 1.")


class Features(NamedTuple):
    """What an episode tells of a query and an aspect, each (episodes, n_query, n_way). What it cannot tell is 0."""

    relative: Tensor  # the score, where 0 is the mean of the examples without the aspect and 1 of those with it
    beyond: Tensor  # how far the score is from that of the aspect's own examples: all that a single aspect has
    separation: Tensor  # how far the two means are apart, which tells what ``relative`` is worth
    gap: Tensor  # how far the score is from the best other aspect's
    share: Tensor  # of the ranking
    aspects: Tensor  # log of their number: the more there are, the rarer is each
    examples: Tensor  # log of their number an aspect: few of them lie closer to their own summary than queries do


def features_of(scored: Scored) -> Features:
    """Differences of scores are squashed by sign(x) log(1 + |x|), since methods differ in their scale."""
    if scored.support_scores is None:
        raise ValueError("acceptance looks at the examples' own scores, which were left out")
    scores, shown = scored.scores.detach(), scored.support_scores.detach()
    n_way = scores.shape[-1]
    own, _ = _mean_where(shown, scored.support_targets)  # (episodes, 1, n_way)
    other, known = _mean_where(shown, ~scored.support_targets)
    separation = torch.where(known, own - other, 0)
    relative = torch.where(separation > 0, (scores - other) / separation.clamp(min=1e-6), 0).clamp(-_FAR, _FAR)
    constant = torch.ones_like(scores)
    return Features(
        relative=relative,
        beyond=_squash(scores - own),
        separation=_squash(separation).expand_as(scores),
        gap=_squash(scores - _best_other(scores)) if n_way > 1 else torch.zeros_like(scores),
        share=scored.probabilities.detach(),
        aspects=constant * math.log(n_way),
        examples=constant * math.log(shown.shape[-2] / n_way),
    )


def _mean_where(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The mean over the examples where the mask is True, and whether there are any. (episodes, 1, n_way) each"""
    count = mask.sum(-2, keepdim=True)
    return torch.where(mask, values, 0).sum(-2, keepdim=True) / count.clamp(min=1), count > 0


def _best_other(scores: Tensor) -> Tensor:
    """The highest score of the other aspects: the best, and for the best one itself the second. Same shape."""
    top, places = scores.topk(2, -1)
    best = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, places[..., :1], True)
    return torch.where(best, top[..., 1:], top[..., :1])


def _squash(values: Tensor) -> Tensor:
    return values.sign() * values.abs().log1p()


class Acceptance(Threshold):
    """A small network that all pairs of query and aspect share. It learns while encoder and model stand still."""

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
        """The run's own, then every combination. A single aspect without none queries is always right: left out."""
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

    def select(self, scored: Scored) -> Tensor:
        return self.evidence(scored) > self.value

    def constant(self, n_way: int) -> float:
        return float(self.value)

    def calibrate(self, validation: Sequence[Scored]) -> None:
        """The threshold with the best macro-F1 on validation, which tells how many sentences have no aspect."""
        with torch.no_grad():
            evidence = [self.evidence(scored) for scored in validation]
        grid = torch.linspace(0, 1, self.config.steps + 1)[1:-1].tolist()
        best = best_setting(grid, lambda value: [found > value for found in evidence], validation)
        self.value.fill_(best)

    def loss(self, scored: Scored) -> Tensor:
        """Binary cross entropy, mean over all pairs of query and aspect."""
        logits = self.logits(scored)
        return F.binary_cross_entropy_with_logits(logits, scored.targets.to(logits.dtype))
