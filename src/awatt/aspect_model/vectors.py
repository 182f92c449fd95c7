"""Texts as token vectors: the tokenizer, the table, and the sentences made of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from awatt.arrays import Array, Integers, Sentences, segment_sums, unit
from awatt.aspect_model.names import name_words

Floats = npt.NDArray[np.float32]


class EmbeddedSentences(NamedTuple):
    """Sentences as unit token vectors. Each distinct vector is stored once; they may have any width."""

    tokens: Array  # (n_distinct, dim)
    rows: Integers  # (n_tokens,) the row of ``tokens`` for each token
    means: Array  # (n_sentences, dim) unit mean vectors
    lengths: Integers  # (n_sentences,) in tokens

    def sums(self, values: Array) -> Array:
        """Sums over each sentence of numbers per distinct token. (n_distinct, n) -> (n_sentences, n)"""
        return segment_sums(values[self.rows], self.lengths)

    def pool(self, weights: Array, values: Array) -> Array:
        """Weighted means over each sentence. (n_distinct, n) both -> (n_sentences, n)"""
        return self.sums(weights * values) / self.sums(weights)


def embed(tokens: Array, norms: Array, rows: Integers, lengths: Integers) -> EmbeddedSentences:
    """From unit token vectors (n_distinct, dim) and the weight of each in a mean vector (n_distinct, 1)."""
    if not len(lengths):
        return EmbeddedSentences(tokens, rows, tokens[:0], lengths)
    return EmbeddedSentences(tokens, rows, unit(segment_sums((tokens * norms)[rows], lengths)), lengths)


class Table(NamedTuple):
    """The token vectors as they are stored."""

    table: npt.NDArray[np.int8]  # (n_words, dim)
    scale: Floats  # (n_words, 1) the factor to length 1
    norm: Floats  # (n_words, 1) weight of the token in a mean vector


@dataclass(frozen=True)
class TokenVectors:
    """A tokenizer and a vector per token."""

    tokenizer: Tokenizer
    stored: Table
    max_length: int  # in tokens
    unknown: int  # token of a text without any

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """The texts as token ids; a text without any token becomes one unknown token."""
        return Sentences.from_texts(self.tokenizer, texts, self.max_length, empty=self.unknown)

    def token_vectors(self, ids: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The unit vector of each token (n_tokens, dim), and its weight in a mean vector (n_tokens, 1)."""
        tokens = self.stored.table[ids].astype(np.float32)
        tokens *= self.stored.scale[ids]
        return tokens, self.stored.norm[ids]

    def embed(self, sentences: Sentences) -> EmbeddedSentences:
        """What everything is computed from."""
        ids, rows = np.unique(sentences.ids, return_inverse=True)
        return embed(*self.token_vectors(ids), rows, sentences.lengths)

    def mean_vectors(self, sentences: Sentences) -> Floats:
        """A unit vector per sentence: similar sentences have similar ones. (n_sentences, dim)"""
        means: Floats = self.embed(sentences).means
        return means

    def name_vectors(self, names: Sequence[str]) -> Floats:
        """A unit vector per name; zeros for a name without letters, such as a number. (n_names, dim)"""
        words = [name_words(name) for name in names]
        return self.mean_vectors(self.tokenize(words)) * np.array([[bool(text)] for text in words], dtype=np.float32)
