"""The radius: what it selects, and how it is calibrated, by hand."""

from collections.abc import Callable

import pytest
import torch

from awatt.errors import AwattError
from awatt.thresholds.base import Scored
from awatt.thresholds.radius import Radius, RadiusConfig

Make = Callable[..., Scored]
EVEN = [[0.5, 0.5]]


def test_selection_depends_on_the_score_and_not_on_the_ranking(make_scored: Make) -> None:
    radius = Radius(RadiusConfig(), 2, 1)
    radius.value.fill_(-2.0)
    scored = make_scored(EVEN * 3, scores=[[-1.0, -1.5], [-2.0, -1.9], [-9.0, -8.0]])
    assert radius.select(scored).tolist() == [[[True, True], [False, True], [False, False]]]
    assert torch.equal(radius.evidence(scored), scored.scores)


def test_the_best_radius_is_chosen_over_all_batches(make_scored: Make) -> None:
    # Aspects that are mentioned score -4 to -1, others -9 to -5: -5 is the only score that separates them.
    first = make_scored(EVEN * 2, [[1, 0], [0, 1]], scores=[[-1.0, -6.0], [-5.0, -2.0]])
    second = make_scored(EVEN * 2, [[1, 0], [0, 1]], scores=[[-4.0, -7.0], [-9.0, -3.0]])
    radius = Radius(RadiusConfig(steps=8), 2, 1)
    radius.calibrate([first, second])
    assert radius.value.item() == -5.0
    assert torch.equal(radius.select(second), second.targets)
    assert set(radius.state_dict()) == {"value"}


def test_the_steps_are_quantiles_of_the_scores(make_scored: Make) -> None:
    # Of 0 .. 8, three steps are 0, 4 and 8; above 4 is 5 .. 8. Above 0 all but one are selected, above 8 none.
    values = torch.arange(9.0).view(9, 1)
    scored = make_scored(torch.ones(1, 9, 1), (values > 5)[None], scores=values[None], support_targets=[[1.0]])
    radius = Radius(RadiusConfig(steps=3), 1, 1)
    radius.calibrate([scored])
    assert radius.value.item() == 4.0


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(AwattError, match=r"threshold\.steps is 1, needs at least 2"):
        RadiusConfig(steps=1)
