"""DT, the paper's dynamic threshold: a policy network proposes one for each query (Williams 1992, Chou et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.arrays import softmax
from awatt.errors import AwattError
from awatt.thresholds.base import Scored, Threshold


@dataclass(frozen=True)
class PolicyConfig:
    """The paper names linear layers and T = 2, not their size."""

    hidden: int = 64
    #: smooths the narrow ranking, so that more actions change the reward
    temperature: float = 2.0

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise AwattError(f"threshold.hidden is {self.hidden}, needs at least 1.")
        if not 0 < self.temperature < math.inf:
            raise AwattError(f"threshold.temperature is {self.temperature}, needs a number above 0.")


def beta_mode(a: Tensor, b: Tensor) -> Tensor:
    """The most likely value of Beta(a, b): (a - 1) / (a + b - 2) while both exceed 1.

    Otherwise the density has its peak at an end: at 0 for a <= 1 < b, at 1 for b <= 1 < a. With both at or below 1 it
    has no single peak (both ends, or flat), and the mean a / (a + b) stands in.
    """
    inner = (a - 1) / (a + b - 2).clamp(min=1e-12)
    ends = torch.where(a <= 1, torch.zeros_like(a), torch.where(b <= 1, torch.ones_like(a), inner))
    return torch.where((a <= 1) & (b <= 1), a / (a + b), ends)


def instance_f1(selected: Tensor, targets: Tensor) -> Tensor:
    """F1 of each query's set of aspects. (..., n_query); 0 when nothing is selected and nothing is true."""
    hits = (selected & targets).sum(-1)
    return 2 * hits / (selected.sum(-1) + targets.sum(-1)).clamp(min=1)


class Policy(Threshold):
    """State [(r^1 - r^1_q)^2; ...; (r^N - r^N_q)^2; ranking] -> Beta(a, b) -> threshold. Made for one N."""

    config_type = PolicyConfig
    config: PolicyConfig
    stage = "joint"

    def __init__(self, config: PolicyConfig, n_way: int, dim: int) -> None:
        super().__init__(config, n_way, dim)
        self.state = nn.Linear(n_way * dim + n_way, config.hidden)
        self.a = nn.Linear(config.hidden, 1)
        self.b = nn.Linear(config.hidden, 1)

    def ranking(self, scored: Scored) -> Tensor:
        """The ranking at temperature T, on which the threshold acts."""
        return softmax(scored.scores / self.config.temperature)

    def parameters_of(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """a and b for each query. (episodes, n_query) each

        Softplus as in the paper, plus 1 as in Chou et al. 2017: Beta then has one peak, and the mode exists.
        """
        if scored.differences is None:
            raise AwattError(
                "the policy threshold looks at distances, which this method does not have. "
                "Use --threshold static, kernel-regression or mean-std."
            )
        if objection := self.objection(scored.scores.shape[-1]):
            raise AwattError(f"{objection}. Evaluate with --n-way {self.n_way}, or use --threshold static.")
        state = torch.cat([scored.differences.flatten(-2), scored.probabilities], -1).detach()
        hidden = torch.relu(self.state(state))
        return F.softplus(self.a(hidden))[..., 0] + 1, F.softplus(self.b(hidden))[..., 0] + 1

    def objection(self, n_way: int) -> str | None:
        if n_way == self.n_way:
            return None
        return f"the policy threshold was trained for {self.n_way} aspects, found {n_way}"

    def evidence(self, scored: Scored) -> Tensor:
        """By how much the ranking exceeds the query's threshold: inference takes the mode of the distribution."""
        return self.ranking(scored) - beta_mode(*self.parameters_of(scored))[..., None]

    def select(self, scored: Scored) -> Tensor:
        return self.evidence(scored) >= 0

    def loss(self, scored: Scored) -> Tensor:
        """Eq. 8: -(score - score*) log P(tau), with the F1 of a sampled threshold and of the mode."""
        a, b = self.parameters_of(scored)
        ranking = self.ranking(scored).detach()
        with torch.no_grad():
            # Kept off 0 and 1, where log P is infinite.
            tau = torch.distributions.Beta(a, b).sample().clamp(1e-4, 1 - 1e-4)
            score = instance_f1(ranking >= tau[..., None], scored.targets)
            reference = instance_f1(ranking >= beta_mode(a, b)[..., None], scored.targets)
        log_probability: Tensor = torch.distributions.Beta(a, b).log_prob(tau)  # type: ignore[no-untyped-call]
        return (-(score - reference) * log_probability).mean()
