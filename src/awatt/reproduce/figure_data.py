"""Data that figures need from a trained model: macro-F1 at many thresholds, t-SNE of prototypes and queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from awatt.data.corpus import Corpus, load_corpus
from awatt.data.episode import Episode
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.encoders import Encoded
from awatt.errors import require
from awatt.metrics import macro_f1
from awatt.models.base import sentence_vectors
from awatt.models.proto_awatt import ProtoAwatt
from awatt.models.proto_hatt import ProtoHatt
from awatt.reproduce.suites import TEST_EPISODES
from awatt.research.scoring import score_episodes
from awatt.research.system import System

THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 19))  # 0.05 to 0.9
CLASSES = 5
PROTOTYPE_EPISODES, QUERY_EPISODES = 50, 20

Floats = npt.NDArray[np.float32]


def threshold_curve(system: System, data: Path, shape: EpisodeShape, seed: int) -> dict[str, Any]:
    """Mean macro-F1 of the test episodes at each static threshold."""
    total = np.zeros(len(THRESHOLDS))
    for scored in score_episodes(system, load_corpus(data, "test"), shape, TEST_EPISODES, seed):
        probabilities, targets = scored.probabilities.cpu().numpy(), scored.targets.cpu().numpy()
        total += [macro_f1(probabilities >= threshold, targets).sum() for threshold in THRESHOLDS]
    return {"threshold": THRESHOLDS, "macro_f1": [round(float(f1), 6) for f1 in total / TEST_EPISODES]}


def prototypes(system: System, data: Path, shape: EpisodeShape, seed: int) -> dict[str, Any]:
    """t-SNE of the prototypes of five classes."""
    corpus, episode, support, query = _episodes(system, data, shape, PROTOTYPE_EPISODES, seed)
    summary = system.model.summarise(support)
    if isinstance(system.model, ProtoHatt):
        # Its prototypes depend on the query; take the mean over the queries of the episode.
        weights = system.model.instance_attention(sentence_vectors(query), summary).mean(-3)
        summary = torch.einsum("...nk,...nkd->...nd", weights, summary)
    return _tsne(summary, corpus, episode.aspects, seed)


def queries(system: System, data: Path, shape: EpisodeShape, seed: int) -> dict[str, Any]:
    """t-SNE of the queries of five classes; Proto-AWATT's representation is the one for the query's class."""
    corpus, episode, support, query = _episodes(system, data, shape, QUERY_EPISODES, seed)
    classes = np.repeat(np.arange(shape.n_way), shape.n_query)  # the class for which each query was drawn
    if isinstance(system.model, ProtoAwatt):
        by_class = system.model.represent(query, system.model.summarise(support))  # (episodes, n_query, n_way, dim)
        vectors = by_class[:, np.arange(len(classes)), classes]
    else:
        vectors = sentence_vectors(query)
    return _tsne(vectors, corpus, episode.aspects[:, classes], seed)


#: figure -> function that computes its columns from system, dataset folder, shape and seed
MEASURES: dict[str, Callable[[System, Path, EpisodeShape, int], dict[str, Any]]] = {
    "figure-threshold": threshold_curve,
    "figure-prototypes": prototypes,
    "figure-queries": queries,
}


def _episodes(
    system: System, data: Path, shape: EpisodeShape, count: int, seed: int
) -> tuple[Corpus, Episode, Encoded, Encoded]:
    """Encoded test episodes, all with the same five classes."""
    corpus = load_corpus(data, "test")
    chosen = np.sort(np.random.default_rng(seed).choice(len(corpus.aspects), CLASSES, replace=False))
    corpus = replace(
        corpus,
        aspects=tuple(corpus.aspects[number] for number in chosen),
        mentions=corpus.mentions[:, chosen],
        members=tuple(corpus.members[number] for number in chosen),
    )
    episode = EpisodeSampler(corpus, replace(shape, n_way=CLASSES), seed).batch(0, count)
    system.eval()
    sentences = system.encoder.tokenize(corpus.sentences)
    tokens = system.encode(sentences)
    support, query = (Encoded.pick(tokens, sentences.lengths, part) for part in (episode.support, episode.query))
    return corpus, episode, support, query


def _tsne(vectors: Tensor, corpus: Corpus, aspects: npt.NDArray[np.int64], seed: int) -> dict[str, Any]:
    """t-SNE of the vectors (..., dim), with the aspect and the silhouette of each, computed before the projection.

    The silhouette is from -1 to 1, and high where the classes are well separated.
    """
    points: Floats = vectors.detach().flatten(0, -2).cpu().numpy()
    labels = aspects.reshape(-1)
    manifold, metrics = require("sklearn.manifold", "plots"), require("sklearn.metrics", "plots")
    projected = manifold.TSNE(init="pca", perplexity=30, random_state=seed).fit_transform(points)
    return {
        "aspect": [corpus.aspects[label] for label in labels],
        "x": [round(float(value), 2) for value in projected[:, 0]],
        "y": [round(float(value), 2) for value in projected[:, 1]],
        "silhouette": [round(float(value), 3) for value in metrics.silhouette_samples(points, labels)],
    }
