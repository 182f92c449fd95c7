"""MS: best threshold per fold, their mean and standard deviation, and the choice among the three, by hand."""

from collections.abc import Callable

import pytest
import torch

from awatt.errors import AwattError
from awatt.thresholds.base import Scored
from awatt.thresholds.default import default_threshold
from awatt.thresholds.mean_std import MeanStd, MeanStdConfig

Make = Callable[..., Scored]


def episode(high: float, low: float) -> list[list[float]]:
    """Two queries with one aspect each. Thresholds in (low, high] are perfect; below, all are selected (F1 = 2/3)."""
    return [[high, low], [low, high]]


def calibrated(make_scored: Make, episodes: list[list[list[float]]], folds: int, each: int = 1) -> float:
    """The threshold chosen from 0.1, 0.2 .. 0.9 on batches of ``each`` episodes."""
    threshold = MeanStd(MeanStdConfig(folds=folds, steps=10), 2, 1)
    targets = torch.eye(2).expand(len(episodes), 2, 2)
    batches = [
        make_scored(torch.tensor(episodes[at : at + each]), targets[at : at + each])
        for at in range(0, len(episodes), each)
    ]
    threshold.calibrate(batches)
    return threshold.value.item()


WIDE, HIGH, LOW = episode(0.85, 0.15), episode(0.55, 0.45), episode(0.25, 0.15)


def test_the_mean_is_chosen_if_it_is_best(make_scored: Make) -> None:
    # The folds choose 0.2 (the lowest of its ties) and 0.5. Mean 0.35, deviation 0.212.
    # 0.35 has F1 (1 + 2/3) / 2, 0.138 has 2/3, 0.562 has (1 + 0) / 2.
    assert calibrated(make_scored, [WIDE, HIGH], folds=2) == pytest.approx(0.35, abs=1e-6)


def test_the_mean_plus_the_deviation_is_chosen_if_it_is_best(make_scored: Make) -> None:
    # The folds choose 0.2, 0.2 and 0.5. Mean 0.3, deviation 0.173205; only 0.473205 is perfect in every episode.
    assert calibrated(make_scored, [WIDE, WIDE, HIGH], folds=3) == pytest.approx(0.473205, abs=1e-6)


def test_the_mean_minus_the_deviation_is_chosen_if_it_is_best(make_scored: Make) -> None:
    # The folds choose 0.2, 0.2 and 0.5. At 0.126795 all have F1 2/3; from 0.3 on the first two have 0.
    assert calibrated(make_scored, [LOW, LOW, HIGH], folds=3) == pytest.approx(0.126795, abs=1e-6)


def test_a_fold_holds_several_episodes(make_scored: Make) -> None:
    # Two folds of two. 0.2 is perfect for WIDE and LOW, 0.5 for WIDE and HIGH; so 0.35 and 0.212 again.
    episodes = [WIDE, LOW, WIDE, HIGH]
    # 0.35: 1, 0, 1, 2/3 = 0.667 on average; 0.138: 2/3 = 0.667 everywhere. A tie, so the mean, which comes first.
    assert calibrated(make_scored, episodes, folds=2) == pytest.approx(0.35, abs=1e-6)
    assert calibrated(make_scored, episodes, folds=2, each=3) == pytest.approx(0.35, abs=1e-6)
    # Four folds of one choose 0.2, 0.2, 0.2 and 0.5: mean 0.275, deviation 0.15; 0.425 is 1, 0, 1, 2/3 like 0.275.
    assert calibrated(make_scored, episodes, folds=4) == pytest.approx(0.275, abs=1e-6)


@pytest.mark.filterwarnings("error")
def test_fewer_episodes_than_folds_leave_no_fold_empty(make_scored: Make) -> None:
    assert calibrated(make_scored, [WIDE, WIDE, HIGH], folds=10) == pytest.approx(0.473205, abs=1e-6)
    assert calibrated(make_scored, [HIGH], folds=10) == pytest.approx(0.5, abs=1e-6)


def test_before_calibration_it_is_the_static_threshold(make_scored: Make) -> None:
    threshold = MeanStd(MeanStdConfig(), 5, 1)
    assert threshold.value.item() == pytest.approx(default_threshold(5))
    assert threshold.select(make_scored([[0.29, 0.31, 0.2, 0.1, 0.1]])).tolist() == [[[False, True, *[False] * 3]]]
    assert set(threshold.state_dict()) == {"value"}


@pytest.mark.parametrize("name", ["folds", "steps"])
def test_invalid_settings_are_refused(name: str) -> None:
    with pytest.raises(AwattError, match=rf"threshold\.{name} is 1, needs at least 2"):
        MeanStdConfig(**{name: 1})


def test_it_is_for_the_number_of_aspects_that_it_was_calibrated_with() -> None:
    threshold = MeanStd(MeanStdConfig(), 10, 1)
    assert threshold.objection(10) is None
    assert threshold.objection(2) == "its mean-std threshold was calibrated with 10 aspects"
