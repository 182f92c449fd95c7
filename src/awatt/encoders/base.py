"""The interface of an encoder: packed sentences in, one vector per token out. All packing and padding is done here.

Sentences are kept *packed*: the tokens of all sentences are concatenated, without padding. Encoders and models compute
on packed tokens, with the methods of ``Encoded``; what needs padding gets a padded block and its mask.
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

_BLOCK = 50  # sentences per padded block: fewer mean less padding, but more overhead


class Block(NamedTuple):
    """Sentences padded to the longest of them."""

    tokens: Tensor  # (..., length, dim); undefined where the mask is False
    mask: Tensor  # (..., length) bool

    def pack(self) -> Encoded:
        """The same sentences, packed."""
        return Encoded(self.tokens[self.mask], self.mask.sum(-1).cpu().numpy())


class Encoded:
    """Packed token vectors of many sentences, with operations per sentence or per group of sentences.

    ``shape`` is the shape of the sentences, such as (episodes, n_way, n_shot). A *group* is the sentences of the last
    ``over`` dimensions: a single sentence with ``over=0``, the sentences of one class with ``over=1``.
    """

    def __init__(self, tokens: Tensor, lengths: Integers) -> None:
        self.tokens, self.lengths, self.shape = tokens, lengths, lengths.shape  # (n_tokens, dim), (*shape)

    @classmethod
    def pick(cls, tokens: Tensor, lengths: Integers, numbers: Integers) -> Encoded:
        """The sentences ``numbers`` (any shape) out of many packed ones."""
        wanted = lengths[numbers]
        index = ranges(starts(lengths)[numbers.reshape(-1)], wanted.reshape(-1))
        return cls(tokens.index_select(0, _tensor(index, tokens)), wanted)

    def owner(self, over: int = 0) -> Tensor:
        """The number of the group that each token belongs to. (n_tokens,)"""
        each = self.lengths.reshape(-1, math.prod(self.shape[len(self.shape) - over :])).sum(-1)
        return _tensor(np.repeat(np.arange(len(each)), each), self.tokens)

    def spread(self, vectors: Tensor, over: int = 0) -> Tensor:
        """The vector of its group for each token. (*groups, dim) -> (n_tokens, dim)"""
        return vectors.reshape(-1, vectors.shape[-1]).index_select(0, self.owner(over))

    def sum(self, values: Tensor, over: int = 0) -> Tensor:
        """Sum of token values over each group. (n_tokens, dim) -> (*groups, dim)"""
        groups = self.shape[: len(self.shape) - over]
        total = values.new_zeros(math.prod(groups), values.shape[-1]).index_add(0, self.owner(over), values)
        return total.view(*groups, values.shape[-1])

    def mean(self, over: int = 0) -> Tensor:
        """Mean over the tokens of each group. (*groups, dim)"""
        words = self.lengths.reshape(*self.shape[: len(self.shape) - over], -1).sum(-1, keepdims=True)
        return self.sum(self.tokens, over) / _tensor(words, self.tokens).to(self.tokens.dtype)

    def max(self) -> Tensor:
        """Maximum of each dimension over the tokens of a sentence. (*shape, dim)"""
        lengths = _tensor(self.lengths.reshape(-1), self.tokens)
        largest = torch.segment_reduce(self.tokens, "max", lengths=lengths, axis=0)
        return largest.view(*self.shape, -1)

    def softmax(self, scores: Tensor) -> Tensor:
        """Softmax of token scores over each sentence. (n_tokens, n) -> (n_tokens, n)"""
        lengths = _tensor(self.lengths.reshape(-1), self.tokens)
        highest = torch.segment_reduce(scores.detach(), "max", lengths=lengths, axis=0)
        weights = torch.exp(scores - self.spread(highest))
        return weights / self.spread(self.sum(weights))

    def in_blocks(self, compute: Callable[[Block, Tensor], Tensor], given: Tensor) -> Tensor:
        """Apply ``compute`` to padded blocks of sentences of similar length, with the ``given`` values of their groups.

        given (*groups, ...), result of a block (n_sentences, ...) -> (*shape, ...)
        """
        lengths = self.lengths.reshape(-1)
        groups = self.shape[:-1]
        group = np.arange(lengths.size) // math.prod(self.shape[len(groups) :])
        given = given.reshape(-1, *given.shape[len(groups) :])
        order, parts = _in_order(lengths)
        found = [compute(pad(self.tokens, lengths, part), given[_tensor(group[part], given)]) for part in parts]
        whole = torch.cat(found).index_select(0, _tensor(np.argsort(order), self.tokens))
        return whole.view(*self.shape, *whole.shape[1:])


def pad(tokens: Tensor, lengths: Integers, numbers: Integers) -> Block:
    """The sentences ``numbers`` (any shape) of packed ``tokens`` (n_tokens, dim) as a block (*numbers.shape, ...)."""
    wanted = lengths[numbers]
    places = np.arange(wanted.max())
    mask = places < wanted[..., None]
    index = np.where(mask, starts(lengths)[numbers][..., None] + places, 0)
    block = tokens.index_select(0, _tensor(index.reshape(-1), tokens))
    return Block(block.view(*index.shape, -1), _tensor(mask, tokens))


def _tensor(array: npt.NDArray[Any], like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(like.device)


def by_length(tokens: Tensor, lengths: Integers, compute: Callable[[Block], Tensor]) -> Tensor:
    """Apply ``compute`` to padded blocks of sentences of similar length. Packed (n_tokens, ...) -> (n_tokens, dim)

    For computations that need padding; sorted by length, the blocks have very little of it.
    """
    order, parts = _in_order(lengths)
    blocks = [pad(tokens, lengths, part) for part in parts]
    back = np.argsort(ranges(starts(lengths)[order], lengths[order]))
    return torch.cat([compute(block)[block.mask] for block in blocks]).index_select(0, _tensor(back, tokens))


def _in_order(lengths: Integers) -> tuple[Integers, list[Integers]]:
    """The numbers of the sentences from short to long, and the same in blocks of ``_BLOCK``."""
    order = np.argsort(lengths, kind="stable")
    return order, np.split(order, range(_BLOCK, len(order), _BLOCK))


def look_up(table: nn.Embedding, sentences: Sentences) -> tuple[Tensor, Integers]:
    """The vector of each *distinct* token (n_rows, width), and the row of every token (n_tokens,)."""
    different, places = np.unique(sentences.ids, return_inverse=True)
    return table(torch.from_numpy(different).to(table.weight.device)), places


class Encoder(nn.Module, ABC):
    """Turns packed token ids into vectors of size ``dim``; ``tokenizer`` produces the ids."""

    dim: int
    tokenizer: Tokenizer
    max_length: int
    #: the token used for a text without tokens
    empty: int = 0
    #: names of parameters with a sparse gradient: tables of which a step uses few rows
    sparse: ClassVar[tuple[str, ...]] = ()
    config_type: ClassVar[type]
    #: what has to be installed or available, as text for the user
    needs: ClassVar[str] = "pip install 'awatt[train]'"

    @classmethod
    @abstractmethod
    def create(cls, config: Any, texts: Iterable[str]) -> Self:
        """A pretrained encoder for a corpus of these texts."""

    @classmethod
    @abstractmethod
    def restore(cls, config: Any, tokenizer: Tokenizer, details: Mapping[str, Any]) -> Self:
        """An encoder of the same shape as the saved one; its parameters are loaded afterwards."""

    @property
    def details(self) -> dict[str, Any]:
        """What ``restore`` needs besides the config, as JSON values."""
        return {}

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """Token ids of the texts, truncated at ``max_length``."""
        return Sentences.from_texts(self.tokenizer, texts, self.max_length, self.empty)

    @abstractmethod
    def forward(self, sentences: Sentences) -> Tensor:
        """One vector per token. (n_tokens, dim)"""
