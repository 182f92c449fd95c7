"""Packed sentences of token ids, and small pure functions that accept numpy arrays and torch tensors alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: A numpy array or a torch tensor. The docstrings give the shapes.
Array = Any


@dataclass(frozen=True)
class Sentences:
    """Token ids of many sentences, concatenated without padding."""

    ids: Integers  # (n_tokens,)
    lengths: Integers  # (n_sentences,), each at least 1 unless it says otherwise

    @classmethod
    def from_texts(cls, tokenizer: Tokenizer, texts: Sequence[str], max_length: int, empty: int) -> Sentences:
        """Tokenize; a text without any token becomes ``empty``, so that every sentence has a vector."""
        return cls.from_ids([encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]).cut(max_length, empty)

    @classmethod
    def from_ids(cls, texts: Sequence[Sequence[int]]) -> Sentences:
        """From the ids of each text."""
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        return cls(np.fromiter(chain.from_iterable(texts), dtype=np.int64, count=int(lengths.sum())), lengths)

    def cut(self, max_length: int, empty: int) -> Sentences:
        """Each with its first ``max_length`` tokens; one without any becomes ``empty``."""
        lengths = self.lengths
        if not len(lengths) or (lengths.max() <= max_length and lengths.min()):
            return self
        with_empty = np.append(self.ids, empty)
        first = np.where(lengths, starts(lengths), len(self.ids))
        kept = lengths.clip(1, max_length)
        return Sentences(with_empty[ranges(first, kept)], kept)

    def take(self, numbers: Integers) -> Sentences:
        """The sentences with these numbers, in this order."""
        lengths = self.lengths[numbers]
        return Sentences(self.ids[ranges(starts(self.lengths)[numbers], lengths)], lengths)

    def keys(self) -> list[bytes]:
        """The token ids of each sentence as bytes: equal for equal sentences only."""
        first, last = starts(self.lengths).tolist(), self.lengths.cumsum().tolist()
        return [self.ids[begin:end].tobytes() for begin, end in zip(first, last, strict=True)]


def starts(lengths: Integers) -> Integers:
    """The position of the first token of each packed sentence. (n_sentences,)"""
    return lengths.cumsum() - lengths


def differences(ends: Integers) -> Integers:
    """The inverse of a cumulative sum; with few numbers `np.diff` takes several times as long. (n,)"""
    found = ends.copy()
    found[1:] -= ends[:-1]
    return found


def ranges(first: Integers, lengths: Integers) -> Integers:
    """The integers ``first .. first + length - 1`` of every range, concatenated."""
    return (first - starts(lengths)).repeat(lengths) + np.arange(lengths.sum())


def cut(count: int, size: int) -> list[slice]:
    """So many rows in consecutive parts of at most ``size``: what is computed part by part takes less memory."""
    return [slice(first, first + size) for first in range(0, count, size)]


def namespace(array: Array) -> Any:
    """The module that ``array`` belongs to: numpy or torch."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def softmax(scores: Array) -> Array:
    """Softmax over the last axis."""
    if not isinstance(scores, np.ndarray):
        return namespace(scores).softmax(scores, -1)  # one pass over the data; the lines below need four
    weights = np.exp(scores - np.amax(scores, -1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def masked_softmax(scores: Array, mask: Array) -> Array:
    """Softmax over the last axis; positions where the mask is False get no weight."""
    # Not -inf: a row that is all False would become NaN; this way its weights are equal.
    return softmax(namespace(scores).where(mask, scores, -1e9))


def logistic(logits: Array) -> Array:
    """Probabilities from log-odds, of any shape."""
    if not isinstance(logits, np.ndarray):
        return namespace(logits).sigmoid(logits)
    found = np.asarray(np.exp(-logits))
    found += 1  # in place: with many numbers, memory takes the time
    return np.reciprocal(found, out=found)


def log_odds(probabilities: npt.NDArray[np.float64], surest: float = 1e-9) -> npt.NDArray[np.float64]:
    """The inverse of `logistic`, where nothing is surer than ``surest`` or 1 - ``surest``. The same shape."""
    sure = np.clip(probabilities, surest, 1 - surest)
    return np.asarray(np.log(sure / (1 - sure)))


def unit(vectors: Array) -> Array:
    """Vectors scaled to norm 1 along the last axis; zero vectors stay zero."""
    return vectors / (((vectors * vectors).sum(-1) + 1e-12) ** 0.5)[..., None]


def product(rows: Array, others: Array) -> Array:
    """Dot products of all pairs of rows. (n, dim), (m, dim) -> (n, m)

    With numpy in double precision: rounding then depends on the batch in the sixteenth digit, not the seventh, so that
    a sentence has the same score in every batch.
    """
    if isinstance(rows, np.ndarray):
        return (rows.astype(np.float64) @ others.T.astype(np.float64)).astype(rows.dtype)
    return rows @ others.T


def segment_sums(values: Array, lengths: Integers) -> Array:
    """Sums over consecutive segments of rows with these ``lengths``, at least 1. (n_rows, n) -> (n_segments, n)"""
    if isinstance(values, np.ndarray):
        return np.add.reduceat(values, starts(lengths))
    owner = sys.modules["torch"].from_numpy(np.repeat(np.arange(len(lengths)), lengths)).to(values.device)
    return values.new_zeros(len(lengths), values.shape[-1]).index_add(0, owner, values)
