"""What an encoder is: packed sentences in, one vector a token out. Packing and padding live here and nowhere else.

Sentences are kept *packed*: the tokens of all of them in one line, without padding. Encoders compute on that line, and
models too, with the methods of ``Encoded``; what cannot gets a padded block, with a mask.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from awatt.arrays import Integers, Sentences, ranges, starts

_BLOCK = 50  # sentences that are computed together where padding is needed: fewer have less of it, and more overhead


class Block(NamedTuple):
    """Sentences padded to the longest of them."""

    tokens: Tensor  # (..., length, dim); what stands where the mask is False has no meaning
    mask: Tensor  # (..., length) bool

    def pack(self) -> Encoded:
        """The same sentences in one line."""
        return Encoded(self.tokens[self.mask], self.mask.sum(-1).cpu().numpy())


class Encoded:
    """Sentences as a model sees them: the vectors of their tokens in one line, with what is computed along sentences.

    ``shape`` is that of the sentences, such as (episodes, n_way, n_shot); a *group* is what the leading dimensions
    name: with ``over=1`` the sentences of one class.
    """

    def __init__(self, tokens: Tensor, lengths: Integers) -> None:
        self.tokens, self.lengths, self.shape = tokens, lengths, lengths.shape  # (n_tokens, dim), (*shape)

    @classmethod
    def pick(cls, tokens: Tensor, lengths: Integers, numbers: Integers) -> Encoded:
        """Sentences ``numbers`` (any shape) out of a packed line of many."""
        wanted = lengths[numbers]
        index = ranges(starts(lengths)[numbers.reshape(-1)], wanted.reshape(-1))
        return cls(tokens.index_select(0, _tensor(index, tokens)), wanted)

    def owner(self, over: int = 0) -> Tensor:
        """The group of each token. (n_tokens,)"""
        each = self.lengths.reshape(-1, math.prod(self.shape[len(self.shape) - over :])).sum(-1)
        return _tensor(np.repeat(np.arange(len(each)), each), self.tokens)

    def spread(self, vectors: Tensor, over: int = 0) -> Tensor:
        """Each token sees the vector of its group. (*groups, dim) -> (n_tokens, dim)"""
        return vectors.reshape(-1, vectors.shape[-1]).index_select(0, self.owner(over))

    def sum(self, values: Tensor, over: int = 0) -> Tensor:
        """Sums of the tokens' values over each group. (n_tokens, dim) -> (*groups, dim)"""
        groups = self.shape[: len(self.shape) - over]
        total = values.new_zeros(math.prod(groups), values.shape[-1]).index_add(0, self.owner(over), values)
        return total.view(*groups, values.shape[-1])

    def mean(self, over: int = 0) -> Tensor:
        """The word-level average of each group. (*groups, dim)"""
        words = self.lengths.reshape(*self.shape[: len(self.shape) - over], -1).sum(-1, keepdims=True)
        return self.sum(self.tokens, over) / _tensor(words, self.tokens).to(self.tokens.dtype)

    def max(self) -> Tensor:
        """The largest value of each dimension over a sentence. (*shape, dim)"""
        lengths = _tensor(self.lengths.reshape(-1), self.tokens)
        largest = torch.segment_reduce(self.tokens, "max", lengths=lengths, axis=0)
        return largest.view(*self.shape, -1)

    def softmax(self, scores: Tensor) -> Tensor:
        """Softmax of the tokens' scores along each sentence. (n_tokens, n) -> (n_tokens, n)"""
        lengths = _tensor(self.lengths.reshape(-1), self.tokens)
        highest = torch.segment_reduce(scores.detach(), "max", lengths=lengths, axis=0)
        weights = torch.exp(scores - self.spread(highest))
        return weights / self.spread(self.sum(weights))

    def in_blocks(self, compute: Callable[[Block, Tensor], Tensor], given: Tensor, over: int = 1) -> Tensor:
        """``compute`` on padded blocks of sentences of like length, each with what is ``given`` to its group.

        given (*groups, ...), what is computed of a block (n_sentences, ...) -> (*shape, ...)
        """
        lengths = self.lengths.reshape(-1)
        groups = self.shape[: len(self.shape) - over]
        group = np.arange(lengths.size) // math.prod(self.shape[len(groups) :])
        given = given.reshape(-1, *given.shape[len(groups) :])
        order, parts = _in_order(lengths)
        found = [compute(pad(self.tokens, lengths, part), given[_tensor(group[part], given)]) for part in parts]
        whole = torch.cat(found).index_select(0, _tensor(np.argsort(order), self.tokens))
        return whole.view(*self.shape, *whole.shape[1:])


def pad(tokens: Tensor, lengths: Integers, numbers: Integers) -> Block:
    """Sentences ``numbers`` (any shape) out of packed ``tokens`` (n_tokens, dim), as a block (*numbers.shape, ...)."""
    wanted = lengths[numbers]
    places = np.arange(wanted.max())
    mask = places < wanted[..., None]
    index = np.where(mask, starts(lengths)[numbers][..., None] + places, 0)
    block = tokens.index_select(0, _tensor(index.reshape(-1), tokens))
    return Block(block.view(*index.shape, -1), _tensor(mask, tokens))


def _tensor(array: npt.NDArray[Any], like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(like.device)


def by_length(tokens: Tensor, lengths: Integers, compute: Callable[[Block], Tensor]) -> Tensor:
    """``compute`` on padded blocks of sentences of like length; packed in (n_tokens, ...), packed out (n_tokens, dim).

    For what cannot work on the packed line. Sorted by length, a block has next to no padding.
    """
    order, parts = _in_order(lengths)
    blocks = [pad(tokens, lengths, part) for part in parts]
    back = np.argsort(ranges(starts(lengths)[order], lengths[order]))
    return torch.cat([compute(block)[block.mask] for block in blocks]).index_select(0, _tensor(back, tokens))


def _in_order(lengths: Integers) -> tuple[Integers, list[Integers]]:
    """The sentences from short to long, and the same in parts of ``_BLOCK``."""
    order = np.argsort(lengths, kind="stable")
    return order, np.split(order, range(_BLOCK, len(order), _BLOCK))


def look_up(table: nn.Embedding, sentences: Sentences) -> tuple[Tensor, Integers]:
    """Each *different* token's vector once (n_rows, width), and the row of every token (n_tokens,)."""
    different, places = np.unique(sentences.ids, return_inverse=True)
    return table(torch.from_numpy(different).to(table.weight.device)), places


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
    #: what has to be installed or at hand, for people to read
    needs: ClassVar[str] = "pip install 'awatt[train]'"

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
