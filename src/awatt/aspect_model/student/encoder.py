"""The student's computation, in numpy: unit vectors of tokens in their context.

Everything that depends on a token alone (the stem, and what the first attention reads) is computed once per distinct
token. A sentence's vectors are the same to the last bit whatever sentences are encoded beside it: matrix products are
exact, so that the order in which BLAS adds does not matter, and attention runs on one sentence at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import Integers, Sentences, ranges, starts
from awatt.aspect_model.vectors import Table, WordTable

Floats = npt.NDArray[np.float32]

_EXACT = 2.0**24  # whole numbers up to this are exact in single precision
_BLOCK = 1024  # tokens that pass through the layers together: what fits into the cache
_EPSILON = np.float32(1e-6)


class StoredLinear(NamedTuple):
    """An affine map, its weights in eight bits; in `StoredLayers` with a first axis for the layers."""

    weight: npt.NDArray[np.int8]  # (n_in, n_out)
    scale: Floats  # (n_out,)
    bias: Floats  # (n_out,)


class StoredLayers(NamedTuple):
    """All layers: attention and a feed-forward network, each on normalised input and added to it."""

    attention_in: StoredLinear  # width -> queries, keys (n_heads * key_width each), values (width)
    attention_bias: Floats  # (n_layers, n_heads, 2 * reach + 1), by the distance of two tokens, at most ``reach``
    attention_out: StoredLinear  # width -> width
    forward_in: StoredLinear  # width -> hidden
    forward_out: StoredLinear  # hidden -> width


class Student(NamedTuple):
    """The weights as they are stored."""

    extra: npt.NDArray[np.int8]  # (n_vocabulary, n_extra) what each token is predicted to be without any context
    extra_scale: Floats  # (n_vocabulary, 1)
    stem: StoredLinear  # token vector -> width
    stem_in: StoredLinear  # token vector -> hidden
    stem_out: StoredLinear  # hidden -> width
    layers: StoredLayers
    out: StoredLinear  # width -> dim


def read_student(tensors: Mapping[str, npt.NDArray[Any]]) -> Student:
    """From the tensors of `distill.make_student`, named as in the torch module, one set per layer."""
    n_layers = sum(name.endswith(".attention_bias") for name in tensors)

    def linear(name: str) -> StoredLinear:
        return StoredLinear(*(tensors[f"{name}.{field}"] for field in StoredLinear._fields))

    def stacked(name: str) -> StoredLinear:
        return StoredLinear(*map(np.stack, zip(*(linear(f"layers.{n}.{name}") for n in range(n_layers)), strict=True)))

    stem, stem_in, stem_out, out = map(linear, ("stem", "stem_in", "stem_out", "out"))
    layers = StoredLayers(
        stacked("attention_in"),
        np.stack([tensors[f"layers.{number}.attention_bias"] for number in range(n_layers)]),
        stacked("attention_out"),
        stacked("forward_in"),
        stacked("forward_out"),
    )
    return Student(tensors["extra"], tensors["extra_scale"], stem, stem_in, stem_out, layers, out)


def quantise(weight: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """A matrix (n_in, n_out) as int8, and the scale of each column (n_out,)."""
    scale = (np.maximum(np.abs(weight).max(0), 1e-12) / 127).astype(np.float32)
    return np.round(weight / scale).astype(np.int8), scale


class Linear(NamedTuple):
    """An affine map whose products are exact, so that they do not depend on the order of a sum.

    The weights are whole numbers, and rows are rounded to whole numbers after scaling them to such a norm that, by
    Cauchy and Schwarz, no sum of products is larger than ``_EXACT``: some 14 bits each.
    """

    weight: Floats  # (n_in, n_out) whole numbers
    scale: Floats  # (n_out,) of the weights, divided by ``norm``
    bias: Floats  # (n_out,)
    norm: np.float32  # of a row before it is rounded

    @classmethod
    def of(cls, stored: StoredLinear) -> Linear:
        """From eight bits."""
        weight = stored.weight.astype(np.float32)
        largest = float(np.sqrt((weight.astype(np.float64) ** 2).sum(0).max()))
        norm = np.float32(0.999 * _EXACT / max(largest, 1.0) - len(weight) ** 0.5 / 2)  # rounding adds the last term
        return cls(weight, stored.scale / norm, stored.bias, norm)

    def __call__(self, rows: Floats) -> Floats:
        """(n_rows, n_in) -> (n_rows, n_out)"""
        norms = _norms(rows)
        found = self._multiply(rows, norms)
        found *= norms
        found *= self.scale
        found += self.bias
        return found

    def of_normalised(self, rows: Floats) -> Floats:
        """The same of the rows divided by their root mean square."""
        found = self._multiply(rows, _norms(rows))
        found *= self.scale * np.float32(len(self.weight) ** 0.5)
        found += self.bias
        return found

    def _multiply(self, rows: Floats, norms: Floats) -> Floats:
        whole = rows * (self.norm / norms)
        np.rint(whole, out=whole)
        found: Floats = whole @ self.weight
        return found


class Layer(NamedTuple):
    """One of `StoredLayers`, in single precision."""

    attention_in: Linear
    attention_bias: Floats  # (n_heads, 2 * reach + 1)
    attention_out: Linear
    forward_in: Linear
    forward_out: Linear

    @classmethod
    def of(cls, layers: StoredLayers, number: int) -> Layer:
        """From eight bits."""

        def linear(stacked: StoredLinear) -> Linear:
            return Linear.of(StoredLinear(*(array[number] for array in stacked)))

        return cls(
            linear(layers.attention_in),
            layers.attention_bias[number],
            linear(layers.attention_out),
            linear(layers.forward_in),
            linear(layers.forward_out),
        )


class StudentEncoder:
    """Gives each token a vector that depends on its sentence."""

    def __init__(self, student: Student, static: Table) -> None:
        self.static, self.extra, self.extra_scale = static, student.extra, student.extra_scale
        self.stem, self.stem_in, self.stem_out, self.out = map(
            Linear.of, (student.stem, student.stem_in, student.stem_out, student.out)
        )
        self.layers = [Layer.of(student.layers, number) for number in range(len(student.layers.attention_bias))]
        self.dim, self.width = len(self.out.bias), len(self.stem.bias)
        n_read = len(self.layers[0].attention_in.bias)
        self._words = WordTable(len(static.table), self.width + n_read, self._read_words)

    def __call__(self, sentences: Sentences) -> Floats:
        """Unit vectors of every token in its context. (n_tokens, dim)"""
        lengths = sentences.lengths
        found = np.empty((len(sentences.ids), self.dim), dtype=np.float32)
        if not len(lengths):
            return found
        begin, order = starts(lengths), np.argsort(lengths, kind="stable")
        for block in _blocks(lengths[order]):
            rows = ranges(begin[order[block]], lengths[order[block]])
            found[rows] = self._encode_block(sentences.ids[rows], lengths[order[block]])
        return found

    def _read_words(self, ids: Integers) -> Floats:
        """What depends on a token alone: its input to the layers, and what the first attention reads from it."""
        found = np.empty((len(ids), self._words.width), dtype=np.float32)
        for begin in range(0, len(ids), _BLOCK):
            part = ids[begin : begin + _BLOCK]
            static = self.static.table[part] * (self.static.scale[part] * self.static.norm[part])
            rows = np.concatenate([static, self.extra[part] * self.extra_scale[part]], 1)
            stem = self.stem(rows) + self.stem_out(_relu(self.stem_in(rows)))
            found[begin : begin + _BLOCK] = np.concatenate([stem, self.layers[0].attention_in.of_normalised(stem)], 1)
        return found

    def _encode_block(self, ids: Integers, lengths: Integers) -> Floats:
        """``lengths`` ascend."""
        words = self._words.rows(ids)
        x, read = words[:, : self.width].copy(), words[:, self.width :]
        for number, layer in enumerate(self.layers):
            if number:
                read = layer.attention_in.of_normalised(x)
            x += layer.attention_out(_attend(layer, read, lengths))
            x += layer.forward_out(_relu(layer.forward_in.of_normalised(x)))
        found = self.out.of_normalised(x)
        found /= np.sqrt((found * found).sum(-1, keepdims=True) + _EPSILON)
        return found


def _blocks(lengths: Integers) -> list[slice]:
    """Runs of sentences with at most ``_BLOCK`` tokens together, or one sentence."""
    found, begin, size = [], 0, 0
    for number, length in enumerate(lengths.tolist()):
        if size and size + length > _BLOCK:
            found.append(slice(begin, number))
            begin, size = number, 0
        size += length
    return [*found, slice(begin, len(lengths))]


def _attend(layer: Layer, read: Floats, lengths: Integers) -> Floats:
    """The values of each sentence's tokens, weighted by attention. (n_tokens, width)"""
    n_heads, n_distances = layer.attention_bias.shape
    width = len(layer.attention_out.weight)
    key_width = (read.shape[1] - width) // 2 // n_heads
    reach, places = n_distances // 2, np.arange(lengths[-1])
    bias = layer.attention_bias[:, np.clip(places[:, None] - places, -reach, reach) + reach]
    found = np.empty((len(read), width), dtype=np.float32)
    begin = 0
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        end, shape = begin + length * count, (count, length, n_heads, -1)
        query, key, value = np.split(read[begin:end], [n_heads * key_width, 2 * n_heads * key_width], axis=1)
        scores = query.reshape(shape).transpose(0, 2, 1, 3) @ key.reshape(shape).transpose(0, 2, 3, 1)
        scores += bias[:, :length, :length]  # (count, n_heads, length, length)
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        attended = found[begin:end].reshape(shape).transpose(0, 2, 1, 3)
        np.matmul(scores, value.reshape(shape).transpose(0, 2, 1, 3), out=attended)
        begin = end
    return found


def _norms(rows: Floats) -> Floats:
    """A little more than the norms, never 0. (n_rows, 1)"""
    return np.sqrt(np.einsum("ij,ij->i", rows, rows)[:, None] + _EPSILON * np.float32(rows.shape[1]))


def _relu(rows: Floats) -> Floats:
    return np.maximum(rows, 0, out=rows)
