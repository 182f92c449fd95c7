"""The student in torch, with gradients: what distillation trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.aspect_model.student.encoder import quantise


@dataclass(frozen=True)
class StudentConfig:
    """Sizes. With these it runs at 9 to 10 times the sentences per second of all-MiniLM-L6-v2 (`results/student`)."""

    width: int = 256
    n_heads: int = 4
    key_width: int = 32  # of each head
    n_layers: int = 3
    hidden: int = 512
    stem_hidden: int = 512
    reach: int = 12  # tokens farther apart than this are all equally far
    dim: int = 192  # of the predicted vectors: the teacher's principal directions
    extra: int = 128  # of the table of context-free predictions, see `targets.context_free`


class StudentModule(nn.Module):
    """The same computation as `encoder.StudentEncoder`, on padded sentences, with gradients."""

    def __init__(self, config: StudentConfig, vectors: npt.NDArray[np.float32]) -> None:
        """``vectors`` (n_vocabulary, n_in): the static ones, and beside them those of ``context_free``, if any."""
        super().__init__()
        self.config = config
        self.table = nn.Buffer(torch.from_numpy(vectors), persistent=False)
        static = self.table[:, : vectors.shape[1] - config.extra]
        self.norms = nn.Buffer(static.norm(dim=1, keepdim=True), persistent=False)
        n_in = vectors.shape[1]
        self.stem = nn.Linear(n_in, config.width)
        self.stem_in = nn.Linear(n_in, config.stem_hidden)
        self.stem_out = nn.Linear(config.stem_hidden, config.width)
        self.layers = nn.ModuleList(LayerModule(config) for _ in range(config.n_layers))
        self.out = nn.Linear(config.width, config.dim)

    def forward(self, ids: Tensor, inside: Tensor) -> Tensor:
        """Token ids and a mask (n_sentences, length) -> vectors (n_sentences, length, dim), of any norm."""
        words, places = torch.unique(ids, return_inverse=True)
        rows = self.table[words]
        x = (self.stem(rows) + self.stem_out(self.stem_in(rows).relu()))[places]
        length = ids.shape[1]
        distances = torch.arange(length)[:, None] - torch.arange(length)
        distances = distances.clamp(-self.config.reach, self.config.reach) + self.config.reach
        hidden = torch.zeros(inside.shape).masked_fill(~inside, -1e9)[:, None, None]
        for layer in self.layers:
            x = layer(x, distances, hidden)
        return self.out(normalise(x))


class LayerModule(nn.Module):
    """One of `encoder.StoredLayers`."""

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.config = config
        keys = 2 * config.n_heads * config.key_width
        self.attention_in = nn.Linear(config.width, keys + config.width)
        self.attention_bias = nn.Parameter(torch.zeros(config.n_heads, 2 * config.reach + 1))
        self.attention_out = nn.Linear(config.width, config.width)
        self.forward_in = nn.Linear(config.width, config.hidden)
        self.forward_out = nn.Linear(config.hidden, config.width)
        for last in (self.attention_out, self.forward_out):
            nn.init.zeros_(last.weight)

    def forward(self, x: Tensor, distances: Tensor, hidden: Tensor) -> Tensor:
        """``hidden`` is added to the scores of padding, so that it has no weight."""
        keys = self.config.n_heads * self.config.key_width
        read = self.attention_in(normalise(x)).split([keys, keys, self.config.width], -1)
        query, key, value = (part.unflatten(-1, (self.config.n_heads, -1)).transpose(1, 2) for part in read)
        scores = (
            query @ key.transpose(-1, -2) * self.config.key_width**-0.5 + self.attention_bias[:, distances] + hidden
        )
        seen = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)
        x = x + self.attention_out(seen)
        return x + self.forward_out(self.forward_in(normalise(x)).relu())


def export(module: StudentModule) -> dict[str, npt.NDArray[Any]]:
    """The tensors that `encoder.read_student` reads: weights in eight bits."""
    found: dict[str, npt.NDArray[Any]] = {}
    for name, part in module.named_modules():
        if isinstance(part, LayerModule):
            found[f"{name}.attention_bias"] = part.attention_bias.detach().numpy().copy()
        if isinstance(part, nn.Linear):
            weight, bias = part.weight.detach().numpy().T.copy(), part.bias.detach().numpy().copy()
            if name.endswith("attention_in"):  # queries, divided here rather than at every use
                keys = module.config.n_heads * module.config.key_width
                weight[:, :keys] *= module.config.key_width**-0.5
                bias[:keys] *= module.config.key_width**-0.5
            found[f"{name}.weight"], found[f"{name}.scale"] = quantise(weight)
            found[f"{name}.bias"] = bias
    return found


def normalise(x: Tensor) -> Tensor:
    """Root mean square 1."""
    return F.rms_norm(x, (x.shape[-1],), eps=1e-6)
