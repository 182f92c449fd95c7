"""Choose a setting by its macro-F1 on validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from awatt.arrays import Array
from awatt.metrics import macro_f1

Setting = TypeVar("Setting")


def best_setting(
    settings: Sequence[Setting], select: Callable[[Setting], Sequence[Array]], targets: Sequence[Array]
) -> Setting:
    """The setting whose selections have the best macro-F1, mean over all episodes; the first one in a tie.

    Selections and targets are batches of episodes, (episodes, n_query, n_way) each.
    """
    truth = [_to_numpy(batch) for batch in targets]

    def f1(setting: Setting) -> float:
        batches = zip(map(_to_numpy, select(setting)), truth, strict=True)
        return float(np.concatenate([macro_f1(*batch) for batch in batches]).mean())

    return max(settings, key=f1)


def _to_numpy(array: Array) -> Array:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()
