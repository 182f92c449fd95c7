"""The two small networks of the detector's own model, trained on evidence that was computed before. Needs torch.

The plain network is for detectors without reviews and names and is trained on the benchmark's kind of tasks, the other
one on files of any kind.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.aspect_model.network import FACT_COLUMNS, FACTS, SCORES, Layer, Network, compute_logits, condition
from awatt.aspect_model.plain_network import PLAIN_FEATURES, PlainNetwork, compute_plain_logits
from awatt.aspect_model.tasks import TaskConfig
from awatt.config import check_above, check_at_least

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainDetectorConfig:
    """What the training depends on."""

    tasks: int = 4500  # with files, for the network
    plain_tasks: int = 2400  # like the benchmark's episodes, for the plain network; 0 keeps that of the fast model
    epochs: int = 6
    tasks_per_step: int = 4
    learning_rate: float = 5e-3
    weight_decay: float = 1e-4
    hidden: int = 32  # units of the plain network's layers
    first_units: int = 32
    second_units: int = 16
    detectors: int = 24
    rare_aspects: float = 0.1  # an aspect's loss counts 1 / (this + its entropy): rare ones are not drowned
    plain_background: int = 100  # background sentences of the plain network, of the train reviews
    background: int = 120  # those of the network, of news and tweets
    validation_episodes: int = 100
    without: tuple[str, ...] = ()  # features that the plain network does not see, for the ablation
    seed: int = 5
    task: TaskConfig = field(default_factory=TaskConfig)

    def __post_init__(self) -> None:
        counts = ("tasks", "epochs", "tasks_per_step", "validation_episodes")
        units = ("hidden", "first_units", "second_units", "detectors")
        backgrounds = ("plain_background", "background")
        check_at_least(
            self, "training", **dict.fromkeys((*counts, *units, *backgrounds), 1), plain_tasks=0, weight_decay=0, seed=0
        )
        check_above(self, "training", 0, "learning_rate", "rare_aspects")


class EvidenceTask(NamedTuple):
    """A task as the networks see it."""

    query: npt.NDArray[np.float16]  # (n_query, n_aspects, n_features)
    targets: npt.NDArray[np.bool_]  # (n_query, n_aspects)
    file: npt.NDArray[np.float16] | None  # (n_file, n_aspects, n_features)


# ---- the network that reads files


class Trained(nn.Module):
    """The network's numbers as torch parameters; weights that must not be below 0 pass through softplus."""

    def __init__(self, config: TrainDetectorConfig, lowest_facts: Tensor, highest_facts: Tensor) -> None:
        super().__init__()
        n_scores, first, second = len(SCORES), config.first_units, config.second_units
        self.lowest_facts, self.highest_facts = lowest_facts, highest_facts

        def layer(n_units: int, n_inputs: int, mean: float, conditions: float, bias: Tensor) -> nn.ParameterList:
            return nn.ParameterList(
                [
                    torch.randn(n_units, n_inputs) * 0.5 + mean,
                    torch.randn(n_units, len(FACTS)) * conditions,
                    torch.randn(n_units, config.detectors) * conditions / 6,
                    bias,
                ]
            )

        self.first = layer(first, n_scores, -2.5, 0.3, torch.randn(first) * 0.5)
        self.second = layer(second, first, -3.0, 0.0, torch.randn(second) * 0.3)
        self.last = layer(1, second + n_scores, -2.5, 0.0, torch.full((1,), -1.5))
        self.detectors = nn.Parameter(torch.randn(config.detectors, n_scores) * 0.5)
        self.detector_bias = nn.Parameter(torch.randn(config.detectors))

    def network(self) -> Network:
        """As the functions take it."""
        first, second, last = (
            Layer(F.softplus(weights), facts, file, bias)
            for weights, facts, file, bias in (self.first, self.second, self.last)
        )
        return Network(first, second, last, self.detectors, self.detector_bias, self.lowest_facts, self.highest_facts)


def train_network(tasks: list[EvidenceTask], config: TrainDetectorConfig) -> Network:
    """Cross entropy, aspects weighted against their entropy."""
    torch.manual_seed(config.seed)
    facts = np.concatenate([task.query[0][:, FACT_COLUMNS].astype(np.float32) for task in tasks])
    lowest, highest = (torch.from_numpy(np.quantile(facts, q, axis=0).astype(np.float32)) for q in (0.01, 0.99))
    trained = Trained(config, lowest, highest)
    descend(
        list(trained.parameters()),
        lambda task: task_loss(trained.network(), task, config.rare_aspects),
        tasks,
        config,
    )
    found: Network = _detached(trained.network())
    return found


def descend(
    wanted: list[Tensor],
    loss_of: Callable[[EvidenceTask], Tensor],
    tasks: list[EvidenceTask],
    config: TrainDetectorConfig,
) -> None:
    """AdamW: constant learning rate for the first half, then linear decay."""
    rng = np.random.default_rng(config.seed)
    optimizer = torch.optim.AdamW(wanted, config.learning_rate, weight_decay=config.weight_decay)
    n_steps = max(1, len(tasks) // config.tasks_per_step)
    total = config.epochs * n_steps
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 2 * (1 - step / total)) + 1e-3)
    for epoch in range(config.epochs):
        losses = []
        for step in np.array_split(rng.permutation(len(tasks)), n_steps):
            optimizer.zero_grad()
            loss = torch.stack([loss_of(tasks[number]) for number in step]).mean()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(wanted, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        _log.info("epoch %d: loss %.4f", epoch + 1, np.mean(losses))


def task_loss(network: Network, task: EvidenceTask, rare_aspects: float) -> Tensor:
    """Cross entropy of a task's queries; each aspect counts 1 / (``rare_aspects`` + the entropy of its share)."""
    query, targets = torch.from_numpy(task.query.astype(np.float32)), torch.from_numpy(task.targets).float()
    file = None if task.file is None else torch.from_numpy(task.file.astype(np.float32))
    logits = compute_logits(network, condition(network, query[:1], file), query)
    losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(0)
    share = (targets.sum(0) + 1) / (len(targets) + 2)
    weights = 1 / (rare_aspects - share * share.log() - (1 - share) * (1 - share).log())
    return (losses * weights).sum() / weights.sum()


def _detached(value: Any) -> Any:
    """In double precision: a score then does not depend on the sentences beside it."""
    if isinstance(value, Tensor):
        return value.detach().numpy().astype(np.float64)
    return type(value)(*map(_detached, value))


# ---- the plain network


def train_plain(tasks: list[EvidenceTask], config: TrainDetectorConfig) -> PlainNetwork:
    """Cross entropy, mean over the (sentence, aspect) pairs."""
    rng = np.random.default_rng(config.seed)
    sizes = list(itertools.pairwise((len(PLAIN_FEATURES), config.hidden, config.hidden, 1)))
    weights = [rng.normal(0, (2 / width) ** 0.5, (width, height)) for width, height in sizes]
    layers = [(weight, np.zeros(weight.shape[1])) for weight in weights]
    network = PlainNetwork(*(torch.tensor(part, dtype=torch.float32) for layer in layers for part in layer))
    for value in network:
        value.requires_grad_()
    keep = torch.tensor([[float(name not in config.without)] for name in PLAIN_FEATURES])

    def loss_of(task: EvidenceTask) -> Tensor:
        seen = network._replace(weight_1=network.weight_1 * keep)
        logits = compute_plain_logits(seen, torch.from_numpy(task.query.astype(np.float32)))
        return F.binary_cross_entropy_with_logits(logits, torch.from_numpy(task.targets).float())

    descend(list(network), loss_of, tasks, config)
    # A feature that is left out of training is left out of detection, too.
    found = network._replace(weight_1=network.weight_1 * keep)
    return PlainNetwork(*(value.detach().numpy().copy() for value in found))
