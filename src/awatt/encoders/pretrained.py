"""Shared by the static and transformer encoders: a plain tokeniser, and token vectors of a suitable norm."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, processors
from torch import Tensor

from awatt.arrays import Integers
from awatt.encoders.base import Encoded
from awatt.errors import DataError


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokeniser in a ``tokenizer.json``."""
    try:
        return Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # the Rust side raises bare Exception
        raise DataError(f"is not a tokenizer: {error}", path) from None


def plain_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """Turn off padding, truncation and special tokens, so that only the tokens of the text remain, with offsets.

    ``tokenizer.encode`` then agrees with ``Encoder.tokenize`` everywhere.
    """
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Excludes the space before a byte-level token from its offsets; other tokens are unchanged.
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def blend(words: Tensor, lengths: Integers, sentence: float, word: float) -> Tensor:
    """Each token's vector plus its sentence's vector, with fixed norms. (n_tokens, dim)

    The sentence's vector has the direction of the mean of its tokens and the norm ``sentence``; the tokens' own vectors
    are scaled to a root mean square norm of ``word``. The norms of the pretrained vectors do not matter.

    Why: a score is the softmax of a negative squared distance, so norms act as its temperature; and the more attention
    finds in a query, the larger the norm of the query's vector and its distance. Without this, pretrained vectors start
    *below* chance (validation AUC of Proto-AWATT before training: 0.23 with MiniLM, 0.18 with potion at GloVe's norm),
    with it at 0.98. Training does not compensate: potion ends at 0.93 with ``sentence=0``, at 0.99 with the default.
    """
    line = Encoded(words, lengths)
    direction = F.normalize(line.mean(), dim=-1)  # (n_sentences, dim)
    squared = Encoded(torch.linalg.vecdot(words, words)[:, None], lengths).mean()  # (n_sentences, 1)
    scale = word * squared.clamp(min=1e-12).rsqrt()
    return torch.addcmul(line.spread(sentence * direction), words, line.spread(scale))
