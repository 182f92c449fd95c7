"""The static threshold: the paper's two values, a curve through them, and what it selects."""

from collections.abc import Callable

import pytest

from awatt.errors import AwattError
from awatt.thresholds.base import Scored
from awatt.thresholds.default import default_threshold
from awatt.thresholds.kinds import THRESHOLDS
from awatt.thresholds.static import Static, StaticConfig

Make = Callable[..., Scored]


def test_the_defaults_are_the_papers() -> None:
    assert default_threshold(5) == pytest.approx(0.3, abs=1e-12)
    assert default_threshold(10) == pytest.approx(0.2, abs=1e-12)


def test_the_default_falls_with_the_number_of_aspects_and_stays_useful() -> None:
    values = [default_threshold(n_way) for n_way in range(1, 101)]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 90
    # Above 1 / N, or everything could be selected; at most 0.5, or two aspects could never be.
    assert all(1 / n_way < value <= 0.5 for n_way, value in enumerate(values[2:], start=3))
    assert values[:2] == [0.5, 0.5]


def test_aspects_that_reach_the_threshold_are_selected(make_scored: Make) -> None:
    scored = make_scored([[0.5, 0.25, 0.25], [0.75, 0.125, 0.125]])
    threshold = Static(StaticConfig(0.25), 3, 2)
    assert threshold.select(scored).tolist() == [[[True, True, True], [True, False, False]]]
    assert Static(StaticConfig(0.0), 3, 2).select(scored).all()
    assert not Static(StaticConfig(1.0), 3, 2).select(scored).any()


def test_the_default_depends_on_the_episode_and_not_on_training(make_scored: Make) -> None:
    threshold = Static(StaticConfig(), 5, 2)
    # 0.25 is below 5-way's 0.3 and above 10-way's 0.2
    assert threshold.select(make_scored([[0.25, 0.31, 0.2, 0.2, 0.04]])).tolist() == [[[False, True, *[False] * 3]]]
    assert threshold.select(make_scored([[0.25, 0.19, *[0.07] * 8]])).tolist() == [[[True, *[False] * 9]]]


@pytest.mark.parametrize("value", [-0.5, 1.01, -2.0, float("nan"), float("inf")])
def test_a_value_outside_zero_to_one_is_refused(value: float) -> None:
    with pytest.raises(AwattError, match=rf"static threshold is {value}, needs a number from 0 to 1"):
        StaticConfig(value)


def test_a_fixed_threshold_refuses_training_and_calibration(make_scored: Make) -> None:
    threshold = Static(StaticConfig(), 3, 2)
    assert not threshold.stage
    assert not threshold.calibrated
    assert list(threshold.parameters()) == []
    with pytest.raises(NotImplementedError, match="Static is not calibrated"):
        threshold.calibrate([])
    with pytest.raises(NotImplementedError, match="Static is not trained"):
        threshold.loss(make_scored([[0.5, 0.5]]))


def test_every_kind_has_a_name_and_settings() -> None:
    assert list(THRESHOLDS) == ["static", "policy", "kernel-regression", "mean-std", "radius", "acceptance"]
    for kind in THRESHOLDS.values():
        threshold = kind(kind.config_type(), 4, 2)
        assert threshold.n_way == 4
        assert bool(list(threshold.parameters())) == bool(kind.stage)
        assert bool(list(threshold.buffers())) == kind.calibrated
