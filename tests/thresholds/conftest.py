"""Scored episodes, made by hand."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from awatt.thresholds.base import Scored

torch.set_num_threads(1)


@pytest.fixture
def make_scored() -> Callable[..., Scored]:
    """Make ``Scored`` from a ranking (n_query, n_way) or (episodes, n_query, n_way) and the fields a test needs."""

    def make(ranking: Any, targets: Any = None, **other: Any) -> Scored:
        probabilities = block(ranking)
        episodes, n_query, n_way = probabilities.shape
        return Scored(
            probabilities=probabilities,
            scores=block(other["scores"]) if "scores" in other else probabilities.log(),
            differences=other.get("differences", torch.zeros(episodes, n_query, n_way, 2)),
            query=block(other.get("query", [[0.0]] * n_query)),
            support=block(other.get("support", [[0.0]] * n_way)),
            support_targets=block(other.get("support_targets", torch.eye(n_way))).bool(),
            support_scores=block(other["support_scores"]) if "support_scores" in other else None,
            targets=block(targets if targets is not None else torch.zeros(episodes, n_query, n_way)).bool(),
        )

    def block(values: Any) -> Tensor:
        found = values if isinstance(values, Tensor) else torch.tensor(values, dtype=torch.float32)
        return found if found.ndim == 3 else found[None]

    return make
