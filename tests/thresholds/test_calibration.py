"""The best setting on validation, by hand."""

import numpy as np
import pytest
import torch

from awatt.thresholds.calibration import best_setting

TARGETS = np.array([[[True, False], [True, False], [False, True], [False, False]]])
PROBABILITIES = np.array([[[0.9, 0.34], [0.44, 0.1], [0.2, 0.38], [0.33, 0.3]]])


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_the_setting_with_the_best_macro_f1(convert: type) -> None:
    found = best_setting([0.1, 0.35, 0.4, 0.5], lambda value: [convert(PROBABILITIES) >= value], [convert(TARGETS)])
    assert found == 0.35  # the only one that is right everywhere


def test_the_mean_is_over_episodes_and_a_tie_takes_the_first() -> None:
    batches = [np.ones((3, 1, 2), dtype=bool), np.ones((1, 2, 1), dtype=bool)]  # of different shapes

    def select(setting: str) -> list[np.ndarray]:
        return [batches[0] & setting.endswith("first"), batches[1] & (setting == "last")]

    assert best_setting(["last", "first", "also first"], select, batches) == "first"
