"""Acceptance: features by hand, any number and order of aspects, and learning to select none."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError
from awatt.metrics import macro_f1
from awatt.thresholds.acceptance import Acceptance, AcceptanceConfig, features_of
from awatt.thresholds.base import Scored
from awatt.thresholds.static import Static, StaticConfig

Make = Callable[..., Scored]


def compress(value: float) -> float:
    return math.copysign(math.log1p(abs(value)), value)


def drawn(n_way: int, n_shot: int, n_query: int, seed: int, episodes: int = 2) -> Scored:
    """Random scores; an example may mention more than its own aspect."""
    rng = torch.Generator().manual_seed(seed)
    scores = torch.randn(episodes, n_query, n_way, generator=rng) * 5
    own = torch.eye(n_way).repeat_interleave(n_shot, 0).bool()
    more = torch.rand(episodes, n_way * n_shot, n_way, generator=rng) < 0.2
    return Scored(
        probabilities=scores.softmax(-1),
        scores=scores,
        differences=None,
        support_targets=own | more,
        targets=torch.rand(episodes, n_query, n_way, generator=rng) < 0.3,
        support_scores=torch.randn(episodes, n_way * n_shot, n_way, generator=rng) * 5,
    )


# ---- features


def test_the_features_by_hand(make_scored: Make) -> None:
    # Two aspects of two examples; the second example mentions both. Aspect 0: own mean (-1 - 3) / 2 = -2, other
    # (-5 - 7) / 2 = -6. Aspect 1: own (-2 - 1 - 3) / 3 = -2, other -8.
    scored = make_scored(
        [[0.75, 0.25]],
        scores=[[-3.0, -5.0]],
        support_scores=[[-1.0, -8.0], [-3.0, -2.0], [-5.0, -1.0], [-7.0, -3.0]],
        support_targets=[[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
    )
    found = features_of(scored)
    expected = {
        "relative": [(-3 + 6) / 4, (-5 + 8) / 6],
        "from_own": [compress(-1), compress(-3)],
        "separation": [compress(4), compress(6)],
        "margin": [compress(2), compress(-2)],
        "share": [0.75, 0.25],
        "aspects": [math.log(2)] * 2,
        "examples": [math.log(2)] * 2,
    }
    assert found._fields == tuple(expected)
    for name, values in expected.items():
        assert getattr(found, name)[0, 0].tolist() == pytest.approx(values, abs=1e-6), name


def test_the_margin_is_to_the_best_other_aspect(make_scored: Make) -> None:
    scored = make_scored([[0.2, 0.5, 0.3]], scores=[[1.0, 4.0, 2.0]], support_scores=torch.zeros(1, 3, 3))
    assert features_of(scored).margin[0, 0].tolist() == pytest.approx([compress(-3), compress(2), compress(-2)])
    tied = make_scored([[0.4, 0.4, 0.2]], scores=[[4.0, 4.0, 2.0]], support_scores=torch.zeros(1, 3, 3))
    assert features_of(tied).margin[0, 0].tolist() == pytest.approx([0, 0, compress(-2)])


def test_a_single_aspect_has_only_features_of_its_own_examples(make_scored: Make) -> None:
    scored = make_scored([[1.0]], scores=[[-5.0]], support_scores=[[-1.0], [-3.0]], support_targets=[[1.0], [1.0]])
    found = {name: value.item() for name, value in features_of(scored)._asdict().items()}
    others = {"relative": 0, "separation": 0, "margin": 0, "share": 1, "aspects": 0}
    assert found == pytest.approx(others | {"from_own": compress(-3), "examples": math.log(2)})


@pytest.mark.parametrize("own", [-6.0, -7.0])
def test_examples_that_are_no_nearer_than_others_have_no_relative_score(make_scored: Make, own: float) -> None:
    shown = [[own, 0.0], [-6.0, 0.0]]
    found = features_of(make_scored([[0.5, 0.5]], scores=[[-1.0, -1.0]], support_scores=shown))
    assert found.relative[0, 0, 0] == 0
    assert torch.isfinite(torch.stack(found)).all()


def test_relative_scores_are_clipped(make_scored: Make) -> None:
    shown = [[-1.0, 0.0], [-1.001, 0.0]]
    found = features_of(make_scored([[0.5, 0.5]] * 2, scores=[[9.0, 0.0], [-9.0, 0.0]], support_scores=shown))
    assert found.relative[0, :, 0].tolist() == [3, -3]


def test_missing_scores_of_the_examples_are_reported(make_scored: Make) -> None:
    with pytest.raises(ValueError, match="needs the scores of the examples"):
        features_of(make_scored([[0.5, 0.5]]))


# ---- output


def constant(logit: float) -> Acceptance:
    acceptance = Acceptance(AcceptanceConfig(hidden=2), 3, 1)
    torch.nn.init.zeros_(acceptance.network[2].weight)  # type: ignore[arg-type]
    torch.nn.init.constant_(acceptance.network[2].bias, logit)  # type: ignore[arg-type]
    return acceptance


def test_the_loss_is_the_cross_entropy_of_all_pairs() -> None:
    scored = drawn(3, 2, 4, seed=0)
    share, probability = scored.targets.double().mean().item(), 1 / (1 + math.exp(-0.7))
    expected = -share * math.log(probability) - (1 - share) * math.log(1 - probability)
    assert constant(0.7).loss(scored).item() == pytest.approx(expected, abs=1e-6)


def test_it_can_select_none_or_all() -> None:
    scored = drawn(3, 2, 4, seed=0)
    assert not constant(-0.1).select(scored).any()
    assert constant(0.1).select(scored).all()
    torch.testing.assert_close(constant(0.3).evidence(scored), torch.full((2, 4, 3), 1 / (1 + math.exp(-0.3))))


@settings(max_examples=50)
@given(n_way=st.integers(1, 20), n_shot=st.integers(1, 20), n_query=st.integers(1, 4), seed=st.integers(0, 2**31 - 1))
def test_the_order_of_aspects_and_of_queries_does_not_matter(n_way: int, n_shot: int, n_query: int, seed: int) -> None:
    torch.manual_seed(seed)
    acceptance, scored = Acceptance(AcceptanceConfig(), 5, 1), drawn(n_way, n_shot, n_query, seed)
    ways, queries, examples = (torch.randperm(count) for count in (n_way, n_query, n_way * n_shot))
    assert scored.support_scores is not None
    other = Scored(
        probabilities=scored.probabilities[:, queries][..., ways],
        scores=scored.scores[:, queries][..., ways],
        differences=None,
        support_targets=scored.support_targets[:, examples][..., ways],
        targets=scored.targets[:, queries][..., ways],
        support_scores=scored.support_scores[:, examples][..., ways],
    )
    evidence, permuted = acceptance.evidence(scored), acceptance.evidence(other)
    assert evidence.shape == (2, n_query, n_way)
    torch.testing.assert_close(permuted, evidence[:, queries][..., ways], rtol=1e-4, atol=1e-5)
    acceptance.value.fill_(evidence.median() + 1e-3)
    clear = (evidence - acceptance.value).abs() > 1e-4
    same = acceptance.select(other) == acceptance.select(scored)[:, queries][..., ways]
    assert same[clear[:, queries][..., ways]].all()


def test_only_the_network_learns() -> None:
    scored = drawn(3, 2, 4, seed=0)
    scored.scores.requires_grad_()
    acceptance = Acceptance(AcceptanceConfig(), 3, 1)
    acceptance.loss(scored).backward()
    assert scored.scores.grad is None
    assert all(value.grad is not None and value.grad.abs().sum() > 0 for value in acceptance.parameters())


# ---- calibration


def test_calibration_chooses_the_threshold_with_the_best_f1(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two aspects; 0.3 is the first of 0.1, 0.2 .. 0.9 with a perfect F1.
    evidence = torch.tensor([[[0.95, 0.25], [0.35, 0.3], [0.1, 0.45]]])
    targets = torch.tensor([[[1, 0], [1, 0], [0, 1]]]).bool()
    monkeypatch.setattr(Acceptance, "evidence", lambda self, scored: scored.scores)
    scored = Scored(evidence, evidence, None, targets, targets)
    acceptance = Acceptance(AcceptanceConfig(steps=10), 2, 1)
    assert acceptance.value.item() == 0.5
    acceptance.calibrate([scored, scored])
    assert acceptance.value.item() == pytest.approx(0.3)
    assert torch.equal(acceptance.select(scored), targets)


# ---- training episodes


def test_it_is_trained_on_episodes_of_many_shapes() -> None:
    own = EpisodeShape(10, 5, 4)
    shapes = Acceptance(AcceptanceConfig(), 10, 1).shapes(own)
    assert shapes[0] == own
    assert len(set(shapes)) == len(shapes)
    assert {shape.n_way for shape in shapes} == {1, 2, 3, 5, 10, 20}
    assert {shape.n_shot for shape in shapes} == {1, 2, 5, 10, 20}
    assert {shape.none_rate for shape in shapes} == {0.0, 0.3, 0.5}
    assert {shape.n_query for shape in shapes} == {4}
    assert max(shape.n_way * shape.n_shot for shape in shapes) == 100
    assert not any(shape.n_way == 1 and shape.none_rate == 0 for shape in shapes)
    narrow = AcceptanceConfig(n_ways=(2,), n_shots=(3,), none_rates=(0.5,))
    assert Acceptance(narrow, 10, 1).shapes(own) == (own, EpisodeShape(2, 3, 4, 0.5))


# ---- learning


def toy(n_way: int, seed: int, episodes: int = 20) -> Scored:
    """Distances of 1 to 2 with the aspect, 5 to 9 without; two thirds of the queries are off-topic."""
    rng = torch.Generator().manual_seed(seed)

    def distances(mentioned: Tensor) -> Tensor:
        drawn = torch.rand(mentioned.shape, generator=rng)
        return torch.where(mentioned, 1 + drawn, 5 + 4 * drawn)

    n_query = 6 * n_way
    targets = torch.eye(n_way).repeat(6, 1).bool() & (torch.arange(n_query) < 2 * n_way)[:, None]
    examples = torch.eye(n_way).repeat_interleave(3, 0).bool()
    targets, examples = targets.expand(episodes, -1, -1), examples.expand(episodes, -1, -1)
    scores = -distances(targets)
    return Scored(scores.softmax(-1), scores, None, examples, targets, support_scores=-distances(examples))


def f1(threshold: Any, scored: Scored) -> float:
    return float(macro_f1(threshold.select(scored).numpy(), scored.targets.numpy()).mean())


def test_it_learns_to_select_none_for_any_number_of_aspects() -> None:
    torch.manual_seed(0)
    acceptance = Acceptance(AcceptanceConfig(), 3, 1)
    optimizer = torch.optim.Adam(acceptance.parameters(), lr=0.02)
    for step in range(500):
        optimizer.zero_grad()
        acceptance.loss(toy((1, 2, 3, 5, 10)[step % 5], seed=step, episodes=4)).backward()
        optimizer.step()
    acceptance.calibrate([toy(3, seed=1000)])
    for n_way in (1, 2, 3, 4, 7, 15):  # some of them not trained on
        scored = toy(n_way, seed=1001)
        assert f1(acceptance, scored) > 0.95, n_way
        assert f1(Static(StaticConfig(), n_way, 1), scored) < 0.85, n_way


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 0}, r"threshold\.hidden is 0, needs at least 1"),
        ({"steps": 1}, r"threshold\.steps is 1, needs at least 2"),
        ({"max_examples": 0}, r"threshold\.max_examples is 0, needs at least 1"),
        ({"n_ways": (0, 2)}, r"threshold\.n_ways is \(0, 2\), needs whole numbers of at least 1"),
        ({"n_shots": (-1,)}, r"threshold\.n_shots is \(-1,\), needs whole numbers of at least 1"),
        ({"none_rates": (0.0, 1.0)}, r"threshold\.none_rates is \(0\.0, 1\.0\), needs numbers from 0 up to"),
    ],
)
def test_invalid_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(AwattError, match=message):
        AcceptanceConfig(**change)
