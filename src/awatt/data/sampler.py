"""Draws episodes from a corpus. Episode *i* depends only on ``(seed, split, i)``, not on the batch it is drawn in."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from awatt.data.corpus import Corpus
from awatt.data.episode import Episode
from awatt.errors import AwattError, plural

Keys = npt.NDArray[np.uint64]

# Streams of random numbers within an episode; the sentences of aspect slot s are drawn from stream _SLOT + s.
_ASPECTS, _NONE, _SLOT = 0, 1, 2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_AHEAD = 64  # episodes drawn at once
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class EpisodeShape:
    """The size of an episode, with ``n_query`` queries per aspect."""

    n_way: int = 5
    n_shot: int = 5
    n_query: int = 5
    #: fraction of the queries that mention none of the episode's aspects; the paper has no such queries
    none_rate: float = 0.0

    def __post_init__(self) -> None:
        for name in ("n_way", "n_shot", "n_query"):
            if getattr(self, name) < 1:
                raise AwattError(f"{name} is {getattr(self, name)}, needs at least 1.")
        if not 0.0 <= self.none_rate < 1.0:
            raise AwattError(f"none_rate is {self.none_rate}, needs a number from 0 to below 1.")

    @property
    def n_none(self) -> int:
        """The number of queries per episode that mention none of its aspects."""
        return round(self.n_way * self.n_query * self.none_rate / (1 - self.none_rate))


class EpisodeSampler:
    """Draws episodes of one shape from one corpus, in batches."""

    def __init__(self, corpus: Corpus, shape: EpisodeShape, seed: int) -> None:
        if not 0 <= seed < 2**64:
            raise AwattError(f"the seed is {seed}, needs a whole number from 0 to 2**64 - 1.")
        self.corpus, self.shape, self.seed = corpus, shape, seed
        _check(corpus, shape)
        sizes = [len(members) for members in corpus.members]
        # Padded with -1, so that sentences of many aspects can be drawn at once.
        self._members = np.full((len(sizes), max(sizes)), -1, dtype=np.int64)
        for row, members in zip(self._members, corpus.members, strict=True):
            row[: len(members)] = members

    def batch(self, first: int, count: int) -> Episode:
        """Episodes ``first`` to ``first + count - 1``, as one batch."""
        shape, mentions = self.shape, self.corpus.mentions
        streams = _mix(_episode_seeds(self.seed, self.corpus.split, first, count))
        keys = _keys(streams, _ASPECTS, len(self.corpus.aspects))
        aspects = _lowest(keys, shape.n_way)  # (count, n_way)
        drawn = self._draw_members(streams, aspects)  # (count, n_way, n_shot + n_query)
        support = drawn[..., : shape.n_shot]
        query = drawn[..., shape.n_shot :].reshape(count, -1)
        if shape.n_none:
            query = np.concatenate([query, self._draw_none(streams, aspects)], axis=1)
        targets = mentions[query[:, :, None], aspects[:, None, :]]
        return Episode(aspects, support, query, targets)

    def batches(self, first: int, count: int, size: int) -> Iterator[Episode]:
        """The same episodes in batches of ``size``, but drawn many at a time: small draws are mostly overhead."""
        many = max(1, _AHEAD // size) * size
        for start in range(0, count, many):
            drawn = self.batch(first + start, min(many, count - start))
            yield from (drawn[place : place + size] for place in range(0, len(drawn), size))

    def _draw_members(self, streams: Keys, aspects: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Sentences for each aspect, without repetition within an episode. (count, n_way, n_shot + n_query)"""
        each = self.shape.n_shot + self.shape.n_query
        rows = np.arange(len(aspects))[:, None]
        drawn = np.empty((*aspects.shape, each), dtype=np.int64)
        used = np.zeros((len(aspects), len(self.corpus.sentences)), dtype=bool)
        for slot in range(aspects.shape[1]):
            candidates = self._members[aspects[:, slot]]
            keys = _keys(streams, _SLOT + slot, candidates.shape[1])
            # Padding, and sentences already used for an earlier aspect of the episode, go last.
            excluded = used[rows, candidates] | (candidates < 0)
            keys[excluded] = _LAST
            chosen = _lowest(keys, each)
            if excluded[rows, chosen].any():
                self._raise_exhausted(aspects[:, slot], excluded, candidates)
            drawn[:, slot] = candidates[rows, chosen]
            used[rows, drawn[:, slot]] = True
        return drawn

    def _draw_none(self, streams: Keys, aspects: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Sentences of the split that mention none of the episode's aspects. (count, n_none)"""
        mentioned = np.stack([self.corpus.mentions[:, chosen].any(1) for chosen in aspects])
        keys = _keys(streams, _NONE, mentioned.shape[1])
        keys[mentioned] = _LAST
        chosen = _lowest(keys, min(self.shape.n_none, keys.shape[1]))
        free = int((~mentioned).sum(1).min())
        if free < self.shape.n_none:
            raise AwattError(
                f"an episode needs {plural(self.shape.n_none, 'sentence')} without any of its aspects, but the "
                f"{self.corpus.split} split has only {free}. Lower the none rate, n_way or n_query."
            )
        return chosen

    def _raise_exhausted(
        self, aspects: npt.NDArray[np.int64], excluded: npt.NDArray[np.bool_], candidates: npt.NDArray[np.int64]
    ) -> None:
        """Raise an error for the aspect whose sentences were already used for other aspects of the same episode."""
        each = self.shape.n_shot + self.shape.n_query
        worst = int((~excluded).sum(1).argmin())
        name = self.corpus.aspects[aspects[worst]]
        own = candidates[worst] >= 0
        used = (excluded[worst] & own).sum()
        raise AwattError(
            f"aspect '{name}' has {plural(own.sum(), 'sentence')}, but {used} of them are used "
            f"for other aspects of the same episode, and {_requirement(self.shape)} needs {each}. "
            f"Add sentences that mention only '{name}', or lower --n-shot or --n-query."
        )


def feasible_shapes(corpus: Corpus, shapes: Iterable[EpisodeShape]) -> list[EpisodeShape]:
    """The shapes for which every episode can be drawn, whichever aspects it combines."""
    listed = np.zeros((len(corpus.sentences), len(corpus.aspects)), dtype=np.float32)
    for column, members in enumerate(corpus.members):
        listed[members, column] = 1
    shared = listed.T @ listed  # (n_aspects, n_aspects) sentences that can be used for either
    sizes = shared.diagonal().copy()
    np.fill_diagonal(shared, 0)
    mentioned = np.sort(corpus.mentions.sum(0))[::-1]

    def fits(shape: EpisodeShape) -> bool:
        if shape.n_way > len(corpus.aspects):
            return False
        each = shape.n_shot + shape.n_query
        taken = np.sort(np.minimum(shared, each))[:, ::-1][:, : shape.n_way - 1].sum(1)  # by others, at worst
        free = len(corpus.sentences) - mentioned[: shape.n_way].sum()
        return bool((sizes - taken >= each).all() and free >= shape.n_none)

    return [shape for shape in shapes if fits(shape)]


def _check(corpus: Corpus, shape: EpisodeShape) -> None:
    """Raise an error if the corpus is too small, with what it has and what is needed."""
    if len(corpus.aspects) < shape.n_way:
        raise AwattError(
            f"the {corpus.split} split has {plural(len(corpus.aspects), 'aspect')}, but {shape.n_way}-way needs "
            f"{shape.n_way}. Add aspects or lower --n-way."
        )
    needed = shape.n_shot + shape.n_query
    for aspect, members in zip(corpus.aspects, corpus.members, strict=True):
        if len(members) < needed:
            raise AwattError(
                f"aspect '{aspect}' has {plural(len(members), 'sentence')}, but {_requirement(shape)} needs "
                f"{needed}. Add {needed - len(members)}, or lower --n-shot or --n-query."
            )


def _requirement(shape: EpisodeShape) -> str:
    return f"{shape.n_shot}-shot with {plural(shape.n_query, 'query', 'queries')}"


def _mix(values: Keys) -> Keys:
    """The finaliser of SplitMix64 (Steele et al. 2014): every input bit affects every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _episode_seeds(seed: int, split: str, first: int, count: int) -> Keys:
    """A different number for each (seed, split, episode)."""
    start = np.array([seed, zlib.crc32(split.encode())], dtype=np.uint64)
    origin = _mix(_mix(start[:1] + _GOLDEN) + start[1:])
    return _mix(origin + np.arange(first, first + count, dtype=np.uint64) * _GOLDEN)


def _keys(streams: Keys, stream: int, width: int) -> Keys:
    """Random numbers of one stream for each episode. (count, width)"""
    origins = _mix(streams + np.array([stream + 1], dtype=np.uint64) * _GOLDEN)
    # The last bit is cleared, so that no key equals _LAST.
    return _mix(origins[:, None] + np.arange(1, width + 1, dtype=np.uint64) * _GOLDEN) & ~np.uint64(1)


def _lowest(keys: Keys, count: int) -> npt.NDArray[np.int64]:
    """The positions of the ``count`` lowest keys of each row, lowest first: a draw without replacement."""
    if count < keys.shape[1]:
        part = np.argpartition(keys, count - 1, axis=1)[:, :count]
    else:
        part = np.broadcast_to(np.arange(keys.shape[1]), keys.shape)
    order = np.argsort(np.take_along_axis(keys, part, axis=1), axis=1)
    return np.take_along_axis(part, order, axis=1)
