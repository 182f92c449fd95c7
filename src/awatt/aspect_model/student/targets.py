"""What the student learns to predict: the teacher's token vectors in their principal directions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from awatt.arrays import Integers, ranges, starts
from awatt.aspect_model.student.teacher import Taught
from awatt.aspect_model.transformer import Projection

_ROWS = 50_000  # tokens that are converted at once


@dataclass(frozen=True)
class Targets:
    """What the student learns to predict, and of which sentences."""

    ids: Integers  # (n_tokens,)
    lengths: Integers  # (n_sentences,)
    tokens: npt.NDArray[np.float16]  # (n_tokens, dim) of norm 1

    @cached_property
    def first(self) -> Integers:
        """The position of the first token of each sentence."""
        return starts(self.lengths)

    def split(self, count: int) -> tuple[Targets, Targets]:
        """The first ``count`` sentences, and the others."""
        cut = int(self.lengths[:count].sum())
        first = Targets(self.ids[:cut], self.lengths[:count], self.tokens[:cut])
        return first, Targets(self.ids[cut:], self.lengths[count:], self.tokens[cut:])

    def batch(self, numbers: Integers) -> tuple[Tensor, Tensor, Tensor]:
        """Padded ids, a mask (n_sentences, length), and vectors of the tokens inside it (n_inside, dim)."""
        lengths = self.lengths[numbers]
        rows = ranges(self.first[numbers], lengths)
        inside = torch.arange(int(lengths.max())) < torch.from_numpy(lengths)[:, None]
        ids = torch.zeros(inside.shape, dtype=torch.int64)
        ids[inside] = torch.from_numpy(self.ids[rows])
        return ids, inside, torch.from_numpy(self.tokens[rows]).float()


def make_targets(taught: Taught, projection: Projection) -> Targets:
    """The teacher's vectors, centred, in their principal directions, of norm 1."""
    tokens = np.empty((len(taught.tokens), projection.directions.shape[1]), dtype=np.float16)
    for begin in range(0, len(tokens), _ROWS):
        part = torch.from_numpy(taught.tokens[begin : begin + _ROWS])
        tokens[begin : begin + _ROWS] = projection(part).half().numpy()
    return Targets(taught.sentences.ids, taught.sentences.lengths, tokens)


def context_free(
    targets: Targets, alone: Targets, dim: int, prior: float = 10.0
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """The best prediction that knows no context: a token's mean target, in eight bits, and a scale per token.

    ``alone`` has the targets of every token of the vocabulary on its own; these count as ``prior`` occurrences, so that
    a rare token does not give its only sentence away. (n_vocabulary, dim), (n_vocabulary, 1)
    """
    sums = torch.zeros(len(alone.ids), dim)
    sums[torch.from_numpy(alone.ids)] = prior * torch.from_numpy(alone.tokens[:, :dim]).float()
    counts = torch.full((len(sums), 1), float(prior))
    for begin in range(0, len(targets.ids), _ROWS):
        ids = torch.from_numpy(targets.ids[begin : begin + _ROWS])
        sums.index_add_(0, ids, torch.from_numpy(targets.tokens[begin : begin + _ROWS, :dim]).float())
        counts.index_add_(0, ids, torch.ones(len(ids), 1))
    means = sums / counts
    means /= means.square().mean().sqrt()  # entries of about 1, as the static vectors have
    scale = (means.abs().amax(1, keepdim=True).clamp(min=1e-6) / 127).numpy()
    return np.round(means.numpy() / scale).astype(np.int8), scale
