"""Packed sentences of token ids, and small pure functions that accept numpy arrays and torch tensors alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

Integers = npt.NDArray[np.int64]
#: A numpy array or a torch tensor. The docstrings give the shapes.
Array = Any

_BLOCK = 64  # segments that are padded together


@dataclass(frozen=True)
class Sentences:
    """Token ids of many sentences, concatenated without padding."""

    ids: Integers  # (n_tokens,)
    lengths: Integers  # (n_sentences,), each at least 1

    @classmethod
    def from_texts(cls, tokenizer: Tokenizer, texts: Sequence[str], max_length: int, empty: int) -> Sentences:
        """Tokenise; a text without tokens becomes the single token ``empty``, so that every sentence has a vector."""
        rows = [encoding.ids[:max_length] or [empty] for encoding in tokenizer.encode_batch_fast(texts)]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter((token for row in rows for token in row), dtype=np.int64, count=int(lengths.sum()))
        return cls(ids, lengths)

    def take(self, numbers: Integers) -> Sentences:
        """The sentences with these numbers, in this order."""
        lengths = self.lengths[numbers]
        return Sentences(self.ids[ranges(starts(self.lengths)[numbers], lengths)], lengths)


def starts(lengths: Integers) -> Integers:
    """The position of the first token of each packed sentence. (n_sentences,)"""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)[:-1]])


def ranges(first: Integers, lengths: Integers) -> Integers:
    """The integers ``first .. first + length - 1`` of every range, concatenated."""
    return np.repeat(first - starts(lengths), lengths) + np.arange(lengths.sum())


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


def like(values: Any, array: Array) -> Array:
    """``values`` as an array of the same library, dtype and device as ``array``."""
    if isinstance(array, np.ndarray):
        return np.asarray(values, dtype=array.dtype)
    torch = sys.modules["torch"]
    return torch.as_tensor(values, dtype=array.dtype, device=array.device)


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


def weighted_sums(weights: Array, vectors: Array, lengths: Integers) -> Array:
    """Weighted sums of vectors over consecutive segments of rows, for each of n columns of weights.

    weights (n_rows, n), vectors (n_rows, dim) -> (n, n_segments, dim). Segments of similar length are padded together.
    """
    xp = namespace(vectors)
    first, order = starts(lengths), np.argsort(lengths, kind="stable")
    parts = []
    for block in np.split(order, range(_BLOCK, len(order), _BLOCK)):
        places = np.arange(lengths[block].max())
        rows = first[block][:, None] + np.minimum(places, lengths[block][:, None] - 1)
        inside = like((places < lengths[block][:, None])[..., None], vectors)
        parts.append(xp.swapaxes(weights[rows] * inside, -1, -2) @ vectors[rows])
    return xp.swapaxes(xp.concatenate(parts)[np.argsort(order)], 0, 1)
