"""Trains the detector's own model: ``awatt train-detector``. Needs torch.

The token vectors are frozen, and so are the classifiers' temperatures and penalties. The evidence of every task is
computed once; the two small networks are then trained on it, the plain one for detectors without reviews on the
benchmark's kind of tasks, the other one on files of any kind.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.arrays import Sentences
from awatt.aspect_model.calibration import CalibrationPrior
from awatt.aspect_model.classifiers import Settings
from awatt.aspect_model.context import Memory
from awatt.aspect_model.evidence import compute_evidence, learn_evidence
from awatt.aspect_model.model import AspectModel, StoredSentences, Weights
from awatt.aspect_model.names import LabelledSentences, add_names
from awatt.aspect_model.network import FACT_COLUMNS, FACTS, SCORES, Layer, Network, compute_logits, condition
from awatt.aspect_model.plain_network import PLAIN_FEATURES, PlainNetwork, compute_plain_logits
from awatt.aspect_model.tasks import UNLABELLED, Pool, TaskConfig, draw_task, read_pool
from awatt.aspect_model.train_encoder import NONE, read_encoder
from awatt.aspect_model.vectors import Table, TokenVectors
from awatt.config import check_above, check_at_least
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.encoders.static import default_folder, read_model2vec
from awatt.errors import AwattError
from awatt.files import shared_folder
from awatt.thresholds.calibration import best_setting

DATASETS = ("FewAsp(single)", "FewAsp(multi)", "FewAsp")
VALIDATION = tuple(EpisodeShape(n_way, 5, 5, none_rate) for n_way in (5, 10) for none_rate in (0.0, 0.3))
MAX_LENGTH = 256
ENCODER_SAMPLE = 3000  # sentences whose token vectors say which directions of an encoder's vectors matter
_log = logging.getLogger(__name__)
_THRESHOLDS: list[float] = np.arange(0.1, 0.61, 0.05).round(2).tolist()
#: Found by gradient descent through the closed form of the classifiers, together with the first plain network.
TEMPERATURES = {
    "attention_temperature": 12.201158515578456,
    "word_temperature": 23.88226699829102,
    "nearest_temperature": 11.792512893676758,
    "mean_share": 0.4537365137,
    "penalty": 0.05558046,
    "attended_penalty": 0.03275936,
    "background_weight": 0.38566098,
}


@dataclass(frozen=True)
class TrainDetectorConfig:
    """What the training depends on."""

    tasks: int = 4500  # with files, for the network
    plain_tasks: int = 2400  # like the benchmark's episodes, for the plain network
    epochs: int = 6
    tasks_per_step: int = 4
    learning_rate: float = 5e-3
    weight_decay: float = 1e-4
    hidden: int = 32  # units of the plain network's layers
    first_units: int = 32
    second_units: int = 16
    detectors: int = 24
    rare_aspects: float = 0.1  # an aspect's loss counts 1 / (this + its entropy): rare ones are not drowned
    plain_background: int = 100  # background sentences of the plain network, all of the train reviews
    home_background: int = 60  # those of the network: so many of the train reviews
    other_background: int = 60  # and of products, films, news and tweets
    validation_episodes: int = 100
    without: tuple[str, ...] = ()  # features that the plain network does not see, for the ablation
    seed: int = 5
    task: TaskConfig = field(default_factory=TaskConfig)

    def __post_init__(self) -> None:
        counts = ("tasks", "plain_tasks", "epochs", "tasks_per_step", "validation_episodes")
        units = ("hidden", "first_units", "second_units", "detectors")
        backgrounds = ("plain_background", "home_background", "other_background")
        check_at_least(self, "training", **dict.fromkeys((*counts, *units, *backgrounds), 1), weight_decay=0, seed=0)
        check_above(self, "training", 0, "learning_rate", "rare_aspects")


class EvidenceTask(NamedTuple):
    """A task as the networks see it."""

    query: npt.NDArray[np.float16]  # (n_query, n_aspects, n_features)
    targets: npt.NDArray[np.bool_]  # (n_query, n_aspects)
    file: npt.NDArray[np.float16] | None  # (n_file, n_aspects, n_features)


def train(
    data: Path,
    config: TrainDetectorConfig,
    on_task: Callable[[int], None] = lambda done: None,
    encoder: str = NONE,
) -> AspectModel:
    """From the three datasets that ``awatt data build`` wrote, and the intents and other sentences in ``AWATT_SHARED``.

    ``on_task`` is told how many of the ``plain_tasks + tasks`` have been made, which takes most of the time.
    ``encoder`` gives token vectors in context beside the static ones, see `read_encoder`.
    """
    corpus = load_merged(data, "train")
    rows = [
        (text, [corpus.aspects[column] for column in np.flatnonzero(row)])
        for text, row in zip(corpus.sentences, corpus.mentions, strict=True)
    ]
    other = shared_folder() / "data"
    pool, vectors = read_pool(rows, other), read_vectors()
    chosen = read_encoder(encoder, vectors, vectors.tokenize(corpus.sentences[:ENCODER_SAMPLE]))
    if context := chosen.context(vectors):
        vectors = replace(vectors, context=Memory(context, math.inf, np.float16))  # each sentence is in many tasks
    settings = Settings(**TEMPERATURES, centre=vectors.mean_vectors(vectors.tokenize(corpus.sentences[:5000])).mean(0))
    like_episodes = replace(config.task, episodes=1.0, names=0.5, wrong_names=0.2, n_background=config.plain_background)
    made = itertools.count(1)
    plain_tasks: list[EvidenceTask] = []
    tasks: list[EvidenceTask] = []
    for found, sources, drawn, count in (
        (plain_tasks, pool.only_reviews(), like_episodes, config.plain_tasks),
        (tasks, pool, config.task, config.tasks),
    ):
        for task in make_evidence(vectors, settings, sources, drawn, count, config.seed):
            found.append(task)
            on_task(next(made))
        if not found:
            raise AwattError(f"none of {count} tasks has queries. Ask for more with --set, or give larger datasets.")
    weights = Weights(
        vectors=vectors.stored,
        settings=settings,
        plain=train_plain(plain_tasks, config),
        plain_background=StoredSentences.of(draw_reviews(vectors, corpus.sentences, config)),
        network=train_network(tasks, config),
        background=StoredSentences.of(draw_background(vectors, corpus.sentences, other, config)),
        prior=CalibrationPrior(),
        student=chosen.student,
    )
    fixed = {"threshold": 0.5, "max_length": MAX_LENGTH, "unknown": vectors.unknown, "training": asdict(config)}
    return calibrate_plain(AspectModel(vectors.tokenizer, weights, fixed, chosen.transformer), data, config)


def load_merged(folder: Path, split: str) -> Corpus:
    """The split of all three datasets as one corpus."""
    rows: dict[str, set[str]] = {}
    for dataset in DATASETS:
        corpus = load_corpus(folder / dataset, split)
        for text, mentioned in zip(corpus.sentences, corpus.mentions, strict=True):
            rows.setdefault(text, set()).update(corpus.aspects[place] for place in np.flatnonzero(mentioned))
    return Corpus.from_rows(split, ((text, aspects, aspects) for text, aspects in rows.items()))


def read_vectors() -> TokenVectors:
    """The static vectors, in eight bits."""
    tokenizer, vectors, unknown = read_model2vec(default_folder())
    table = np.round(vectors / (np.maximum(np.abs(vectors).max(1, keepdims=True), 1e-6) / 127)).astype(np.int8)
    lengths = np.linalg.norm(table.astype(np.float32), axis=1, keepdims=True)
    scale = (1 / np.maximum(lengths, 1)).astype(np.float32)
    norm = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
    return TokenVectors(tokenizer, Table(table, scale, norm), MAX_LENGTH, unknown or 0)


def draw_reviews(vectors: TokenVectors, reviews: Sequence[str], config: TrainDetectorConfig) -> Sentences:
    """The plain network's background."""
    drawn = np.random.default_rng(config.seed).choice(len(reviews), config.plain_background, replace=False)
    return vectors.tokenize([reviews[number] for number in drawn])


def draw_background(
    vectors: TokenVectors, reviews: Sequence[str], data: Path, config: TrainDetectorConfig
) -> Sentences:
    """Some sentences of the train reviews, some of other kinds whose licence allows to ship them."""
    rng = np.random.default_rng(config.seed)
    texts = [reviews[number] for number in rng.choice(len(reviews), config.home_background, replace=False)]
    for name in UNLABELLED:
        lines = (data / "unlabelled" / f"{name}.txt").read_text("utf-8").splitlines()
        lines = [line for line in lines if len(line.split()) > 2]
        count = config.other_background // len(UNLABELLED)
        texts += [lines[number] for number in rng.choice(len(lines), count, replace=False)]
    return vectors.tokenize(texts)


def make_evidence(
    vectors: TokenVectors, settings: Settings, pool: Pool, config: TaskConfig, count: int, seed: int
) -> Iterator[EvidenceTask]:
    """The evidence of every task; task i depends on the seed and i only."""
    sentences = vectors.tokenize(pool.texts)
    for number in range(count):
        task = draw_task(pool, config, np.random.default_rng([seed, number]))
        given = add_names(LabelledSentences(sentences.take(task.labelled), task.labels), task.names, vectors.tokenize)
        if not len(task.query) or not given.labels.any(0).all():
            continue
        file = vectors.embed(sentences.take(task.file)) if len(task.file) else None
        learned = learn_evidence(
            settings,
            vectors.embed(given.sentences),
            given.labels.astype(np.float32),
            vectors.embed(sentences.take(task.background)),
            vectors.name_vectors(task.names),
            file,
        )
        query = compute_evidence(settings, learned, vectors.embed(sentences.take(task.query)))
        of_file = None if file is None else compute_evidence(settings, learned, file).astype(np.float16)
        yield EvidenceTask(query.astype(np.float16), task.targets, of_file)


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
    """Adam, at full speed for the first half."""
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


def calibrate_plain(model: AspectModel, data: Path, config: TrainDetectorConfig) -> AspectModel:
    """Scale and shift of the plain logits, and the threshold, on the validation categories.

    The first two by cross entropy; the third by macro-F1, mean over the datasets with and without off-topic queries.
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
    line = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([line], max_iter=50)

    def closure() -> Tensor:
        search.zero_grad()
        loss = F.binary_cross_entropy_with_logits(line[0] * raw + line[1], truth)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    search.step(closure)  # type: ignore[no-untyped-call]
    scale, shift = line.detach().tolist()
    plain = model.weights.plain
    plain = plain._replace(
        weight_3=(plain.weight_3 * scale).astype(np.float32), bias_3=(plain.bias_3 * scale + shift).astype(np.float32)
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
    return AspectModel(model.tokenizer, model.weights._replace(plain=plain), settings, model.encoder)
