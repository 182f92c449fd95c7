"""The student: a small transformer over static token vectors that predicts a sentence encoder's token vectors.

Numpy only. Everything that depends on a token alone (the stem, and what the first attention reads) is computed once
per distinct token. A sentence's vectors are the same to the last bit whatever sentences are encoded beside it: matrix
products run on blocks of a fixed number of rows, attention on one sentence at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.packed import Integers, Sentences, ranges, starts

Floats = npt.NDArray[np.float32]

_ROWS = 64  # matrix products have a multiple of this many rows, so that each row is computed by the same instructions
_BLOCK = 1024  # tokens that pass through the layers together: what fits into the cache
_EPSILON = np.float32(1e-6)


class Linear(NamedTuple):
    """An affine map."""

    weight: Floats  # (n_in, n_out)
    bias: Floats  # (n_out,)

    def __call__(self, rows: Floats) -> Floats:
        return rows @ self.weight + self.bias


class Layer(NamedTuple):
    """Attention and a feed-forward network, each on normalised input and added to it."""

    attention_in: Linear  # width -> queries, keys (n_heads * key_width each), values (width)
    attention_bias: Floats  # (n_heads, 2 * reach + 1), by the distance of two tokens, at most ``reach``
    attention_out: Linear  # width -> width
    forward_in: Linear  # width -> hidden
    forward_out: Linear  # hidden -> width


class Student(NamedTuple):
    """The weights, in single precision but for the table, which is large and read row by row."""

    extra: npt.NDArray[np.int8]  # (n_vocabulary, n_extra) what each token is predicted to be without any context
    extra_scale: Floats  # (n_vocabulary, 1)
    stem: Linear  # token vector -> width
    stem_in: Linear  # token vector -> hidden
    stem_out: Linear  # hidden -> width
    layers: tuple[Layer, ...]
    out: Linear  # width -> dim

    @property
    def dim(self) -> int:
        """Of the predicted vectors."""
        return len(self.out.bias)


def read_student(tensors: Mapping[str, npt.NDArray[Any]]) -> Student:
    """From the tensors of a file: weights as int8 with a scale per column, named as the fields are."""

    def linear(name: str) -> Linear:
        weight = tensors[f"{name}.weight"].astype(np.float32) * tensors[f"{name}.scale"]
        return Linear(weight, tensors[f"{name}.bias"])

    layers = []
    while (name := f"layers.{len(layers)}") + ".attention_bias" in tensors:
        parts = {part: linear(f"{name}.{part}") for part in Layer._fields if part != "attention_bias"}
        layers.append(Layer(attention_bias=tensors[f"{name}.attention_bias"], **parts))
    table = (tensors["extra"], tensors["extra_scale"])
    return Student(*table, linear("stem"), linear("stem_in"), linear("stem_out"), tuple(layers), linear("out"))


def quantise(weight: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """A matrix (n_in, n_out) as int8, and the scale of each column (n_out,)."""
    scale = (np.maximum(np.abs(weight).max(0), 1e-12) / 127).astype(np.float32)
    return np.round(weight / scale).astype(np.int8), scale


def encode(student: Student, ids: Integers, static: Floats, places: Integers, lengths: Integers) -> Floats:
    """Unit vectors of every token in its context. (n_tokens, dim)

    ``ids`` (n_words,) are the distinct tokens and ``static`` (n_words, n_static) their static vectors at their full
    length; ``places`` (n_tokens,) says which one each token is, ``lengths`` (n_sentences,) how many tokens each
    sentence has. A sentence that is repeated is computed once.
    """
    if not len(lengths):
        return np.zeros((0, student.dim), dtype=np.float32)
    vectors = np.concatenate([static, student.extra[ids] * student.extra_scale[ids]], 1)
    sentences = Sentences(places, lengths)
    once, copies = _distinct(sentences)
    order = once[np.argsort(lengths[once], kind="stable")]
    stem, first = _read_words(student, vectors)
    found = np.empty((int(lengths[order].sum()), student.dim), dtype=np.float32)
    done = 0
    for block in _blocks(lengths[order]):
        part = sentences.take(order[block])
        found[done : done + len(part.ids)] = _encode_block(student, stem[part.ids], first[part.ids], part.lengths)
        done += len(part.ids)
    position = np.empty(len(lengths), dtype=np.int64)
    position[order] = np.arange(len(order))
    numbers = position[copies]
    return found[ranges(starts(lengths[order])[numbers], lengths)]


def _distinct(sentences: Sentences) -> tuple[Integers, Integers]:
    """The first of each distinct sentence, and for every sentence which one it is a copy of."""
    first: dict[bytes, int] = {}
    ids = np.ascontiguousarray(sentences.ids)
    begin = starts(sentences.lengths)
    copies = np.array(
        [
            first.setdefault(ids[a : a + n].tobytes(), number)
            for number, (a, n) in enumerate(zip(begin.tolist(), sentences.lengths.tolist(), strict=True))
        ],
        dtype=np.int64,
    )
    return np.fromiter(first.values(), dtype=np.int64, count=len(first)), copies


def _blocks(lengths: Integers) -> list[slice]:
    """Runs of sentences with at most ``_BLOCK`` tokens together, or one sentence."""
    found, begin, size = [], 0, 0
    for number, length in enumerate(lengths.tolist()):
        if size and size + length > _BLOCK:
            found.append(slice(begin, number))
            begin, size = number, 0
        size += length
    return [*found, slice(begin, len(lengths))]


def _in_rows(rows: Floats) -> Floats:
    """With zeros below, up to the next multiple of ``_ROWS``."""
    missing = -len(rows) % _ROWS
    return np.concatenate([rows, np.zeros((missing, rows.shape[1]), dtype=np.float32)]) if missing else rows


def _read_words(student: Student, vectors: Floats) -> tuple[Floats, Floats]:
    """What depends on a token alone: its input to the layers, and what the first attention reads from it."""
    stems, firsts = [], []
    for begin in range(0, len(vectors), _BLOCK):
        rows = _in_rows(vectors[begin : begin + _BLOCK])
        stem = student.stem(rows) + student.stem_out(_relu(student.stem_in(rows)))
        stems.append(stem)
        firsts.append(student.layers[0].attention_in(_normalise(stem)))
    return np.concatenate(stems), np.concatenate(firsts)


def _encode_block(student: Student, stem: Floats, first: Floats, lengths: Integers) -> Floats:
    n_tokens = len(stem)
    x = _in_rows(stem)
    read = first
    for number, layer in enumerate(student.layers):
        if number:
            read = layer.attention_in(_normalise(x))
        x = x + layer.attention_out(_in_rows(_attend(layer, read[:n_tokens], lengths)))
        x += layer.forward_out(_relu(layer.forward_in(_normalise(x))))
    found = student.out(_normalise(x))[:n_tokens]
    return found / np.sqrt((found * found).sum(-1, keepdims=True) + _EPSILON)


def _attend(layer: Layer, read: Floats, lengths: Integers) -> Floats:
    """The values of each sentence's tokens, weighted by attention. (n_tokens, width)"""
    n_heads, n_distances = layer.attention_bias.shape
    width = len(layer.attention_out.weight)
    key_width = (read.shape[1] - width) // 2 // n_heads
    reach = n_distances // 2
    found = np.empty((len(read), width), dtype=np.float32)
    begin = 0
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):  # lengths ascend
        end = begin + length * count
        parts = read[begin:end].reshape(count, length, -1)
        shape = (count, length, n_heads, -1)
        keys_end = 2 * n_heads * key_width
        query = parts[..., : keys_end // 2].reshape(shape).transpose(0, 2, 1, 3)
        key = parts[..., keys_end // 2 : keys_end].reshape(shape).transpose(0, 2, 3, 1)
        value = parts[..., keys_end:].reshape(shape).transpose(0, 2, 1, 3)
        distances = np.arange(length)[:, None] - np.arange(length)
        scores = query @ key  # (count, n_heads, length, length)
        scores += layer.attention_bias[:, np.clip(distances, -reach, reach) + reach]
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        found[begin:end] = (scores @ value).transpose(0, 2, 1, 3).reshape(end - begin, width)
        begin = end
    return found


def _normalise(rows: Floats) -> Floats:
    """Rows of root mean square 1."""
    return rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + _EPSILON)


def _relu(rows: Floats) -> Floats:
    return np.maximum(rows, 0, out=rows)
