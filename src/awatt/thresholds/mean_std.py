"""MS, an alternative in the paper: mean ± standard deviation of the best static thresholds of validation folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from awatt.errors import AwattError
from awatt.metrics import macro_f1
from awatt.thresholds.base import Scored, Threshold
from awatt.thresholds.calibration import best_setting
from awatt.thresholds.default import default_threshold


@dataclass(frozen=True)
class MeanStdConfig:
    """Each fold chooses one of ``steps`` thresholds between 0 and 1."""

    folds: int = 10
    steps: int = 50

    def __post_init__(self) -> None:
        for name in ("folds", "steps"):
            if getattr(self, name) < 2:
                raise AwattError(f"threshold.{name} is {getattr(self, name)}, needs at least 2.")


class MeanStd(Threshold):
    """Of mean - std, mean and mean + std, the threshold with the best macro-F1 on all of validation.

    All that the paper says is "mean ± standard deviation of the threshold by cross-validation".
    """

    config_type = MeanStdConfig
    calibrated = True
    config: MeanStdConfig
    value: Tensor

    def __init__(self, config: MeanStdConfig, n_way: int, dim: int) -> None:
        super().__init__(config, n_way, dim)
        self.register_buffer("value", torch.tensor(default_threshold(n_way)))

    def accept(self, evidence: Tensor) -> Tensor:
        return evidence >= self.value

    def constant(self, n_way: int) -> float:
        return float(self.value)

    def objection(self, n_way: int) -> str | None:
        return None if n_way == self.n_way else f"its mean-std threshold was calibrated with {self.n_way} aspects"

    def calibrate(self, validation: Sequence[Scored]) -> None:
        probabilities = torch.cat([scored.probabilities for scored in validation]).cpu()
        targets = torch.cat([scored.targets for scored in validation]).cpu().numpy()
        grid = torch.linspace(0, 1, self.config.steps + 1)[1:-1]
        f1 = torch.stack([torch.from_numpy(macro_f1((probabilities >= step).numpy(), targets)) for step in grid])
        n_folds = min(self.config.folds, len(probabilities))  # no fold without an episode
        folds = torch.stack([fold.mean(1) for fold in f1.tensor_split(n_folds, 1)], 1)  # (steps, folds)
        best = grid[folds.argmax(0)]
        mean, std = best.mean(), best.std() if n_folds > 1 else torch.tensor(0.0)

        def selected(value: Tensor) -> list[Tensor]:
            self.value.copy_(value)
            return [self.select(scored) for scored in validation]

        selected(best_setting([mean, mean - std, mean + std], selected, [scored.targets for scored in validation]))
