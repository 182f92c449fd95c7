"""Sentences as token ids in one line, without padding: what every encoder and the detector begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sentences:
    """Token ids of many sentences in one line."""

    ids: Integers  # (n_tokens,)
    lengths: Integers  # (n_sentences,) at least 1 each

    @classmethod
    def from_texts(cls, tokenizer: Tokenizer, texts: Sequence[str], max_length: int, empty: int) -> Sentences:
        """Tokenise; a text without any token becomes the one token ``empty``, so that every sentence has a vector."""
        rows = [encoding.ids[:max_length] or [empty] for encoding in tokenizer.encode_batch_fast(texts)]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter((token for row in rows for token in row), dtype=np.int64, count=int(lengths.sum()))
        return cls(ids, lengths)

    def take(self, numbers: Integers) -> Sentences:
        """The sentences with these numbers, in this order."""
        lengths = self.lengths[numbers]
        return Sentences(self.ids[ranges(starts(self.lengths)[numbers], lengths)], lengths)


def starts(lengths: Integers) -> Integers:
    """Where each sentence of a packed line begins. (n_sentences,)"""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)[:-1]])


def ranges(first: Integers, lengths: Integers) -> Integers:
    """The numbers ``first .. first + length - 1`` of every range, one after the other."""
    return np.repeat(first - starts(lengths), lengths) + np.arange(lengths.sum())
