"""The dynamic threshold: mode of Beta in every region, reward, sign of the gradient, and learning."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from awatt.errors import AwattError
from awatt.metrics import macro_f1
from awatt.thresholds.base import Scored
from awatt.thresholds.policy import Policy, PolicyConfig, beta_mode, instance_f1, macro_f1_gain

Make = Callable[..., Scored]
TINY = 2.0**-22


@pytest.mark.parametrize(
    ("a", "b", "mode"),
    [
        (3.0, 2.0, 2 / 3),  # both above 1: (a - 1) / (a + b - 2)
        (1.5, 5.5, 0.1),
        (1 + TINY, 1 + TINY, 0.5),  # just above
        (0.5, 3.0, 0.0),  # the peak is at an end
        (3.0, 0.5, 1.0),
        (1.0, 2.0, 0.0),  # on the boundary
        (2.0, 1.0, 1.0),
        (1.0, 1.0, 0.5),  # flat: the mean is used
        (0.5, 0.5, 0.5),  # a peak at both ends
        (0.5, 0.25, 2 / 3),
        (0.25, 1.0, 0.2),
    ],
)
def test_the_mode_of_beta(a: float, b: float, mode: float) -> None:
    assert beta_mode(torch.tensor(a), torch.tensor(b)).item() == pytest.approx(mode, abs=1e-6)


def test_the_mode_is_where_the_density_is_highest() -> None:
    places = torch.linspace(1e-4, 1 - 1e-4, 9999)
    for a, b in [(2.0, 7.0), (30.0, 1.5), (1.1, 1.2), (0.7, 2.0), (2.0, 0.7)]:
        density = torch.distributions.Beta(torch.tensor(a), torch.tensor(b)).log_prob(places)
        mode = beta_mode(torch.tensor(a), torch.tensor(b)).item()
        assert places[density.argmax()].item() == pytest.approx(mode, abs=2e-4)


def test_the_mode_is_never_nan() -> None:
    a, b = torch.meshgrid(torch.linspace(0.01, 3, 40), torch.linspace(0.01, 3, 40), indexing="ij")
    modes = beta_mode(a, b)
    assert modes.shape == (40, 40)
    assert ((modes >= 0) & (modes <= 1)).all()


@pytest.mark.parametrize(
    ("selected", "targets", "f1"),
    [
        ([1, 0, 0], [1, 0, 0], 1.0),
        ([1, 1, 0], [1, 0, 0], 2 / 3),
        ([1, 0, 0], [1, 1, 1], 0.5),
        ([0, 1, 1], [1, 1, 0], 0.5),
        ([0, 0, 1], [1, 0, 0], 0.0),
        ([0, 0, 0], [1, 0, 0], 0.0),
        ([1, 0, 0], [0, 0, 0], 0.0),
        ([0, 0, 0], [0, 0, 0], 0.0),
    ],
)
def test_the_f1_of_one_query_by_hand(selected: list[int], targets: list[int], f1: float) -> None:
    assert instance_f1(torch.tensor(selected).bool(), torch.tensor(targets).bool()).item() == pytest.approx(f1)


# ---- input and output


def constant(a: float, b: float, n_way: int = 3, dim: int = 2, temperature: float = 1.0) -> Policy:
    """A policy that proposes Beta(a, b) for every query: only its last biases matter."""
    policy = Policy(PolicyConfig(hidden=4, temperature=temperature), n_way, dim)
    for layer, value in ((policy.a, a), (policy.b, b)):
        nn.init.zeros_(layer.weight)
        nn.init.constant_(layer.bias, math.log(math.expm1(value - 1)))  # softplus(bias) + 1 = value
    return policy


def test_the_state_is_that_of_the_paper(make_scored: Make) -> None:
    policy = Policy(PolicyConfig(), 3, 2)
    seen: list[Tensor] = []
    policy.state.register_forward_pre_hook(lambda layer, given: seen.append(given[0]))
    differences = torch.arange(12.0).view(1, 2, 3, 2)
    ranking = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    a, b = policy.parameters_of(make_scored(ranking, differences=differences))
    assert policy.state.in_features == 3 * 2 + 3
    expected = [[0, 1, 2, 3, 4, 5, *ranking[0]], [6, 7, 8, 9, 10, 11, *ranking[1]]]
    torch.testing.assert_close(seen[0], torch.tensor([expected], dtype=torch.float32))
    assert a.shape == b.shape == (1, 2)


def test_a_and_b_are_above_one_so_that_there_is_a_mode(make_scored: Make) -> None:
    torch.manual_seed(0)
    policy = Policy(PolicyConfig(), 3, 2)
    a, b = policy.parameters_of(make_scored([[0.5, 0.3, 0.2]] * 50, differences=torch.randn(1, 50, 3, 2) * 10))
    assert (a > 1).all()
    assert (b > 1).all()
    assert a.std() > 0
    assert not torch.equal(a, b)


def test_inference_takes_the_mode(make_scored: Make) -> None:
    scored = make_scored([[0.6, 0.3, 0.1]])
    assert constant(3.0, 2.0).select(scored).tolist() == [[[False, False, False]]]  # 2/3
    assert constant(2.0, 2.0).select(scored).tolist() == [[[True, False, False]]]  # 1/2
    assert constant(2.0, 4.0).select(scored).tolist() == [[[True, True, False]]]  # 1/4


def test_the_default_temperature_is_two() -> None:
    assert PolicyConfig().temperature == 2.0


# ---- the gradient


def fix_sample(monkeypatch: pytest.MonkeyPatch, tau: float) -> None:
    monkeypatch.setattr(torch.distributions.Beta, "sample", lambda self: torch.full_like(self.mean, tau))


def log_density(tau: float, a: float, b: float) -> float:
    whole = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return whole + (a - 1) * math.log(tau) + (b - 1) * math.log(1 - tau)


# The mode of Beta(1.5, 3) is 0.2, which selects two of the ranking 0.6, 0.3, 0.1; only the first is true: F1 = 2/3.
GAINS = [(0.5, 1 - 2 / 3), (0.05, 1 / 2 - 2 / 3), (0.25, 0.0), (0.9, 0 - 2 / 3)]


@pytest.mark.parametrize(("tau", "gain"), GAINS)
def test_the_loss_by_hand(make_scored: Make, monkeypatch: pytest.MonkeyPatch, tau: float, gain: float) -> None:
    fix_sample(monkeypatch, tau)
    loss = constant(1.5, 3.0).loss(make_scored([[0.6, 0.3, 0.1]], [[1, 0, 0]]))
    assert loss.item() == pytest.approx(-gain * log_density(tau, 1.5, 3.0), abs=1e-5)


def test_the_temperature_smooths_the_reward_but_not_the_ranking_at_inference(
    make_scored: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    fix_sample(monkeypatch, 0.5)
    scored = make_scored([[0.867, 0.117, 0.016]], [[1, 0, 0]], scores=[[0.0, -2.0, -4.0]])
    # At T = 2 the ranking is e^0, e^-1, e^-2 / 1.503215 = 0.665, 0.245, 0.090: the mode, 0.2, selects two (F1 2/3), the
    # sample, 0.5, one (F1 1). At T = 1 both select one.
    plain, smooth = (constant(1.5, 3.0, temperature=temperature) for temperature in (1.0, 2.0))
    assert plain.loss(scored).item() == 0
    assert smooth.loss(scored).item() == pytest.approx(-1 / 3 * log_density(0.5, 1.5, 3.0), abs=1e-5)
    for policy in (plain, smooth):
        assert policy.select(scored).tolist() == [[[True, False, False]]]


@pytest.mark.parametrize(("tau", "gain"), GAINS)
def test_a_better_threshold_than_the_mode_becomes_likelier_and_a_worse_one_less(
    make_scored: Make, monkeypatch: pytest.MonkeyPatch, tau: float, gain: float
) -> None:
    fix_sample(monkeypatch, tau)
    policy, scored = constant(1.5, 3.0), make_scored([[0.6, 0.3, 0.1]], [[1, 0, 0]])
    policy.loss(scored).backward()
    with torch.no_grad():
        for value in policy.parameters():
            assert value.grad is not None
            value -= 0.01 * value.grad
    a, b = (value.item() for value in policy.parameters_of(scored))
    change = log_density(tau, a, b) - log_density(tau, 1.5, 3.0)
    if gain:
        assert math.copysign(1, change) == math.copysign(1, gain)
        assert abs(change) > 1e-4
    else:
        assert change == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("tau", [0.0, 1.0])
def test_a_sample_at_the_end_has_a_finite_loss(make_scored: Make, monkeypatch: pytest.MonkeyPatch, tau: float) -> None:
    fix_sample(monkeypatch, tau)
    policy = constant(1.5, 3.0)
    loss = policy.loss(make_scored([[0.6, 0.3, 0.1]], [[1, 0, 0]]))
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(value.grad).all() for value in policy.parameters() if value.grad is not None)


def test_by_default_the_reward_trains_the_policy_only(make_scored: Make) -> None:
    torch.manual_seed(0)
    scores = torch.randn(1, 8, 3, requires_grad=True)
    differences = torch.rand(1, 8, 3, 2, requires_grad=True)
    scored = make_scored(scores.softmax(-1), torch.eye(3)[torch.arange(8) % 3], scores=scores, differences=differences)
    policy = Policy(PolicyConfig(), 3, 2)
    policy.loss(scored).backward()
    assert scores.grad is None
    assert differences.grad is None
    assert all(value.grad is not None and value.grad.abs().sum() > 0 for value in policy.parameters())


def test_a_share_of_the_gradient_reaches_encoder_and_model(make_scored: Make) -> None:
    gradients = []
    for share in (0.25, 1.0):
        torch.manual_seed(0)
        differences = torch.rand(1, 8, 3, 2, requires_grad=True)
        ranking = torch.rand(1, 8, 3).softmax(-1)
        scored = make_scored(ranking, torch.eye(3)[torch.arange(8) % 3], differences=differences)
        Policy(PolicyConfig(network_share=share), 3, 2).loss(scored).backward()
        assert differences.grad is not None
        gradients.append(differences.grad)
    assert gradients[1].abs().sum() > 0
    torch.testing.assert_close(gradients[0], 0.25 * gradients[1])


def test_the_gain_of_an_episode_by_hand() -> None:
    targets = torch.tensor([[1, 0], [0, 1]]).bool()
    greedy = torch.tensor([[1, 1], [0, 1]]).bool()
    sampled = torch.tensor([[1, 0], [0, 0]]).bool()
    # Greedy: F1 of the first aspect 2 * 1 / (1 + 1) = 1, of the second 2 * 1 / (2 + 1) = 2/3; mean 5/6.
    # The first query with its sample: 1 and 2 * 1 / (1 + 1) = 1. The second with its own: 1 and 2 * 0 / (1 + 1) = 0.
    found = macro_f1_gain(sampled, greedy, targets)
    assert found.tolist() == pytest.approx([2 * (1 - 5 / 6), 2 * (1 / 2 - 5 / 6)])


def test_the_gain_of_an_episode_agrees_with_the_metric() -> None:
    generator = torch.Generator().manual_seed(0)
    greedy, sampled, targets = (torch.rand(2, 6, 4, generator=generator) < 0.4 for _ in range(3))
    found = macro_f1_gain(sampled, greedy, targets)
    for episode in range(2):
        for query in range(6):
            replaced = greedy[episode].clone()
            replaced[query] = sampled[episode, query]
            before, after = (macro_f1(sets, targets[episode]) for sets in (greedy[episode], replaced))
            assert found[episode, query].item() == pytest.approx(6 * float(after - before), abs=1e-5)


def test_the_reward_of_an_episode_and_the_entropy_by_hand(make_scored: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    fix_sample(monkeypatch, 0.5)
    policy, scored = constant(1.5, 3.0), make_scored([[0.6, 0.3, 0.1]], [[1, 0, 0]])
    # The mode, 0.2, selects two: F1 of the aspects 1, 0, 0. The sample selects one: 1, 0, 0 as well. No gain.
    policy.config = PolicyConfig(temperature=1.0, reward="episode")
    assert policy.loss(scored).item() == 0
    policy.config = PolicyConfig(temperature=1.0, reward="episode", entropy=0.5)
    assert policy.loss(scored).item() == pytest.approx(-0.5 * -0.273008, abs=1e-5)  # by numerical integration


# ---- learning


def toy(make_scored: Make, n_query: int) -> Scored:
    """A feature shows whether the best threshold is low (two true aspects) or high (one)."""
    torch.manual_seed(1)
    two = torch.arange(n_query) % 2 == 0
    ranking = torch.where(two[:, None], torch.tensor([0.5, 0.4, 0.1]), torch.tensor([0.55, 0.42, 0.03]))
    targets = torch.where(two[:, None], torch.tensor([1, 1, 0]), torch.tensor([1, 0, 0]))
    differences = (two[:, None, None] * 2.0 - 1).expand(n_query, 3, 2) + torch.randn(n_query, 3, 2) * 0.1
    return make_scored(ranking, targets, differences=differences[None])


def test_learning_finds_a_threshold_for_each_kind_of_query(make_scored: Make) -> None:
    scored = toy(make_scored, 100)
    torch.manual_seed(0)
    policy = Policy(PolicyConfig(temperature=1.0), 3, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    before = instance_f1(policy.select(scored), scored.targets).mean().item()
    for _ in range(300):
        optimizer.zero_grad()
        policy.loss(scored).backward()
        optimizer.step()
    after = instance_f1(policy.select(scored), scored.targets).mean().item()
    # A single threshold reaches (1 + 2/3) / 2 = 0.83 at best: one kind needs at most 0.4, the other more than 0.42.
    assert before < 0.85
    assert after > 0.95


# ---- errors


def test_another_number_of_aspects_is_refused(make_scored: Make) -> None:
    policy = Policy(PolicyConfig(), 3, 2)
    four = make_scored([[0.4, 0.3, 0.2, 0.1]])
    for use in (policy.select, policy.loss):
        with pytest.raises(AwattError, match=r"trained for 3 aspects, found 4\. Evaluate with --n-way 3, or use"):
            use(four)


def test_a_method_without_distances_is_refused(make_scored: Make) -> None:
    policy = Policy(PolicyConfig(), 3, 2)
    scored = make_scored([[0.6, 0.3, 0.1]], differences=None)
    for use in (policy.select, policy.loss):
        with pytest.raises(AwattError, match=r"needs distances, which this method does not compute\. Use --threshold"):
            use(scored)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 0}, r"threshold\.hidden is 0, needs at least 1"),
        ({"temperature": 0.0}, r"threshold\.temperature is 0\.0, needs a number above 0"),
        ({"temperature": -2.0}, r"threshold\.temperature is -2\.0"),
        ({"temperature": float("nan")}, r"threshold\.temperature is nan"),
        ({"reward": "auc"}, r"threshold\.reward is 'auc', needs one of: query, episode"),
        ({"network_share": 1.5}, r"threshold\.network_share is 1\.5, needs a number from 0 to 1"),
        ({"entropy": -0.1}, r"threshold\.entropy is -0\.1, needs a number of at least 0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(AwattError, match=message):
        PolicyConfig(**settings)
