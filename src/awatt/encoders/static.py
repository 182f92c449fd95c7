"""Static token vectors from any model2vec folder: as fast as GloVe, distilled from a sentence encoder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from awatt.encoders.base import Encoder, Sentences, look_up, plain_tokenizer
from awatt.encoders.convolution import Convolution
from awatt.errors import AwattError, DataError


@dataclass(frozen=True)
class StaticConfig:
    folder: str = ""
    frozen: bool = True
    hidden: int = 256
    window: int = 1
    sentence: float = 5.0
    word: float = 1.8
    max_length: int = 128
    gain: float = 4.0


class StaticEncoder(Encoder):
    config_type = StaticConfig
    sparse = ("table.weight",)

    def __init__(self, config: StaticConfig, tokenizer: Tokenizer, width: int) -> None:
        super().__init__()
        self.config = config
        self.tokenizer, self.max_length = tokenizer, config.max_length
        self.dim = config.hidden or width
        self.empty = tokenizer.token_to_id("[UNK]")
        self.table = nn.Embedding(tokenizer.get_vocab_size(), width, sparse=True)
        self.table.weight.requires_grad_(not config.frozen)
        self.convolution = None
        if config.hidden:
            self.convolution = Convolution(width, self.dim, config.window)
            kernel = torch.zeros(width, config.window, self.dim)
            kernel[:, config.window // 2] = torch.eye(width, self.dim) * config.gain
            self.convolution.kernel.data.copy_(kernel.view(width, -1))
            self.convolution.bias.data.zero_()

    @classmethod
    def create(cls, config, texts):
        folder = Path(config.folder or "/work/shared/weights/potion-base-8M")
        e = load_file(folder / "model.safetensors")["embeddings"].astype(np.float32)
        tok = plain_tokenizer(Tokenizer.from_file(str(folder / "tokenizer.json")))
        e = e / np.sqrt((e**2).mean())
        enc = cls(config, tok, e.shape[1])
        e[enc.empty] = 0
        enc.table.weight.data.copy_(torch.from_numpy(e))
        return enc

    @classmethod
    def restore(cls, config, tokenizer, details):
        return cls(config, tokenizer, details["width"])

    @property
    def details(self):
        return {"width": self.table.embedding_dim}

    def forward(self, sentences):
        rows, places = look_up(self.table, sentences)
        if self.convolution is None:
            words = rows.index_select(0, torch.from_numpy(places))
        else:
            words = self.convolution(rows, places, sentences.lengths) / self.config.gain
        lengths = torch.from_numpy(sentences.lengths)
        number = torch.repeat_interleave(lengths)
        total = words.new_zeros(len(lengths), self.dim).index_add(0, number, words)
        sentence = F.normalize(total, dim=-1) * self.config.sentence
        return sentence.index_select(0, number) + words * (self.config.word / self.table.embedding_dim**0.5)
