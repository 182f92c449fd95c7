"""What the encoders with pretrained vectors of their own share: a plain tokeniser, and vectors of a sensible length."""

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
    """The tokeniser of a ``tokenizer.json``."""
    try:
        return Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # the Rust side raises bare Exception
        raise DataError(f"is not a tokenizer: {error}", path) from None


def plain_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """A tokeniser that gives a text's own tokens, all of them and no special ones, with their offsets.

    ``tokenizer.encode`` then agrees with ``Encoder.tokenize``, wherever it is called.
    """
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Leaves out the blank before a byte-level token, and does nothing to others.
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def blend(words: Tensor, lengths: Integers, sentence: float, word: float) -> Tensor:
    """Each token's vector and its sentence's, at set lengths. (n_tokens, dim)

    The sentence's part is the direction of the mean of its tokens, of length ``sentence``; the tokens' own parts have
    a root mean square of ``word``. How long a model's vectors happen to be has no say.

    Why: a score is the softmax of minus a squared distance, so lengths are its temperature; and the more attention
    finds in a query, the longer the query's vector and the farther off. Without this, pretrained vectors start
    *below* chance (validation AUC of Proto-AWATT before training: 0.23 with MiniLM, 0.18 with potion at GloVe's
    length), with it at 0.98. Training does not make up for it: potion with ``sentence=0`` ends at 0.93, else at 0.99.
    """
    line = Encoded(words, lengths)
    direction = F.normalize(line.mean(), dim=-1)  # (n_sentences, dim)
    squared = Encoded(torch.linalg.vecdot(words, words)[:, None], lengths).mean()  # (n_sentences, 1)
    scale = word * squared.clamp(min=1e-12).rsqrt()
    return torch.addcmul(line.spread(sentence * direction), words, line.spread(scale))
