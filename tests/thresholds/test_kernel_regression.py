"""KR: an expectation by hand, the smallest and largest count, and calibration."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

from awatt.errors import AwattError
from awatt.metrics import macro_f1
from awatt.thresholds.base import Scored
from awatt.thresholds.default import default_threshold
from awatt.thresholds.kernel_regression import KernelRegression, KernelRegressionConfig

Make = Callable[..., Scored]


def make(bandwidth: float = 1.0, meta_rate: float = 0.0) -> KernelRegression:
    threshold = KernelRegression(KernelRegressionConfig(), 3, 1)
    threshold.bandwidth.fill_(bandwidth)
    threshold.meta_rate.fill_(meta_rate)
    return threshold


def counted(make_scored: Make, counts: list[int], support: list[float], ranking: Any = None) -> Scored:
    """Examples at positions ``support`` on a line that mention the first ``count`` of three aspects; one query at 0."""
    mentioned = [[place < count for place in range(3)] for count in counts]
    return make_scored(
        ranking or [[0.3, 0.6, 0.1]], query=[[0.0]], support=[[x] for x in support], support_targets=mentioned
    )


def test_the_threshold_by_hand(make_scored: Make) -> None:
    scored = counted(make_scored, counts=[1, 2], support=[1.0, 3.0])
    # Squared distances 1 and 9, their mean 5; weights e^(-1 / (2 * 5)) and e^(-9 / (2 * 5)): 0.689974 and 0.310026.
    # For one aspect the threshold is the second score, 0.3, for two the third, 0.1: 0.206992 + 0.031003 = 0.237995
    assert make().threshold(scored).item() == pytest.approx(0.237995, abs=1e-6)
    # A kernel of bandwidth 2 has e^(-1 / 40) and e^(-9 / 40): 0.549834 and 0.450166, so 0.164950 + 0.045017
    assert make(bandwidth=2.0).threshold(scored).item() == pytest.approx(0.209967, abs=1e-6)


def test_the_universal_threshold_is_mixed_in_by_its_weight(make_scored: Make) -> None:
    scored = counted(make_scored, counts=[1, 2], support=[1.0, 3.0])
    assert make(meta_rate=1.0).threshold(scored).item() == pytest.approx(default_threshold(3), abs=1e-6)
    mixed = 0.25 * default_threshold(3) + 0.75 * 0.237995
    assert make(meta_rate=0.25).threshold(scored).item() == pytest.approx(mixed, abs=1e-6)


@pytest.mark.parametrize(
    ("count", "selected"),
    [(0, []), (1, [1]), (2, [0, 1]), (3, [0, 1, 2])],
)
def test_if_all_examples_have_the_same_number_of_aspects_so_has_the_query(
    make_scored: Make, count: int, selected: list[int]
) -> None:
    scored = counted(make_scored, counts=[count, count], support=[0.0, 2.0])
    assert make().select(scored)[0, 0].tolist() == [place in selected for place in range(3)]


def test_the_scale_of_the_vectors_does_not_matter(make_scored: Make) -> None:
    small = counted(make_scored, counts=[1, 2], support=[1.0, 3.0])
    large = counted(make_scored, counts=[1, 2], support=[1000.0, 3000.0])
    torch.testing.assert_close(make().threshold(small), make().threshold(large))


def test_a_decision_does_not_depend_on_other_queries(make_scored: Make) -> None:
    given = {"support": [[1.0], [3.0]], "support_targets": [[1, 0, 0], [1, 1, 0]]}
    both = make_scored([[0.3, 0.6, 0.1]] * 2, query=[[0.0], [100.0]], **given)
    assert make().threshold(both)[0, 0].item() == pytest.approx(0.237995, abs=1e-6)


def test_examples_at_the_query_itself_have_equal_weight(make_scored: Make) -> None:
    scored = counted(make_scored, counts=[1, 2], support=[0.0, 0.0])
    assert make().threshold(scored).item() == pytest.approx(0.5 * 0.3 + 0.5 * 0.1, abs=1e-6)


def validation(make_scored: Make) -> list[Scored]:
    """Queries have the number of aspects of the examples near them."""
    rng = torch.Generator().manual_seed(2)
    batches = []
    for _ in range(2):
        ranking = torch.rand(6, 9, 3, generator=rng).softmax(-1)
        wide = torch.rand(6, 9, 1, generator=rng) < 0.5
        ranks = ranking.argsort(-1, descending=True).argsort(-1)
        support = torch.tensor([0.0, 0.3, 0.7, 1.0])[None, :, None].expand(6, 4, 1)
        mentioned = torch.tensor([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0]])[None].expand(6, 4, 3)
        batches.append(
            make_scored(
                ranking, ranks <= wide, query=wide.float(), support=support.contiguous(), support_targets=mentioned
            )
        )
    return batches


def f1(threshold: KernelRegression, batches: list[Scored]) -> float:
    each = [macro_f1(threshold.select(scored).numpy(), scored.targets.numpy()) for scored in batches]
    return float(sum(found.sum() for found in each) / sum(len(found) for found in each))


def test_calibration_chooses_the_best_setting_of_its_grid(make_scored: Make) -> None:
    batches = validation(make_scored)
    config = KernelRegressionConfig()
    reached = {setting: f1(make(*setting), batches) for setting in product(config.bandwidths, config.meta_rates)}
    assert max(reached.values()) > min(reached.values()) + 0.1
    threshold = KernelRegression(config, 3, 1)
    threshold.calibrate(batches)
    assert f1(threshold, batches) == max(reached.values())
    chosen = (threshold.bandwidth.item(), threshold.meta_rate.item())
    best = next(setting for setting, found in reached.items() if found == max(reached.values()))
    assert chosen == pytest.approx(best, rel=1e-6)
    assert best != (config.bandwidths[0], config.meta_rates[-1])


def test_calibrated_values_are_saved() -> None:
    assert set(make(3.0, 0.7).state_dict()) == {"bandwidth", "meta_rate"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bandwidths": ()}, r"bandwidths is \(\), needs at least one number, all above 0"),
        ({"bandwidths": (1.0, 0.0)}, r"bandwidths is \(1\.0, 0\.0\)"),
        ({"meta_rates": ()}, r"meta_rates is \(\), needs at least one share"),
        ({"meta_rates": (0.5, 1.5)}, r"meta_rates is \(0\.5, 1\.5\)"),
        ({"meta_rates": (math.nan,)}, r"meta_rates is \(nan,\)"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(AwattError, match=message):
        KernelRegressionConfig(**settings)
