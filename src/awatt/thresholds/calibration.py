"""Choose a setting by its macro-F1 on validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from torch import Tensor

from awatt.metrics import macro_f1
from awatt.thresholds.base import Scored

Setting = TypeVar("Setting")


def best_setting(
    settings: Sequence[Setting], select: Callable[[Setting], list[Tensor]], validation: Sequence[Scored]
) -> Setting:
    """The setting whose selections have the best mean macro-F1; the first one in a tie."""
    targets = np.concatenate([scored.targets.cpu().numpy() for scored in validation])

    def f1(setting: Setting) -> float:
        chosen = np.concatenate([selected.cpu().numpy() for selected in select(setting)])
        return float(macro_f1(chosen, targets).mean())

    return max(settings, key=f1)
