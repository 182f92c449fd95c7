"""Tasks as the users have them, to train the small network on.

A task is a file of sentences, a few aspects and some labels. Files differ in the share of off-topic sentences, in how
many topics they have (the aspects are some of them), in how frequent each is and in what they are about; labels are
none (the names alone), a few per aspect, or hundreds of sentences drawn from the file. Tasks can also be like the
benchmark's episodes: no file, aspects equally frequent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from awatt.arrays import Bools, Integers

INTENTS = ("clinc150", "banking77", "hwu64")
REVIEW_SHARE = 0.65  # of the tasks; the rest are intents
UNLABELLED = ("products", "movies", "news", "tweets")  # whose licence allows to ship their sentences


@dataclass(frozen=True)
class TaskConfig:
    """How tasks are drawn."""

    episodes: float = 0.0  # share of the tasks without a file, all aspects equally frequent
    topics: float = 0.7  # share of the tasks whose file may have more topics than the aspects
    max_topics: int = 40
    inner_nodes: float = 0.4  # share of the tasks whose aspects are inner nodes of the category tree
    names: float = 0.7  # share of the tasks with the aspects' names
    wrong_names: float = 0.1  # of these, the share whose names stand at the wrong aspects
    names_only: float = 0.2  # share of the file tasks with names where no aspect, or not every one, has examples
    random_labels: float = 0.45  # share of the file tasks in which sentences of the file are labelled
    max_cells: int = 3000  # labelled sentences times aspects
    n_file: int = 500
    n_query: int = 150
    n_background: int = 120
    home: float = 0.7  # share of the tasks with review sentences in half of their background


class Source(NamedTuple):
    """Labelled sentences of one kind; numbers are those of the pool of all sentences."""

    name: str
    numbers: Integers  # (n_sentences,)
    aspects: tuple[str, ...]
    mentions: Bools  # (n_sentences, n_aspects)


class Task(NamedTuple):
    """Numbers of sentences in the pool, and the truth for each aspect."""

    names: list[str]  # empty text for an aspect whose name is not told
    labelled: Integers
    labels: Bools  # (n_labelled, n_aspects)
    file: Integers
    query: Integers
    targets: Bools  # (n_query, n_aspects)
    background: Integers


class Pool(NamedTuple):
    """All sentences that tasks are made of."""

    texts: list[str]
    sources: list[Source]
    shares: list[float]  # how often a task is drawn from each source
    reviews: Integers  # sentences that may be background: reviews
    others: Integers  # and of other kinds

    def only_reviews(self) -> Pool:
        """Tasks of review sentences only."""
        return Pool(self.texts, self.sources[:1], [1.0], self.reviews, self.reviews)


def read_pool(reviews: Sequence[tuple[str, Sequence[str]]], data: Path) -> Pool:
    """From labelled review sentences, ``data/intents`` and ``data/unlabelled``."""
    texts: list[str] = []
    sources = []

    def add(name: str, rows: Sequence[tuple[str, Sequence[str]]]) -> Integers:
        numbers = np.arange(len(texts), len(texts) + len(rows))
        texts.extend(text for text, _ in rows)
        aspects = sorted({aspect for _, mentioned in rows for aspect in mentioned})
        column = {aspect: place for place, aspect in enumerate(aspects)}
        mentions = np.zeros((len(rows), len(aspects)), dtype=bool)
        for row, (_, mentioned) in zip(mentions, rows, strict=True):
            row[[column[aspect] for aspect in mentioned]] = True
        if aspects:
            sources.append(Source(name, numbers, tuple(aspects), mentions))
        return numbers

    of_reviews = add("reviews", reviews)
    for name in INTENTS:
        lines = (data / "intents" / f"{name}.jsonl").read_text("utf-8").splitlines()
        add(name, [(row["text"], row["aspects"]) for row in map(json.loads, lines)])
    others = []
    for name in UNLABELLED:
        lines = (data / "unlabelled" / f"{name}.txt").read_text("utf-8").splitlines()
        others.append(add(name, [(line, ()) for line in lines if len(line.split()) > 2]))
    shares = [REVIEW_SHARE, *((1 - REVIEW_SHARE) * np.array([0.45, 0.2, 0.35])).tolist()]
    return Pool(texts, sources, shares, of_reviews, np.concatenate(others))


def draw_task(pool: Pool, config: TaskConfig, rng: np.random.Generator) -> Task:
    """One task."""
    source = pool.sources[rng.choice(len(pool.sources), p=pool.shares)]
    is_episode = rng.random() < config.episodes
    n_aspects, n_examples = (int(np.exp(rng.uniform(0, np.log(20.99)))) for _ in range(2))
    n_examples = min(n_examples, max(1, 200 // n_aspects))
    topics = [] if is_episode else _more_topics(source, n_aspects, config, rng)
    chosen = topics[:n_aspects] or list(_aspects(source, n_aspects, config, rng).items())
    mentions = np.stack([source.mentions[:, columns].any(1) for _, columns in chosen], 1)
    names = _names([name for name, _ in chosen], config, rng)
    counts = np.full(len(names), n_examples)
    if not is_episode:
        counts = np.maximum(1, rng.poisson(n_examples, len(names)))
        if any(names) and rng.random() < config.names_only:
            counts[rng.random(len(names)) < rng.choice([0.5, 1.0, 1.0])] = 0
            counts[[not name for name in names]] = np.maximum(counts[[not name for name in names]], 1)
    picked = [_some(column, count, rng) for column, count in zip(mentions.T, counts, strict=True)]
    examples = np.unique(np.concatenate(picked))
    free = np.ones(len(mentions), dtype=bool)
    free[examples] = False
    background = _background(pool, config, rng)
    numbers, labels = source.numbers, mentions
    if is_episode:
        query = np.concatenate([_some(column & free, max(2, 60 // len(names)), rng) for column in mentions.T])
        rate = rng.choice([0.0, 0.3, 0.5]) if len(names) > 1 else 0.5
        none = _some(~mentions.any(1) & free, round(len(query) * rate / (1 - rate)), rng)
        query = np.concatenate([query, none])
        nothing = np.zeros(0, dtype=np.int64)
        return Task(names, numbers[examples], labels[examples], nothing, numbers[query], labels[query], background)
    n_random = 0
    if rng.random() < config.random_labels:
        n_random = min(int(np.exp(rng.uniform(np.log(10), np.log(500)))), config.max_cells // len(names))
    n_file = int(np.exp(rng.uniform(np.log(20), np.log(config.n_file + 0.99)))) if rng.random() < 0.6 else config.n_file
    others = [source.mentions[:, columns].any(1) for _, columns in topics[n_aspects:]]
    present = np.concatenate([mentions, np.array(others, dtype=bool).reshape(-1, len(mentions)).T], 1)
    own, foreign = _draw_file(pool, present, free, n_random + n_file + config.n_query, rng)
    both = np.concatenate([numbers[own], foreign])
    truth = np.concatenate([labels[own], np.zeros((len(foreign), len(names)), dtype=bool)])
    order = rng.permutation(len(both))
    random, file, query = np.split(order, [n_random, n_random + n_file])
    return Task(
        names,
        np.concatenate([numbers[examples], both[random]]),
        np.concatenate([labels[examples], truth[random]]),
        both[file],
        both[query],
        truth[query],
        background,
    )


def _draw_file(
    pool: Pool, mentions: Bools, free: Bools, count: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Sentences of the source, and of other kinds: a file with any share of sentences on none of its topics.

    ``mentions`` are those of all topics of the file, whether they are aspects or not.
    """
    off_topic = 0.0 if rng.random() < 0.2 else rng.uniform(0, 0.9)
    foreign_share = rng.choice([0.0, 0.0, 0.5, 1.0]) if rng.random() < 0.8 else rng.random()
    n_off = round(count * off_topic)
    n_foreign = round(n_off * foreign_share)
    none = _some(~mentions.any(1) & free, n_off - n_foreign, rng)
    n_foreign = n_off - len(none)
    # Draw a random frequency for each topic.
    weights = np.exp(rng.normal(0, rng.uniform(0, 2.0), mentions.shape[1]))
    per_topic = rng.multinomial(count - n_off, weights / weights.sum())
    some = [_some(column & free, n, rng) for column, n in zip(mentions.T, per_topic, strict=True)]
    foreign = rng.choice(pool.others, min(n_foreign, len(pool.others)), replace=False)
    return np.unique(np.concatenate([none, *some])), foreign


def _more_topics(
    source: Source, n_aspects: int, config: TaskConfig, rng: np.random.Generator
) -> list[tuple[str, list[int]]]:
    """The topics of a file, the aspects first.

    A user who looks for one aspect may still have a file about ten topics.
    """
    n_topics = n_aspects
    if rng.random() < config.topics:
        n_topics = max(n_aspects, int(np.exp(rng.uniform(0, np.log(config.max_topics + 0.99)))))
    topics = list(_aspects(source, n_topics, config, rng).items())
    return [topics[number] for number in rng.permutation(len(topics))]


def _aspects(source: Source, count: int, config: TaskConfig, rng: np.random.Generator) -> dict[str, list[int]]:
    """Names with the categories that each covers; no category is under two names."""
    leaves = {aspect: [number] for number, aspect in enumerate(source.aspects)}
    nodes: dict[str, list[int]] = {}
    for number, aspect in enumerate(source.aspects):
        parts = aspect.split("_")
        for depth in range(1, len(parts)):
            nodes.setdefault("_".join(parts[:depth]), []).append(number)
    inner = {name: children for name, children in nodes.items() if len(children) > 1}
    chosen: dict[str, list[int]] = {}
    taken: set[int] = set()
    for tier in [inner, leaves] if rng.random() < config.inner_nodes else [leaves]:
        for name in map(str, rng.permutation(list(tier))):
            if len(chosen) < count and not taken & set(tier[name]):
                chosen[name] = tier[name]
                taken.update(tier[name])
    return chosen


def _names(names: list[str], config: TaskConfig, rng: np.random.Generator) -> list[str]:
    if rng.random() >= config.names:
        return [""] * len(names)
    if rng.random() < config.wrong_names:
        return [str(name) for name in rng.permutation(names)]
    return [name.replace("_", " ") for name in names]


def _background(pool: Pool, config: TaskConfig, rng: np.random.Generator) -> Integers:
    n_reviews = config.n_background // 2 if rng.random() < config.home else 0
    counts = ((pool.reviews, n_reviews), (pool.others, config.n_background - n_reviews))
    return np.concatenate([rng.choice(which, min(count, len(which)), replace=False) for which, count in counts])


def _some(where: Bools, count: int, rng: np.random.Generator) -> Integers:
    members = np.flatnonzero(where)
    return rng.choice(members, min(int(count), len(members)), replace=False)
