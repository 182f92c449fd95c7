"""Trains the bundled model: ``awatt bundle``. The static token vectors stay as they are, a few numbers are learned.

Tasks are as the users' are: 1 to 20 aspects, 1 to 20 examples each, fine categories or inner nodes of the category
tree ("food" is all its children), examples that carry several aspects, sentences that carry none, with the aspects'
names or without, and now and then with wrong ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from awatt.arrays import Sentences
from awatt.aspect_model.evaluation import Judged, judge
from awatt.aspect_model.features import FEATURES, Line, features, fit, logits, read_line
from awatt.aspect_model.model import Matcher
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.encoders.static import default_folder, read_model2vec
from awatt.metrics import macro_f1

DATASETS = ("FewAsp(single)", "FewAsp(multi)", "FewAsp")
VALIDATION = tuple(EpisodeShape(n_way, 5, 5, none_rate) for n_way in (5, 10) for none_rate in (0.0, 0.3))
_THRESHOLDS = np.arange(0.1, 0.61, 0.05).round(2)


@dataclass(frozen=True)
class BundleConfig:
    """What the training depends on. Validation stands still after about this many tasks."""

    tasks: int = 2400
    tasks_a_step: int = 2
    learning_rate: float = 3e-3
    hidden: int = 32
    n_background: int = 100
    inner_nodes: float = 0.4  # share of the tasks whose aspects are inner nodes of the category tree
    names: float = 0.5  # share of the tasks with the aspects' names; of these a fifth has them at the wrong aspects
    max_examples: int = 200  # of a task
    validation_episodes: int = 100
    without: tuple[str, ...] = ()  # features that are left out, for the ablation
    seed: int = 5


@dataclass(frozen=True)
class Task:
    """Numbers of sentences, and the truth for each aspect."""

    support: npt.NDArray[np.int64]
    labels: npt.NDArray[np.bool_]  # (n_support, n_aspects)
    query: npt.NDArray[np.int64]
    targets: npt.NDArray[np.bool_]  # (n_query, n_aspects)
    names: list[str]


class TaskSampler:
    """Draws tasks of all sizes from one corpus."""

    def __init__(self, corpus: Corpus, config: BundleConfig) -> None:
        self.corpus, self.config = corpus, config
        self.chance = np.random.default_rng(config.seed)
        self.leaves = {aspect: [number] for number, aspect in enumerate(corpus.aspects)}
        nodes: dict[str, list[int]] = {}
        for number, aspect in enumerate(corpus.aspects):
            parts = aspect.split("_")
            for depth in range(1, len(parts) + 1):
                nodes.setdefault("_".join(parts[:depth]), []).append(number)
        self.inner = {name: children for name, children in nodes.items() if len(children) > 1}

    def draw(self) -> Task:
        """The next task."""
        n_aspects, n_examples = (int(np.exp(self.chance.uniform(0, np.log(20.99)))) for _ in range(2))
        chosen = self._aspects(min(n_aspects, self.config.max_examples // n_examples))
        mentions = np.stack([self.corpus.mentions[:, categories].any(1) for categories in chosen.values()], 1)
        support = np.unique(np.concatenate([self._some(column, n_examples) for column in mentions.T]))
        free = np.ones(len(mentions), dtype=bool)
        free[support] = False
        query = np.concatenate([self._some(column & free, max(2, 60 // len(chosen))) for column in mentions.T])
        rate = self.chance.choice([0.0, 0.3, 0.5]) if len(chosen) > 1 else 0.5
        none = self._some(~mentions.any(1) & free, round(len(query) * rate / (1 - rate)))
        query = np.concatenate([query, none])
        if not len(query):  # a small corpus whose sentences are all examples
            return self.draw()
        return Task(support, mentions[support], query, mentions[query], list(chosen))

    def _aspects(self, count: int) -> dict[str, list[int]]:
        """Names with their categories, of which no two share one."""
        pools = [self.leaves]
        if self.chance.random() < self.config.inner_nodes:
            pools.insert(0, self.inner)
        chosen: dict[str, list[int]] = {}
        taken: set[int] = set()
        for pool in pools:
            for name in map(str, self.chance.permutation(list(pool))):
                if len(chosen) < count and not taken & set(pool[name]):
                    chosen[name] = pool[name]
                    taken.update(pool[name])
        return chosen

    def _some(self, where: npt.NDArray[np.bool_], count: int) -> npt.NDArray[np.int64]:
        members = np.flatnonzero(where)
        return self.chance.choice(members, min(count, len(members)), replace=False)


def merge(folder: Path, split: str) -> Corpus:
    """The split of all three datasets as one corpus."""
    rows: dict[str, set[str]] = {}
    for dataset in DATASETS:
        corpus = load_corpus(folder / dataset, split)
        for text, mentioned in zip(corpus.sentences, corpus.mentions, strict=True):
            rows.setdefault(text, set()).update(corpus.aspects[place] for place in np.flatnonzero(mentioned))
    return Corpus.from_rows(split, ((text, aspects, aspects) for text, aspects in rows.items()))


def start(config: BundleConfig, texts: list[str]) -> Matcher:
    """A matcher before training: the static vectors in eight bits, a background, and where the search begins."""
    tokenizer, vectors, unknown = read_model2vec(default_folder())
    table = np.round(vectors / (np.maximum(np.abs(vectors).max(1, keepdims=True), 1e-6) / 127)).astype(np.int8)
    lengths = np.linalg.norm(table.astype(np.float32), axis=1, keepdims=True)
    chance = np.random.default_rng(config.seed)
    drawn = chance.choice(len(texts), config.n_background, replace=False)
    empty = unknown or 0
    background = Sentences.from_texts(tokenizer, [texts[number] for number in drawn], 256, empty)
    first: dict[str, Any] = {
        "mean_share": 0.0,
        "log_attention": math.log(12),
        "log_word": math.log(12),
        "log_nearest": math.log(10),
        "log_penalty": math.log(0.04),
        "log_attended_penalty": math.log(0.04),
        "log_background": math.log(0.37),
    }
    sizes = (len(FEATURES), config.hidden, config.hidden, 1)
    for layer, (width, height) in enumerate(itertools.pairwise(sizes), start=1):
        first[f"weight_{layer}"] = chance.normal(0, (2 / width) ** 0.5, (width, height))
        first[f"bias_{layer}"] = np.zeros(height)
    tensors = {
        "table": table,
        "scale": (1 / np.maximum(lengths, 1)).astype(np.float32),
        "loudness": np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32),
        "background_ids": background.ids.astype(np.int32),
        "background_lengths": background.lengths.astype(np.int32),
        **{f"parameter.{name}": np.asarray(value, dtype=np.float32) for name, value in first.items()},
        "parameter.centre": np.zeros(vectors.shape[1], dtype=np.float32),
    }
    settings = {"threshold": 0.5, "max_length": 256, "unknown": empty, "training": asdict(config)}
    matcher = Matcher(tokenizer, tensors, settings)
    centre = matcher.read(matcher.tokenize(texts[:5000])).means.mean(0)
    return Matcher(tokenizer, {**tensors, "parameter.centre": centre}, settings)


class Learner:
    """The matcher's numbers as torch parameters, and the loss of a task."""

    def __init__(self, matcher: Matcher, corpus: Corpus, config: BundleConfig) -> None:
        self.matcher, self.config = matcher, config
        self.sentences = matcher.tokenize(corpus.sentences)
        self.parameters = {name: torch.tensor(value) for name, value in matcher.parameters.items()}
        for name, value in self.parameters.items():
            value.requires_grad_(name != "centre")
        self.chance = np.random.default_rng(config.seed + 1)
        self.keep = torch.tensor([float(name not in config.without) for name in FEATURES])

    def loss(self, task: Task) -> Tensor:
        """Cross entropy, mean over the (sentence, aspect) pairs."""
        # Another background each time: none of its sentences is to be learned by heart.
        background = self.chance.choice(len(self.sentences.lengths), self.config.n_background, replace=False)
        labels = torch.from_numpy(task.labels).float()
        fitted = fit(self.parameters, self._read(task.support), labels, self._read(background), self._names(task))
        evidence = features(self.parameters, fitted, self._read(task.query)) * self.keep
        return F.binary_cross_entropy_with_logits(
            logits(self.parameters, evidence), torch.from_numpy(task.targets).float()
        )

    def _read(self, numbers: npt.NDArray[np.int64]) -> Line:
        part = self.sentences.take(numbers)
        tokens, loudness = map(torch.from_numpy, self.matcher.vectors(part.ids))
        return read_line(tokens, loudness, np.arange(len(part.ids)), part.lengths)

    def _names(self, task: Task) -> Tensor:
        names = task.names
        if self.chance.random() >= self.config.names:
            names = [""] * len(names)
        elif self.chance.random() < 0.2:
            names = [str(name) for name in self.chance.permutation(names)]
        return torch.from_numpy(self.matcher.name_vectors(names))

    def learned(self) -> Matcher:
        """The matcher with the numbers as they are now."""
        found = {f"parameter.{name}": value.detach().numpy().copy() for name, value in self.parameters.items()}
        # What is left out has no say in detection either.
        found["parameter.weight_1"] = found["parameter.weight_1"] * self.keep.numpy()[:, None]
        return Matcher(self.matcher.tokenizer, {**self.matcher.tensors, **found}, self.matcher.settings)


def train(data: Path, config: BundleConfig, on_step: Callable[[int, float], None] = lambda done, loss: None) -> Matcher:
    """From the three datasets that ``awatt data build`` wrote; calibrated on their validation categories."""
    corpus = merge(data, "train")
    sampler = TaskSampler(corpus, config)
    learner = Learner(start(config, list(corpus.sentences)), corpus, config)
    wanted = [value for value in learner.parameters.values() if value.requires_grad]
    optimizer = torch.optim.Adam(wanted, lr=config.learning_rate)
    steps = config.tasks // config.tasks_a_step
    # Full speed in the first half, then down to a stop.
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 2 * (1 - step / steps)))
    for step in range(steps):
        optimizer.zero_grad()
        loss = torch.stack([learner.loss(sampler.draw()) for _ in range(config.tasks_a_step)]).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(wanted, 1.0)
        optimizer.step()
        schedule.step()
        on_step((step + 1) * config.tasks_a_step, loss.item())
    return calibrate(learner.learned(), data, config)


def calibrate(matcher: Matcher, data: Path, config: BundleConfig) -> Matcher:
    """Scale and shift of the logits, and the threshold, on the validation categories.

    The first two by cross entropy; the third by macro-F1, mean over the datasets with and without none queries.
    """
    judged = [
        judge(matcher, load_corpus(data / dataset, "val"), shape, config.validation_episodes, config.seed)
        for dataset in DATASETS
        for shape in VALIDATION
    ]
    raw = torch.cat([torch.logit(torch.from_numpy(part.probabilities), 1e-9).reshape(-1) for part in judged])
    truth = torch.cat([torch.from_numpy(part.targets).reshape(-1) for part in judged]).double()
    line = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([line], max_iter=50)

    def closure() -> Tensor:
        search.zero_grad()
        loss = F.binary_cross_entropy_with_logits(line[0] * raw + line[1], truth)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    search.step(closure)  # type: ignore[no-untyped-call]
    scale, shift = line.detach().tolist()
    tensors = dict(matcher.tensors)
    tensors["parameter.weight_3"] = (tensors["parameter.weight_3"] * scale).astype(np.float32)
    tensors["parameter.bias_3"] = (tensors["parameter.bias_3"] * scale + shift).astype(np.float32)
    threshold = best_threshold([_rescaled(part, scale, shift) for part in judged])
    return Matcher(matcher.tokenizer, tensors, {**matcher.settings, "threshold": threshold})


def _rescaled(judged: Judged, scale: float, shift: float) -> Judged:
    raw = torch.logit(torch.from_numpy(judged.probabilities), 1e-9)
    return Judged(torch.sigmoid(scale * raw + shift).numpy(), judged.targets)


def best_threshold(judged: list[Judged]) -> float:
    """That of the highest macro-F1, mean over all."""
    reached = [
        np.mean([macro_f1(part.probabilities >= threshold, part.targets).mean() for part in judged])
        for threshold in _THRESHOLDS
    ]
    return float(_THRESHOLDS[int(np.argmax(reached))])
