"""Texts as token vectors: the tokenizer, the table, and the sentences made of both.

The accurate model has a second vector per token, which depends on the sentence: `TokenVectors.context`. Only here do
the two models differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from awatt.arrays import Array, Bools, Integers, Sentences, namespace, product, segment_sums, starts, unit
from awatt.aspect_model.context import Context
from awatt.aspect_model.names import name_words
from awatt.aspect_model.row_sums import row_sums
from awatt.aspect_model.word_cache import WordCache

Floats = npt.NDArray[np.float32]

#: Share of the context's vector in the squared norm of a token's vector; the rest is the static one's.
CONTEXT_SHARE = 0.5
_SHARES = np.sqrt(np.array([1 - CONTEXT_SHARE, CONTEXT_SHARE], dtype=np.float32))
_TOGETHER = 2048  # sentences whose mean vectors are computed at once; bounds the memory with many
_PADDING = 8  # columns of a table: rows of 1,024 bytes would compete for the same places of the cache in a sum


class EmbeddedSentences(NamedTuple):
    """Sentences as unit token vectors. Each distinct vector is stored once; they may have any width."""

    tokens: Array  # (n_distinct, dim)
    rows: Integers  # (n_tokens,) the row of ``tokens`` for each token
    means: Array  # (n_sentences, dim) unit mean vectors
    lengths: Integers  # (n_sentences,) in tokens

    def cosines(self, directions: Array) -> Array:
        """Of each distinct token with each of the unit vectors. (n_distinct, n_directions)"""
        return product(self.tokens, directions)

    def spread(self, values: Array) -> Array:
        """From numbers per distinct token to those of each token. (n_distinct, n) -> (n_tokens, n)"""
        return values[self.rows]

    def sums(self, values: Floats) -> Floats:
        """Of numbers per distinct token over each sentence. (n_distinct, n) -> (n_sentences, n)"""
        return row_sums(values, self.rows, self.lengths)


class ContextSentences(NamedTuple):
    """The same where a token's vector is a static part and one that depends on the sentence: to score, not to fit.

    Cosines are sums of both parts' products, of which the static one is computed once per distinct token.
    """

    tokens: Floats  # (n_distinct, dim) static parts
    rows: Integers  # (n_tokens,) the row of ``tokens`` for each token
    context: Floats  # (n_tokens, n_context)
    means: Floats  # (n_sentences, dim + n_context)
    lengths: Integers  # (n_sentences,) in tokens

    def cosines(self, directions: Floats) -> Floats:
        """Of each token with each of the unit vectors, in double precision as `product`. (n_tokens, n_directions)"""
        static, of_context = np.split(directions.astype(np.float64), [self.tokens.shape[1]], axis=1)
        found = self.context.astype(np.float64) @ of_context.T
        found += (self.tokens.astype(np.float64) @ static.T)[self.rows]
        return found.astype(np.float32)

    def spread(self, values: Floats) -> Floats:
        """Every token has numbers of its own."""
        return values

    def sums(self, values: Floats) -> Floats:
        """Over each sentence. (n_tokens, n) -> (n_sentences, n)"""
        return row_sums(values, np.arange(len(values)), self.lengths)


#: Sentences to score.
ReadSentences: TypeAlias = EmbeddedSentences | ContextSentences


def embed(tokens: Array, norms: Array, rows: Integers, lengths: Integers) -> EmbeddedSentences:
    """From unit token vectors (n_distinct, dim) and the weight of each in a mean vector (n_distinct, 1)."""
    if not len(lengths):
        return EmbeddedSentences(tokens, rows, tokens[:0], lengths)
    weighted, means, first = tokens * norms, [], 0
    for part in np.split(lengths, range(_TOGETHER, len(lengths), _TOGETHER)):
        last = first + int(part.sum())
        means.append(unit(segment_sums(weighted[rows[first:last]], part)))
        first = last
    return EmbeddedSentences(tokens, rows, namespace(tokens).concatenate(means), lengths)


def join(parts: Sequence[EmbeddedSentences]) -> EmbeddedSentences:
    """The sentences of all parts, one after the other."""
    first = np.cumsum([0, *(len(part.tokens) for part in parts[:-1])])
    return EmbeddedSentences(
        np.concatenate([part.tokens for part in parts]),
        np.concatenate([part.rows + start for part, start in zip(parts, first, strict=True)]),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def lay_beside(tokens: Floats, norms: Floats, rows: Integers, context: Floats, lengths: Integers) -> EmbeddedSentences:
    """As `embed`, with a unit vector of each token in its sentence (n_tokens, n_context) beside the static one.

    The two parts of a mean vector have fixed norms, too, which is better than the mean of the joined vectors.
    """
    static, weights = tokens[rows], norms[rows]
    joined = np.concatenate([_SHARES[0] * static, _SHARES[1] * context], -1)
    if not len(lengths):
        return EmbeddedSentences(joined, rows, joined, lengths)
    means = _join_means(*(segment_sums(part * weights, lengths) for part in (static, context)))
    # Every token has a row of its own: the same word differs from sentence to sentence.
    return EmbeddedSentences(joined, np.arange(len(rows)), means, lengths)


def _join_means(static: Floats, context: Floats) -> Floats:
    """From the sums of both parts over each sentence."""
    return np.concatenate([_SHARES[0] * unit(static), _SHARES[1] * unit(context)], -1)


class WordTable:
    """Numbers for each word of the vocabulary, computed when the word is first met."""

    def __init__(self, n_words: int, width: int, compute: Callable[[Integers], Floats]) -> None:
        self.width, self._compute = width, compute  # (n,) -> (n, width)
        self._values: Floats = np.zeros((n_words, width + _PADDING), dtype=np.float32)
        self._known = np.zeros(n_words, dtype=bool)

    def _meet(self, ids: Integers) -> None:
        missing = ids[~self._known[ids]]
        if len(missing):
            new = np.flatnonzero(np.bincount(missing))  # np.unique would import numpy.ma, which takes 20 ms
            self._values[new, : self.width] = self._compute(new)
            self._known[new] = True  # last, for other threads

    def rows(self, ids: Integers, columns: slice = slice(None)) -> Floats:
        """All or some of the numbers of each word. (n,) -> (n, n_columns)"""
        self._meet(ids)
        return self._values[:, : self.width][ids, columns]

    def sums(self, sentences: Sentences) -> Floats:
        """Over the words of each sentence, of which there is at least one. (n_sentences, width)"""
        self._meet(sentences.ids)
        return row_sums(self._values, sentences.ids, sentences.lengths)[:, : self.width]


class Table(NamedTuple):
    """The token vectors as they are stored."""

    table: npt.NDArray[np.int8]  # (n_words, dim)
    scale: Floats  # (n_words, 1) the factor to length 1
    norm: Floats  # (n_words, 1) weight of the token in a mean vector


@dataclass(frozen=True)
class TokenVectors:
    """A tokenizer and a vector per token; with ``context``, a second one that depends on the sentence."""

    tokenizer: Tokenizer
    stored: Table
    max_length: int  # in tokens
    unknown: int  # token of a text without any
    context: Context | None = None

    @property
    def word_norms(self) -> Floats:
        """How much each token counts in a mean vector. (n_words,)"""
        return self.stored.norm[:, 0]

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """The texts as token ids; a text without any token becomes one unknown token."""
        return self._cache.tokenize(texts).cut(self.max_length, empty=self.unknown)

    @cached_property
    def _cache(self) -> WordCache:
        return WordCache(self.tokenizer)

    def token_vectors(self, ids: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The unit vector of each token (n_tokens, dim), and its weight in a mean vector (n_tokens, 1)."""
        tokens = self.stored.table[ids].astype(np.float32)
        tokens *= self.stored.scale[ids]
        return tokens, self.stored.norm[ids]

    def embed(self, sentences: Sentences) -> EmbeddedSentences:
        """What everything is computed from."""
        ids, rows = np.unique(sentences.ids, return_inverse=True)
        tokens, norms = self.token_vectors(ids)
        if self.context is None:
            return embed(tokens, norms, rows, sentences.lengths)
        return lay_beside(tokens, norms, rows, self.context(sentences), sentences.lengths)

    def read(self, sentences: Sentences) -> ReadSentences:
        """To score them: the same as `embed`, but for the last digits of double precision."""
        if self.context is None or not len(sentences.lengths):
            return self.embed(sentences)
        ids, rows = np.unique(sentences.ids, return_inverse=True)
        context, lengths = self.context(sentences), sentences.lengths
        weighted = context * self.stored.norm[sentences.ids]
        means = _join_means(self._weighted.sums(sentences), row_sums(weighted, np.arange(len(rows)), lengths))
        tokens, _ = self.token_vectors(ids)
        return ContextSentences(_SHARES[0] * tokens, rows, _SHARES[1] * context, means, lengths)

    def mean_vectors(self, sentences: Sentences) -> Floats:
        """A unit vector per sentence: similar sentences have similar ones. (n_sentences, dim)"""
        if self.context is None and len(sentences.lengths):
            found: Floats = unit(self._weighted.sums(sentences))
            return found
        means: Floats = self.read(sentences).means
        return means

    @cached_property
    def _weighted(self) -> WordTable:
        """Each token's vector times its weight in a mean vector."""

        def compute(ids: Integers) -> Floats:
            tokens, norms = self.token_vectors(ids)
            return tokens * norms

        n_words, dim = self.stored.table.shape
        return WordTable(n_words, dim, compute)

    def read_names(self, names: Sequence[str]) -> Bools:
        """Whether each name says something: it has letters, and a token that counts. (n_names,)"""
        words = [name_words(name) for name in names]
        tokens = self.tokenize(words)
        counts = np.array([norms.any() for norms in np.split(self.word_norms[tokens.ids], starts(tokens.lengths)[1:])])
        return counts & np.array([bool(text) for text in words])

    def name_vectors(self, names: Sequence[str]) -> Floats:
        """A unit vector per name; zeros for one that says nothing: no letters, or no known word. (n_names, dim)"""
        words = [name_words(name) for name in names]
        return self.mean_vectors(self.tokenize(words)) * np.array([[bool(text)] for text in words], dtype=np.float32)
