"""Trains the small network on tasks: ``python -m awatt.aspect_model.train --data datasets``. Needs torch.

The token vectors and the classifiers' temperatures and penalties are those of the bundled model. The evidence of every
task is computed once; the network is then trained on it in a few passes.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.aspect_model.calibration import CalibrationPrior
from awatt.aspect_model.classifiers import Settings
from awatt.aspect_model.evidence import compute_evidence, learn_evidence
from awatt.aspect_model.model_file import WEIGHTS, save_model
from awatt.aspect_model.names import LabelledSentences, add_names
from awatt.aspect_model.network import FACT_COLUMNS, FACTS, SCORES, Layer, Network, compute_logits, condition
from awatt.aspect_model.tasks import UNLABELLED, Pool, TaskConfig, draw_task, read_pool
from awatt.bundle import merge
from awatt.files import shared_folder
from awatt.matcher import Matcher
from awatt.packed import Sentences

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainConfig:
    """What the training depends on."""

    tasks: int = 4500
    epochs: int = 6
    tasks_per_step: int = 4
    learning_rate: float = 5e-3
    weight_decay: float = 1e-4
    first_units: int = 32
    second_units: int = 16
    detectors: int = 24
    rare_aspects: float = 0.1  # an aspect's loss counts 1 / (this + its entropy): rare ones are not drowned
    home_background: int = 60  # background sentences of the train reviews
    other_background: int = 60  # and of products, films, news and tweets
    seed: int = 5


class EvidenceTask(NamedTuple):
    """A task as the network sees it."""

    query: npt.NDArray[np.float16]  # (n_query, n_aspects, n_features)
    targets: npt.NDArray[np.bool_]  # (n_query, n_aspects)
    file: npt.NDArray[np.float16] | None  # (n_file, n_aspects, n_features)


class Trained(nn.Module):
    """The network's numbers as torch parameters; weights that must not be below 0 pass through softplus."""

    def __init__(self, config: TrainConfig, lowest_facts: Tensor, highest_facts: Tensor) -> None:
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
        layers = [
            Layer(F.softplus(weights), facts, file, bias)
            for weights, facts, file, bias in (self.first, self.second, self.last)
        ]
        return Network(*layers, self.detectors, self.detector_bias, self.lowest_facts, self.highest_facts)


def bundled_settings(matcher: Matcher) -> Settings:
    """The temperatures and penalties that the bundled model has learned."""
    given = matcher.parameters
    temperatures = [float(np.exp(given[f"log_{name}"])) for name in ("attention", "word", "nearest")]
    others = [float(np.exp(given[f"log_{name}"])) for name in ("penalty", "attended_penalty", "background")]
    return Settings(*temperatures, float(1 / (1 + np.exp(-given["mean_share"]))), *others, given["centre"])


def make_evidence(matcher: Matcher, settings: Settings, pool: Pool, config: TrainConfig) -> Iterator[EvidenceTask]:
    """The evidence of every task; task i depends on the seed and i only."""
    sentences = matcher.tokenize(pool.texts)
    for number in range(config.tasks):
        task = draw_task(pool, TaskConfig(), np.random.default_rng([config.seed, number]))
        given = add_names(LabelledSentences(sentences.take(task.labelled), task.labels), task.names, matcher.tokenize)
        if not len(task.query) or not given.labels.any(0).all():
            continue
        file = matcher.read(sentences.take(task.file)) if len(task.file) else None
        learned = learn_evidence(
            settings,
            matcher.read(given.sentences),
            given.labels.astype(np.float32),
            matcher.read(sentences.take(task.background)),
            matcher.name_vectors(task.names),
            file,
        )
        query = compute_evidence(settings, learned, matcher.read(sentences.take(task.query)))
        of_file = None if file is None else compute_evidence(settings, learned, file).astype(np.float16)
        yield EvidenceTask(query.astype(np.float16), task.targets, of_file)


def train_network(tasks: list[EvidenceTask], config: TrainConfig) -> Network:
    """Cross entropy, aspects weighted against their entropy; Adam, at full speed for the first half."""
    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    facts = np.concatenate([task.query[0][:, FACT_COLUMNS].astype(np.float32) for task in tasks])
    lowest, highest = (torch.from_numpy(np.quantile(facts, q, axis=0).astype(np.float32)) for q in (0.01, 0.99))
    trained = Trained(config, lowest, highest)
    optimizer = torch.optim.AdamW(trained.parameters(), config.learning_rate, weight_decay=config.weight_decay)
    n_steps = len(tasks) // config.tasks_per_step
    total = config.epochs * n_steps
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 2 * (1 - step / total)) + 1e-3)
    for epoch in range(config.epochs):
        losses = []
        for step in np.array_split(rng.permutation(len(tasks)), n_steps):
            optimizer.zero_grad()
            network = trained.network()
            loss = torch.stack([task_loss(network, tasks[number], config.rare_aspects) for number in step]).mean()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        _log.info("epoch %d: loss %.4f", epoch + 1, np.mean(losses))
    return _detached(trained.network())


def task_loss(network: Network, task: EvidenceTask, rare_aspects: float) -> Tensor:
    """Cross entropy of a task's queries; each aspect counts 1 / (``rare_aspects`` + the entropy of its share)."""
    query, targets = torch.from_numpy(task.query.astype(np.float32)), torch.from_numpy(task.targets).float()
    file = None if task.file is None else torch.from_numpy(task.file.astype(np.float32))
    logits = compute_logits(network, condition(network, query[:1], file), query)
    losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(0)
    share = (targets.sum(0) + 1) / (len(targets) + 2)
    weights = 1 / (rare_aspects - share * share.log() - (1 - share) * (1 - share).log())
    return (losses * weights).sum() / weights.sum()


def _detached(value: object) -> Network:
    if isinstance(value, Tensor):
        return value.detach().numpy().astype(np.float64)  # type: ignore[return-value]
    return type(value)(*map(_detached, value))  # type: ignore[call-overload,no-any-return]


def draw_background(matcher: Matcher, reviews: list[str], data: Path, config: TrainConfig) -> Sentences:
    """The sentences that ship: some of the train reviews, some of other kinds whose licence allows it."""
    rng = np.random.default_rng(config.seed)
    texts = [reviews[number] for number in rng.choice(len(reviews), config.home_background, replace=False)]
    for name in UNLABELLED:
        lines = (data / "unlabelled" / f"{name}.txt").read_text("utf-8").splitlines()
        lines = [line for line in lines if len(line.split()) > 2]
        count = config.other_background // len(UNLABELLED)
        texts += [lines[number] for number in rng.choice(len(lines), count, replace=False)]
    return matcher.tokenize(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that 'awatt data build' wrote")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--tasks", type=int, default=TrainConfig.tasks)
    parser.add_argument("--epochs", type=int, default=TrainConfig.epochs)
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.set_num_threads(1)
    config = TrainConfig(tasks=asked.tasks, epochs=asked.epochs)
    matcher = Matcher.load()
    settings = bundled_settings(matcher)
    corpus = merge(asked.data, "train")
    rows = [
        (text, [corpus.aspects[column] for column in np.flatnonzero(row)])
        for text, row in zip(corpus.sentences, corpus.mentions, strict=True)
    ]
    folder = shared_folder() / "data"
    network = train_network(list(make_evidence(matcher, settings, read_pool(rows, folder), config)), config)
    background = draw_background(matcher, list(corpus.sentences), folder, config)
    save_model(asked.out, settings, network, background, CalibrationPrior())


if __name__ == "__main__":
    main()
