"""KR, an alternative in the paper: estimate a query's number of aspects from the examples near it (Hou et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from awatt.arrays import softmax
from awatt.errors import AwattError
from awatt.thresholds.base import Scored, Threshold
from awatt.thresholds.calibration import best_setting
from awatt.thresholds.default import default_threshold


@dataclass(frozen=True)
class KernelRegressionConfig:
    """Candidates for calibration: bandwidths of the kernel, and weights of the universal threshold."""

    bandwidths: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    meta_rates: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)

    def __post_init__(self) -> None:
        if not self.bandwidths or min(self.bandwidths) <= 0:
            raise AwattError(f"threshold.bandwidths is {self.bandwidths}, needs at least one number, all above 0.")
        if not self.meta_rates or not all(0 <= rate <= 1 for rate in self.meta_rates):
            raise AwattError(f"threshold.meta_rates is {self.meta_rates}, needs at least one share from 0 to 1.")


class KernelRegression(Threshold):
    """https://arxiv.org/abs/2010.05256, "Few-shot Learning for Multi-label Intent Detection".

    The best threshold for a query with k aspects is just below its k-th largest score. With p(k) from a Gaussian kernel
    over the examples' numbers of aspects, the estimate is the expected (k + 1)-th largest score. It is mixed with a
    universal threshold, the same for all episodes.
    """

    config_type = KernelRegressionConfig
    calibrated = True
    sees = frozenset({"sentences"})
    config: KernelRegressionConfig
    bandwidth: Tensor
    meta_rate: Tensor

    def __init__(self, config: KernelRegressionConfig, n_way: int, dim: int) -> None:
        super().__init__(config, n_way, dim)
        self.register_buffer("bandwidth", torch.tensor(1.0))
        self.register_buffer("meta_rate", torch.tensor(0.5))

    def threshold(self, scored: Scored) -> Tensor:
        """One threshold per query. (episodes, n_query)"""
        if scored.query is None or scored.support is None:
            raise ValueError("kernel regression needs the sentences' vectors, which are not computed in training")
        distance = torch.cdist(scored.query, scored.support) ** 2
        # Relative to the query's mean distance, because the scale of the vectors depends on the encoder. Other queries
        # of the episode do not count: a decision must not depend on them.
        spread = distance.mean(-1, keepdim=True).clamp(min=1e-9)
        kernel = softmax(-distance / (2 * self.bandwidth**2 * spread))  # (episodes, n_query, n_examples)
        n_way = scored.probabilities.shape[-1]
        counts = torch.nn.functional.one_hot(scored.support_targets.sum(-1), n_way + 1).to(kernel.dtype)
        count_shares = kernel @ counts  # (episodes, n_query, n_way + 1) p(k = 0 .. n_way)
        ranked = scored.probabilities.sort(-1, descending=True).values
        cuts = torch.cat([ranked, torch.zeros_like(ranked[..., :1])], -1)  # the (k + 1)-th largest for k = 0 .. n_way
        estimate = (count_shares * cuts).sum(-1)
        return self.meta_rate * default_threshold(n_way) + (1 - self.meta_rate) * estimate

    def evidence(self, scored: Scored) -> Tensor:
        """The ranking minus the query's threshold."""
        return scored.probabilities - self.threshold(scored)[..., None]

    def accept(self, evidence: Tensor) -> Tensor:
        return evidence > 0

    def calibrate(self, validation: Sequence[Scored]) -> None:
        """Choose the bandwidth and the weight with the best macro-F1 on validation."""

        def selected(setting: tuple[float, float]) -> list[Tensor]:
            self.bandwidth.fill_(setting[0])
            self.meta_rate.fill_(setting[1])
            return [self.select(scored) for scored in validation]

        settings = list(product(self.config.bandwidths, self.config.meta_rates))
        selected(best_setting(settings, selected, [scored.targets for scored in validation]))
