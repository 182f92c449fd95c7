"""Trains the detector's own model: ``awatt train-detector``. Needs torch.

The token vectors are frozen, and so are the classifiers' temperatures and penalties. The evidence of every task is
computed once; two small networks are then trained on it (`train_networks`).
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from awatt.arrays import Sentences
from awatt.aspect_model.calibration import CalibrationPrior
from awatt.aspect_model.classifiers import Settings
from awatt.aspect_model.context import Memory
from awatt.aspect_model.evidence import compute_evidence, learn_evidence
from awatt.aspect_model.model import AspectModel, StoredSentences, Weights
from awatt.aspect_model.names import LabelledSentences, add_names
from awatt.aspect_model.tasks import Pool, TaskConfig, draw_task, read_pool
from awatt.aspect_model.train_encoder import NONE, read_encoder
from awatt.aspect_model.train_networks import EvidenceTask, TrainDetectorConfig, train_network, train_plain
from awatt.aspect_model.vectors import Table, TokenVectors
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.fewasp import DATASETS
from awatt.data.sampler import EpisodeShape
from awatt.encoders.static import read_model2vec
from awatt.errors import AwattError
from awatt.files import shared_folder
from awatt.thresholds.calibration import best_setting

VALIDATION = tuple(EpisodeShape(n_way, 5, 5, none_rate) for n_way in (5, 10) for none_rate in (0.0, 0.3))
MAX_LENGTH = 256
BACKGROUND = ("news", "tweets")
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


def train(
    data: Path,
    config: TrainDetectorConfig,
    on_task: Callable[[int], None] = lambda done: None,
    encoder: str = NONE,
    static: Path | None = None,
) -> AspectModel:
    """From the three datasets that ``awatt data build`` wrote, and the intents and other sentences in ``AWATT_SHARED``.

    ``on_task`` is told how many of the ``plain_tasks + tasks`` have been made, which takes most of the time.
    ``encoder`` gives token vectors in context beside the static ones, see `read_encoder`; ``static`` is a model2vec
    folder with those, in the place of the package's.
    """
    corpus = load_merged(data, "train")
    rows = [
        (text, [corpus.aspects[column] for column in np.flatnonzero(row)])
        for text, row in zip(corpus.sentences, corpus.mentions, strict=True)
    ]
    other = shared_folder() / "data"
    pool, vectors = read_pool(rows, other), read_vectors(static)
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
        if count and not found:
            raise AwattError(f"none of {count} tasks has queries. Ask for more with --set, or give larger datasets.")
    package = AspectModel.load()
    weights = Weights(
        vectors=vectors.stored,
        settings=settings,
        plain=train_plain(plain_tasks, config) if plain_tasks else package.weights.plain,
        plain_background=StoredSentences.of(draw_reviews(vectors, corpus.sentences, config)),
        network=train_network(tasks, config),
        background=StoredSentences.of(draw_background(vectors, other, config)),
        prior=CalibrationPrior(),
        student=chosen.student,
    )
    fixed = {"max_length": MAX_LENGTH, "unknown": vectors.unknown, "training": asdict(config)}
    model = AspectModel(vectors.tokenizer, weights, {"threshold": package.threshold, **fixed}, chosen.transformer)
    return calibrate_plain(model, data, config) if plain_tasks else model


def load_merged(folder: Path, split: str) -> Corpus:
    """The split of all three datasets as one corpus."""
    rows: dict[str, set[str]] = {}
    for dataset in DATASETS:
        corpus = load_corpus(folder / dataset, split)
        for text, mentioned in zip(corpus.sentences, corpus.mentions, strict=True):
            rows.setdefault(text, set()).update(corpus.aspects[place] for place in np.flatnonzero(mentioned))
    return Corpus.from_rows(split, ((text, aspects, aspects) for text, aspects in rows.items()))


def read_vectors(folder: Path | None) -> TokenVectors:
    """Static vectors of a model2vec folder, in eight bits; None for those of the package."""
    if folder is None:
        return AspectModel.load().vectors
    tokenizer, vectors, unknown = read_model2vec(folder)
    table = np.round(vectors / (np.maximum(np.abs(vectors).max(1, keepdims=True), 1e-6) / 127)).astype(np.int8)
    lengths = np.linalg.norm(table.astype(np.float32), axis=1, keepdims=True)
    scale = (1 / np.maximum(lengths, 1)).astype(np.float32)
    norm = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
    return TokenVectors(tokenizer, Table(table, scale, norm), MAX_LENGTH, unknown or 0)


def draw_reviews(vectors: TokenVectors, reviews: Sequence[str], config: TrainDetectorConfig) -> Sentences:
    """The plain network's background."""
    drawn = np.random.default_rng(config.seed).choice(len(reviews), config.plain_background, replace=False)
    return vectors.tokenize([reviews[number] for number in drawn])


def draw_background(vectors: TokenVectors, data: Path, config: TrainDetectorConfig) -> Sentences:
    """Sentences of kinds that nobody looks for aspects in: in a file of reviews, other reviews would mention them, too.

    Their licence allows to ship them.
    """
    rng = np.random.default_rng(config.seed)
    texts: list[str] = []
    for name in BACKGROUND:
        lines = (data / "unlabelled" / f"{name}.txt").read_text("utf-8").splitlines()
        lines = [line for line in lines if len(line.split()) > 2]
        count = config.background // len(BACKGROUND)
        texts += [lines[number] for number in rng.choice(len(lines), count, replace=False)]
    return vectors.tokenize(texts)


def make_evidence(
    vectors: TokenVectors, settings: Settings, pool: Pool, config: TaskConfig, count: int, seed: int
) -> Iterator[EvidenceTask]:
    """The evidence of every task; task i depends on the seed and i only."""
    sentences = vectors.tokenize(pool.texts)
    for number in range(count):
        task = draw_task(pool, config, np.random.default_rng([seed, number]))
        labelled = LabelledSentences(sentences.take(task.labelled), task.labels)
        given = add_names(labelled, task.names, vectors.read_names(task.names), vectors.tokenize)
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
