"""DT, the paper's dynamic threshold: a policy network proposes one per query (Williams 1992, Chou et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.arrays import softmax
from awatt.errors import AwattError
from awatt.thresholds.base import Scored, Threshold

REWARDS = ("query", "episode")


@dataclass(frozen=True)
class PolicyConfig:
    """The paper specifies linear layers and T = 2, but not the size of the layers."""

    hidden: int = 64
    #: smooths the peaked ranking while the policy learns, so that more sampled thresholds change the reward
    temperature: float = 2.0
    #: "query": F1 of each query's selected aspects, as in the paper; "episode": its effect on the episode's macro-F1
    reward: str = "query"
    #: share of the policy loss's gradient that reaches encoder and model, from 0 to 1
    network_share: float = 0.0
    #: weight of the entropy bonus, which keeps the distribution wide
    entropy: float = 0.0

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise AwattError(f"threshold.hidden is {self.hidden}, needs at least 1.")
        if not 0 < self.temperature < math.inf:
            raise AwattError(f"threshold.temperature is {self.temperature}, needs a number above 0.")
        if self.reward not in REWARDS:
            raise AwattError(f"threshold.reward is '{self.reward}', needs one of: {', '.join(REWARDS)}.")
        if not 0 <= self.network_share <= 1:
            raise AwattError(f"threshold.network_share is {self.network_share}, needs a number from 0 to 1.")
        if not 0 <= self.entropy < math.inf:
            raise AwattError(f"threshold.entropy is {self.entropy}, needs a number of at least 0.")


def beta_mode(a: Tensor, b: Tensor) -> Tensor:
    """Mode of Beta(a, b): (a - 1) / (a + b - 2) if both exceed 1.

    Otherwise the density peaks at one end: at 0 for a <= 1 < b, at 1 for b <= 1 < a. If both are at most 1, it has no
    single peak (one at each end, or flat), and the mean a / (a + b) is used instead.
    """
    inner = (a - 1) / (a + b - 2).clamp(min=1e-12)
    ends = torch.where(a <= 1, torch.zeros_like(a), torch.where(b <= 1, torch.ones_like(a), inner))
    return torch.where((a <= 1) & (b <= 1), a / (a + b), ends)


def instance_f1(selected: Tensor, targets: Tensor) -> Tensor:
    """F1 of each query's selected aspects. (..., n_query); 0 if none is selected and none is true."""
    hits = (selected & targets).sum(-1)
    return 2 * hits / (selected.sum(-1) + targets.sum(-1)).clamp(min=1)


def macro_f1_gain(sampled: Tensor, greedy: Tensor, targets: Tensor) -> Tensor:
    """Change of the episode's macro-F1 if one query gets its sampled selection and all others keep their greedy one.

    Selections and targets (..., n_query, n_way) -> (..., n_query), times n_query to match the scale of a query's F1.
    """
    before, after = (selection.to(torch.float32) for selection in (greedy, sampled))
    true = targets.to(torch.float32)

    def f1(hits: Tensor, selected: Tensor) -> Tensor:
        return (2 * hits / (selected + true.sum(-2, keepdim=True)).clamp(min=1)).mean(-1)

    hits, selected = (before * true).sum(-2, keepdim=True), before.sum(-2, keepdim=True)
    replaced = f1(hits + (after - before) * true, selected + after - before)
    return (replaced - f1(hits, selected)) * targets.shape[-2]


class Policy(Threshold):
    """State [(r^1 - r^1_q)^2; ...; (r^N - r^N_q)^2; ranking] -> Beta(a, b) -> threshold. Works for one N only."""

    config_type = PolicyConfig
    config: PolicyConfig
    stage = "joint"

    def __init__(self, config: PolicyConfig, n_way: int, dim: int) -> None:
        super().__init__(config, n_way, dim)
        self.state = nn.Linear(n_way * dim + n_way, config.hidden)
        self.a = nn.Linear(config.hidden, 1)
        self.b = nn.Linear(config.hidden, 1)

    def parameters_of(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """a and b of each query. (episodes, n_query) each

        Softplus as in the paper, plus 1 as in Chou et al. 2017, so that Beta has a single peak and a mode.
        """
        if scored.differences is None:
            raise AwattError(
                "the policy threshold needs distances, which this method does not compute. "
                "Use --threshold static, kernel-regression or mean-std."
            )
        if objection := self.objection(scored.scores.shape[-1]):
            raise AwattError(f"{objection}. Evaluate with --n-way {self.n_way}, or use --threshold static.")
        state = torch.cat([scored.differences.flatten(-2), scored.probabilities], -1)
        share = self.config.network_share
        state = state.detach() if share == 0 else share * state + (1 - share) * state.detach()
        hidden = torch.relu(self.state(state))
        return F.softplus(self.a(hidden))[..., 0] + 1, F.softplus(self.b(hidden))[..., 0] + 1

    def objection(self, n_way: int) -> str | None:
        if n_way == self.n_way:
            return None
        return f"the policy threshold was trained for {self.n_way} aspects, found {n_way}"

    def evidence(self, scored: Scored) -> Tensor:
        """The ranking minus the query's threshold; inference takes the mode of the distribution."""
        return scored.probabilities - beta_mode(*self.parameters_of(scored))[..., None]

    def accept(self, evidence: Tensor) -> Tensor:
        return evidence >= 0

    def loss(self, scored: Scored) -> Tensor:
        """Eq. 9: -(score - score*) log P(tau), the rewards of a sampled threshold and of the mode."""
        a, b = self.parameters_of(scored)
        ranking = softmax(scored.scores.detach() / self.config.temperature)
        with torch.no_grad():
            # Kept off 0 and 1, where log P is infinite.
            tau = torch.distributions.Beta(a, b).sample().clamp(1e-4, 1 - 1e-4)
            sampled, greedy = ranking >= tau[..., None], ranking >= beta_mode(a, b)[..., None]
            if self.config.reward == "episode":
                gain = macro_f1_gain(sampled, greedy, scored.targets)
            else:
                gain = instance_f1(sampled, scored.targets) - instance_f1(greedy, scored.targets)
        beta = torch.distributions.Beta(a, b)
        log_probability: Tensor = beta.log_prob(tau)  # type: ignore[no-untyped-call]
        loss = (-gain * log_probability).mean()
        if self.config.entropy:
            loss = loss - self.config.entropy * beta.entropy().mean()  # type: ignore[no-untyped-call]
        return loss
