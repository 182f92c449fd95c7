"""EXPERIMENTAL"""

from __future__ import annotations
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
import numpy as np, torch
import safetensors.numpy
from tokenizers import Tokenizer
from torch import Tensor, nn
from awatt.encoders.base import Encoder, Sentences, look_up, plain_tokenizer
from awatt.encoders.convolution import Convolution


@dataclass(frozen=True)
class StaticConfig:
    folder: str = ""
    hidden: int = 0
    window: int = 1
    residual: bool = False
    frozen: bool = False
    size: float = 20.0
    max_length: int = 128
    power: float = 1.0
    init: str = "normal"
    norm: str = "none"
    alpha: float = 0.3
    entry: float = 1.0


class StaticEncoder(Encoder):
    config_type = StaticConfig
    sparse = ("table.weight",)

    def __init__(self, config, tokenizer, width):
        super().__init__()
        self.config = config
        self.tokenizer, self.max_length = tokenizer, config.max_length
        self.dim = config.hidden or width
        self.table = nn.Embedding(tokenizer.get_vocab_size(), width, sparse=True)
        self.table.weight.requires_grad_(not config.frozen)
        self.convolution = Convolution(width, self.dim, config.window) if config.hidden or config.window > 1 else None
        if self.convolution is not None and config.init == "zero":
            self.convolution.kernel.data.mul_(0.1)
            self.convolution.bias.data.zero_()
        if self.convolution is not None and config.init == "ortho":
            k = torch.zeros(width, config.window, self.dim)
            nn.init.orthogonal_(k[:, config.window // 2])
            k += 0.01 * torch.randn_like(k)
            self.convolution.kernel.data.copy_(k.view(width, -1))
            self.convolution.bias.data.zero_()

    @classmethod
    def create(cls, config, texts):
        folder = Path(config.folder or "/work/shared/weights/potion-base-8M")
        e = safetensors.numpy.load_file(folder / "model.safetensors")["embeddings"].astype(np.float32)
        tok = plain_tokenizer(Tokenizer.from_file(str(folder / "tokenizer.json")))
        n = np.linalg.norm(e, axis=1, keepdims=True)
        e = e / n * n**config.power
        e *= np.sqrt(e.shape[1] * config.entry**2 / (e**2).sum(1).mean())
        enc = cls(config, tok, e.shape[1])
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
        c = self.config
        if self.convolution is not None: t = self.convolution(rows, places, sentences.lengths)
        else: t = rows.index_select(0, torch.from_numpy(places))
        s_of = torch.from_numpy(np.repeat(np.arange(len(sentences.lengths)), sentences.lengths))
        L = torch.from_numpy(sentences.lengths).float()[:, None]
        m = torch.zeros(len(L), t.shape[1]).index_add(0, s_of, t) / L
        u = m / m.norm(dim=-1, keepdim=True).clamp(min=1e-6) * c.size**0.5
        return u.index_select(0, s_of) + t * (c.alpha / c.entry / self.dim**0.5)
