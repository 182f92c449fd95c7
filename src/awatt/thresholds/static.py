"""One threshold for all queries: the paper's 0.3 for 5-way and 0.2 for 10-way."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from awatt.errors import AwattError
from awatt.thresholds.base import Threshold
from awatt.thresholds.default import default_threshold


@dataclass(frozen=True)
class StaticConfig:
    """``value`` is between 0 and 1, or -1 for the default at the episode's number of aspects."""

    value: float = -1.0

    def __post_init__(self) -> None:
        if self.value != -1.0 and not 0.0 <= self.value <= 1.0:
            raise AwattError(f"the static threshold is {self.value}, needs a number from 0 to 1.")


class Static(Threshold):
    """Select every aspect whose probability in the ranking reaches the threshold."""

    config_type = StaticConfig

    def accept(self, evidence: Tensor) -> Tensor:
        return evidence >= self.constant(evidence.shape[-1])

    def constant(self, n_way: int) -> float:
        return float(self.config.value) if self.config.value >= 0 else default_threshold(n_way)
