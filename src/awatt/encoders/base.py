"""What an encoder is: packed sentences in, one vector a token out. Packing and padding live here and nowhere else.

Sentences are kept *packed*: the tokens of all of them in one line, without padding. An encoder computes on that line;
only the attention over the words of a sentence sees a padded block, with a mask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer, processors
from torch import Tensor, nn

Integers = npt.NDArray[np.int64]

_BLOCK = 32  # sentences that are computed together where padding is needed: the fastest of 20 to 100 with an LSTM


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
        return Sentences(self.ids[_ranges(starts(self.lengths)[numbers], lengths)], lengths)


@dataclass(frozen=True)
class Encoded:
    """Sentences as a model sees them: a vector for each token, padded to the longest."""

    tokens: Tensor  # (..., length, dim); what stands where the mask is False has no meaning
    mask: Tensor  # (..., length) bool


def pad(tokens: Tensor, lengths: Integers, numbers: Integers) -> Encoded:
    """Sentences ``numbers`` (any shape) out of packed ``tokens`` (n_tokens, dim), as a block (*numbers.shape, ...)."""
    wanted = lengths[numbers]
    places = np.arange(wanted.max())
    mask = places < wanted[..., None]
    index = np.where(mask, starts(lengths)[numbers][..., None] + places, 0)
    block = tokens.index_select(0, torch.from_numpy(index.reshape(-1)).to(tokens.device))
    return Encoded(block.view(*index.shape, -1), torch.from_numpy(mask).to(tokens.device))


def by_length(tokens: Tensor, lengths: Integers, compute: Callable[[Encoded], Tensor]) -> Tensor:
    """``compute`` on padded blocks of sentences of like length; packed in (n_tokens, ...), packed out (n_tokens, dim).

    For what cannot work on the packed line. Sorted by length, a block has next to no padding.
    """
    order = np.argsort(lengths, kind="stable")
    parts = []
    for numbers in np.split(order, range(_BLOCK, len(order), _BLOCK)):
        block = pad(tokens, lengths, numbers)
        parts.append(compute(block)[block.mask])
    back = np.argsort(_ranges(starts(lengths)[order], lengths[order]))
    return torch.cat(parts).index_select(0, torch.from_numpy(back).to(tokens.device))


def starts(lengths: Integers) -> Integers:
    """Where each sentence of a packed line begins. (n_sentences,)"""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)[:-1]])


def _ranges(first: Integers, lengths: Integers) -> Integers:
    """The numbers ``first .. first + length - 1`` of every range, one after the other."""
    return np.repeat(first - starts(lengths), lengths) + np.arange(lengths.sum())


def look_up(table: nn.Embedding, sentences: Sentences) -> tuple[Tensor, Integers]:
    """Each *different* token's vector once (n_rows, width), and the row of every token (n_tokens,)."""
    different, places = np.unique(sentences.ids, return_inverse=True)
    return table(torch.from_numpy(different).to(table.weight.device)), places


def plain_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """A tokeniser that gives a text's own tokens, all of them and no special ones, with their offsets.

    ``tokenizer.encode`` then agrees with ``Encoder.tokenize``, wherever it is called.
    """
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Leaves out the blank before a byte-level token, and does nothing to others.
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


class Encoder(nn.Module, ABC):
    """Turns packed tokens into vectors. ``dim`` is their size, ``tokenizer`` the one its ids come from."""

    dim: int
    tokenizer: Tokenizer
    max_length: int
    #: the token that stands for a text without any
    empty: int = 0
    #: names of the parameters whose gradient is sparse: tables of which a step touches a few rows
    sparse: ClassVar[tuple[str, ...]] = ()
    config_type: ClassVar[type]

    @classmethod
    @abstractmethod
    def create(cls, config: Any, texts: Iterable[str]) -> Self:
        """A pretrained one for a corpus of these texts."""

    @classmethod
    @abstractmethod
    def restore(cls, config: Any, tokenizer: Tokenizer, details: Mapping[str, Any]) -> Self:
        """One of the same shape as the saved one; its parameters are loaded afterwards."""

    @property
    def details(self) -> dict[str, Any]:
        """What ``restore`` needs beyond the config, as JSON."""
        return {}

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """The texts as this encoder's tokens, cut at ``max_length``."""
        return Sentences.from_texts(self.tokenizer, texts, self.max_length, self.empty)

    @abstractmethod
    def forward(self, sentences: Sentences) -> Tensor:
        """A vector for each token. (n_tokens, dim)"""
