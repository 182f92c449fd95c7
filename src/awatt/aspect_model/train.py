"""Trains the detector's own model (``awatt train-detector``). It has few parameters; the token vectors are frozen.

Training tasks resemble what users do: 1 to 20 aspects with 1 to 20 examples each; aspects are leaves or inner nodes of
the category tree ("food" includes all its children); examples may mention several aspects, queries may be off-topic;
the aspects' names are given, missing or sometimes wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from awatt.arrays import Sentences
from awatt.aspect_model.features import EmbeddedSentences, Features, Parameters, embed, features, fit, logits
from awatt.aspect_model.model import AspectModel
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.encoders.static import default_folder, read_model2vec
from awatt.thresholds.calibration import best_setting

DATASETS = ("FewAsp(single)", "FewAsp(multi)", "FewAsp")
VALIDATION = tuple(EpisodeShape(n_way, 5, 5, none_rate) for n_way in (5, 10) for none_rate in (0.0, 0.3))
_THRESHOLDS: list[float] = np.arange(0.1, 0.61, 0.05).round(2).tolist()


@dataclass(frozen=True)
class TrainDetectorConfig:
    """Training settings. Validation results stop improving after about this many tasks."""

    tasks: int = 2400
    tasks_per_step: int = 2
    learning_rate: float = 3e-3
    hidden: int = 32
    n_background: int = 100
    inner_nodes: float = 0.4  # share of tasks whose aspects are inner nodes of the category tree
    names: float = 0.5  # share of tasks with the aspects' names; in a fifth of these the names are shuffled
    max_examples: int = 200  # per task
    validation_episodes: int = 100
    without: tuple[str, ...] = ()  # features to leave out, for ablations
    seed: int = 5


@dataclass(frozen=True)
class Task:
    """Row numbers of support and query sentences, with their labels."""

    support: npt.NDArray[np.int64]
    labels: npt.NDArray[np.bool_]  # (n_support, n_aspects)
    query: npt.NDArray[np.int64]
    targets: npt.NDArray[np.bool_]  # (n_query, n_aspects)
    names: list[str]


class TaskSampler:
    """Draws tasks of all sizes from a corpus."""

    def __init__(self, corpus: Corpus, config: TrainDetectorConfig) -> None:
        self.corpus, self.config = corpus, config
        self.rng = np.random.default_rng(config.seed)
        self.leaves = {aspect: [number] for number, aspect in enumerate(corpus.aspects)}
        nodes: dict[str, list[int]] = {}
        for number, aspect in enumerate(corpus.aspects):
            parts = aspect.split("_")
            for depth in range(1, len(parts) + 1):
                nodes.setdefault("_".join(parts[:depth]), []).append(number)
        self.inner = {name: children for name, children in nodes.items() if len(children) > 1}

    def draw(self) -> Task:
        """Draw a task."""
        n_aspects, n_examples = (int(np.exp(self.rng.uniform(0, np.log(20.99)))) for _ in range(2))
        chosen = self._aspects(min(n_aspects, self.config.max_examples // n_examples))
        mentions = np.stack([self.corpus.mentions[:, categories].any(1) for categories in chosen.values()], 1)
        support = np.unique(np.concatenate([self._sample(column, n_examples) for column in mentions.T]))
        free = np.ones(len(mentions), dtype=bool)
        free[support] = False
        query = np.concatenate([self._sample(column & free, max(2, 60 // len(chosen))) for column in mentions.T])
        rate = self.rng.choice([0.0, 0.3, 0.5]) if len(chosen) > 1 else 0.5
        off_topic = self._sample(~mentions.any(1) & free, round(len(query) * rate / (1 - rate)))
        query = np.concatenate([query, off_topic])
        if not len(query):  # in a small corpus all sentences may be examples
            return self.draw()
        return Task(support, mentions[support], query, mentions[query], list(chosen))

    def _aspects(self, count: int) -> dict[str, list[int]]:
        """Aspect names with their categories; no two aspects share a category."""
        pools = [self.leaves]
        if self.rng.random() < self.config.inner_nodes:
            pools.insert(0, self.inner)
        chosen: dict[str, list[int]] = {}
        taken: set[int] = set()
        for pool in pools:
            for name in map(str, self.rng.permutation(list(pool))):
                if len(chosen) < count and not taken & set(pool[name]):
                    chosen[name] = pool[name]
                    taken.update(pool[name])
        return chosen

    def _sample(self, where: npt.NDArray[np.bool_], count: int) -> npt.NDArray[np.int64]:
        members = np.flatnonzero(where)
        return self.rng.choice(members, min(count, len(members)), replace=False)


def load_merged(folder: Path, split: str) -> Corpus:
    """A split of all three datasets as one corpus."""
    rows: dict[str, set[str]] = {}
    for dataset in DATASETS:
        corpus = load_corpus(folder / dataset, split)
        for text, mentioned in zip(corpus.sentences, corpus.mentions, strict=True):
            rows.setdefault(text, set()).update(corpus.aspects[place] for place in np.flatnonzero(mentioned))
    return Corpus.from_rows(split, ((text, aspects, aspects) for text, aspects in rows.items()))


def initial_model(config: TrainDetectorConfig, texts: list[str]) -> AspectModel:
    """The model before training: 8-bit static vectors, background sentences and initial parameters."""
    tokenizer, vectors, unknown = read_model2vec(default_folder())
    table = np.round(vectors / (np.maximum(np.abs(vectors).max(1, keepdims=True), 1e-6) / 127)).astype(np.int8)
    lengths = np.linalg.norm(table.astype(np.float32), axis=1, keepdims=True)
    rng = np.random.default_rng(config.seed)
    drawn = rng.choice(len(texts), config.n_background, replace=False)
    empty = unknown or 0
    background = Sentences.from_texts(tokenizer, [texts[number] for number in drawn], 256, empty)
    tensors = {
        "table": table,
        "scale": (1 / np.maximum(lengths, 1)).astype(np.float32),
        "loudness": np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32),
        "background_ids": background.ids.astype(np.int32),
        "background_lengths": background.lengths.astype(np.int32),
        **initial_parameters(config, vectors.shape[1], rng).to_tensors(),
    }
    settings = {"threshold": 0.5, "max_length": 256, "unknown": empty, "training": asdict(config)}
    model = AspectModel(tokenizer, tensors, settings)
    centre = model.mean_vectors(model.tokenize(texts[:5000])).mean(0)
    return AspectModel(tokenizer, {**tensors, **model.parameters._replace(centre=centre).to_tensors()}, settings)


def initial_parameters(config: TrainDetectorConfig, dim: int, rng: np.random.Generator) -> Parameters:
    """Parameters before training."""
    sizes = itertools.pairwise((len(Features._fields), config.hidden, config.hidden, 1))
    weights = [rng.normal(0, (2 / width) ** 0.5, (width, height)) for width, height in sizes]
    drawn = Parameters(
        mean_share=0.0,
        log_attention=math.log(12),
        log_word=math.log(12),
        log_nearest=math.log(10),
        log_penalty=math.log(0.04),
        log_attended_penalty=math.log(0.04),
        log_background=math.log(0.37),
        centre=np.zeros(dim),
        weight_1=weights[0],
        bias_1=np.zeros(config.hidden),
        weight_2=weights[1],
        bias_2=np.zeros(config.hidden),
        weight_3=weights[2],
        bias_3=np.zeros(1),
    )
    return Parameters(*(np.asarray(value, dtype=np.float32) for value in drawn))


class Learner:
    """The model's parameters in torch, and the loss of a task."""

    def __init__(self, model: AspectModel, corpus: Corpus, config: TrainDetectorConfig) -> None:
        self.model, self.config = model, config
        self.sentences = model.tokenize(corpus.sentences)
        self.parameters = Parameters(*(torch.tensor(value) for value in model.parameters))
        for name, value in self.parameters._asdict().items():
            value.requires_grad_(name != "centre")
        self.rng = np.random.default_rng(config.seed + 1)
        self.keep = torch.tensor([float(name not in config.without) for name in Features._fields])

    def loss(self, task: Task) -> Tensor:
        """Mean cross-entropy over the (sentence, aspect) pairs."""
        # A new background each time, so that training does not overfit one.
        background = self.rng.choice(len(self.sentences.lengths), self.config.n_background, replace=False)
        labels = torch.from_numpy(task.labels).float()
        examples = self._embed(task.support)
        fitted = fit(self.parameters, examples, labels, self._embed(background), self._names(task))
        evidence = features(self.parameters, fitted, self._embed(task.query))
        predicted = logits(self.parameters, evidence, self.keep)
        return F.binary_cross_entropy_with_logits(predicted, torch.from_numpy(task.targets).float())

    def _embed(self, numbers: npt.NDArray[np.int64]) -> EmbeddedSentences:
        part = self.sentences.take(numbers)
        tokens, norms = map(torch.from_numpy, self.model.token_vectors(part.ids))
        return embed(tokens, norms, np.arange(len(part.ids)), part.lengths)

    def _names(self, task: Task) -> Tensor:
        names = task.names
        if self.rng.random() >= self.config.names:
            names = [""] * len(names)
        elif self.rng.random() < 0.2:
            names = [str(name) for name in self.rng.permutation(names)]
        return torch.from_numpy(self.model.name_vectors(names))

    def to_model(self) -> AspectModel:
        """The model with the current parameters."""
        found = Parameters(*(value.detach().numpy().copy() for value in self.parameters))
        # A feature left out of training must be left out of detection too.
        found = found._replace(weight_1=found.weight_1 * self.keep.numpy()[:, None])
        return AspectModel(self.model.tokenizer, {**self.model.tensors, **found.to_tensors()}, self.model.settings)


def train(
    data: Path, config: TrainDetectorConfig, on_step: Callable[[int, float], None] = lambda done, loss: None
) -> AspectModel:
    """Train on the three datasets that ``awatt data build`` wrote, and calibrate on their val splits."""
    corpus = load_merged(data, "train")
    sampler = TaskSampler(corpus, config)
    learner = Learner(initial_model(config, list(corpus.sentences)), corpus, config)
    trainable = [value for value in learner.parameters if value.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=config.learning_rate)
    steps = config.tasks // config.tasks_per_step
    # The full learning rate in the first half, then a linear decay to zero.
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 2 * (1 - step / steps)))
    for step in range(steps):
        optimizer.zero_grad()
        loss = torch.stack([learner.loss(sampler.draw()) for _ in range(config.tasks_per_step)]).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        schedule.step()
        on_step((step + 1) * config.tasks_per_step, loss.item())
    return calibrate(learner.to_model(), data, config)


def calibrate(model: AspectModel, data: Path, config: TrainDetectorConfig) -> AspectModel:
    """Fit the scale and shift of the logits, and the threshold, on the val splits.

    Scale and shift minimise cross-entropy; the threshold maximises the mean macro-F1 over episodes with and without
    off-topic queries.
    """
    predicted = [
        episode
        for dataset in DATASETS
        for shape in VALIDATION
        for episode in model.predict_episodes(
            load_corpus(data / dataset, "val"), shape, config.validation_episodes, config.seed
        )
    ]
    raw = torch.cat([torch.logit(torch.from_numpy(episode.evidence), 1e-9).reshape(-1) for episode in predicted])
    truth = torch.cat([torch.from_numpy(episode.targets).reshape(-1) for episode in predicted]).double()
    affine = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)  # scale and shift
    optimizer = torch.optim.LBFGS([affine], max_iter=50)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(affine[0] * raw + affine[1], truth)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    scale, shift = affine.detach().tolist()
    found = model.parameters
    found = found._replace(
        weight_3=(found.weight_3 * scale).astype(np.float32), bias_3=(found.bias_3 * scale + shift).astype(np.float32)
    )
    probabilities = torch.sigmoid(scale * raw + shift).numpy()
    sizes = np.cumsum([episode.evidence.size for episode in predicted])[:-1]
    rescaled = [
        part.reshape(episode.targets.shape)
        for part, episode in zip(np.split(probabilities, sizes), predicted, strict=True)
    ]
    threshold = best_setting(
        _THRESHOLDS, lambda value: [part >= value for part in rescaled], [episode.targets for episode in predicted]
    )
    settings = {**model.settings, "threshold": threshold}
    return AspectModel(model.tokenizer, {**model.tensors, **found.to_tensors()}, settings)
