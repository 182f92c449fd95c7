"""One maximum distance for all aspects, chosen on validation: an aspect within this radius is selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from awatt.errors import AwattError
from awatt.thresholds.base import Scored, Threshold
from awatt.thresholds.calibration import best_setting


@dataclass(frozen=True)
class RadiusConfig:
    """Calibration chooses from ``steps`` quantiles of the validation scores."""

    steps: int = 200

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise AwattError(f"threshold.steps is {self.steps}, needs at least 2.")


class Radius(Threshold):
    """Select every aspect whose score before normalisation is above one number; it can select none."""

    config_type = RadiusConfig
    calibrated = True
    config: RadiusConfig
    value: Tensor

    def __init__(self, config: RadiusConfig, n_way: int, dim: int) -> None:
        super().__init__(config, n_way, dim)
        self.register_buffer("value", torch.tensor(0.0))

    def evidence(self, scored: Scored) -> Tensor:
        return scored.scores

    def accept(self, evidence: Tensor) -> Tensor:
        return evidence > self.value

    def calibrate(self, validation: Sequence[Scored]) -> None:
        ordered = torch.cat([scored.scores.flatten() for scored in validation]).sort().values
        places = torch.linspace(0, len(ordered) - 1, self.config.steps, dtype=torch.float64).long()

        def selected(value: Tensor) -> list[Tensor]:
            self.value.copy_(value)
            return [self.select(scored) for scored in validation]

        selected(
            best_setting(list(ordered[places.to(ordered.device)]), selected, [scored.targets for scored in validation])
        )
