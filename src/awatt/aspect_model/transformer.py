"""Any BERT-like encoder as the detector's context vectors: ``awatt train-detector --encoder FOLDER``. Needs torch.

It reads the word pieces of the detector's own tokenizer, so that static and context vectors are of the same tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from safetensors.torch import load, save
from tokenizers import Tokenizer
from torch import Tensor, nn

from awatt.arrays import Integers, Sentences
from awatt.encoders.transformer import TransformerConfig, TransformerEncoder
from awatt.errors import AwattError

FEWEST_KNOWN = 0.9  # share of the detector's word pieces that an encoder must know
N_DIRECTIONS = 192  # of an encoder's vectors: more do not help (results/LOG.md)
_BATCH = 256  # sentences


class PieceEncoder:
    """A Hugging Face encoder that is given the word pieces of another tokenizer."""

    def __init__(self, encoder: TransformerEncoder, pieces: Integers) -> None:
        """``pieces`` (n_vocabulary,) is the encoder's own number of each token."""
        self.encoder, self.pieces = encoder.eval().requires_grad_(False), pieces

    @classmethod
    def create(cls, name: str, tokenizer: Tokenizer, max_length: int) -> Self:
        """From a folder, or a name on the hub."""
        encoder = TransformerEncoder.create(TransformerConfig(name, rescale=False), ())
        readable = encoder.model.config.max_position_embeddings - len(encoder.before) - len(encoder.after)
        if readable < max_length:
            raise AwattError(f"{name} reads at most {readable} tokens, but {max_length} are needed. Choose another.")
        ours, theirs = sorted(tokenizer.get_vocab().items(), key=itemgetter(1)), encoder.tokenizer.get_vocab()
        known = sum(piece in theirs for piece, _ in ours) / len(ours)
        if known < FEWEST_KNOWN:
            needed = "an encoder with the word pieces of BERT (uncased) is needed"
            raise AwattError(f"{name} knows {known:.0%} of the detector's word pieces, but {needed}. Choose another.")
        return cls(encoder, np.array([theirs.get(piece, encoder.empty) for piece, _ in ours]))

    def states(self, sentences: Sentences) -> Tensor:
        """The last layer's vector of each token. (n_tokens, hidden)"""
        with torch.inference_mode():
            return self.encoder(Sentences(self.pieces[sentences.ids], sentences.lengths))


class Projection(nn.Module):
    """Unit vectors in the principal directions of a sample of them."""

    def __init__(self, centre: Tensor, directions: Tensor) -> None:
        """Of the encoder's unit vectors: their mean (hidden,), and directions (hidden, dim)."""
        super().__init__()
        self.centre, self.directions = nn.Buffer(centre), nn.Buffer(directions)

    @classmethod
    def fit(cls, states: Tensor, dim: int) -> Self:
        """The ``dim`` directions of most variance among vectors (n, hidden)."""
        sample = F.normalize(states.float(), dim=-1)
        centre = sample.mean(0)
        _, directions = torch.linalg.eigh(torch.cov((sample - centre).T))
        return cls(centre, directions.flip(1)[:, :dim].contiguous())

    def forward(self, states: Tensor) -> Tensor:
        """(n, hidden) -> (n, dim)"""
        return F.normalize((F.normalize(states.float(), dim=-1) - self.centre) @ self.directions, dim=-1)


class TransformerContext:
    """Gives each token a vector that depends on its sentence."""

    def __init__(self, encoder: PieceEncoder, projection: Projection) -> None:
        self.encoder, self.projection = encoder, projection

    @classmethod
    def create(cls, name: str, tokenizer: Tokenizer, sample: Sentences, max_length: int) -> Self:
        """From a folder or a name on the hub, with the principal directions of a sample of sentences."""
        encoder = PieceEncoder.create(name, tokenizer, max_length)
        return cls(encoder, Projection.fit(encoder.states(sample), N_DIRECTIONS))

    def __call__(self, sentences: Sentences) -> npt.NDArray[np.float32]:
        """Unit vectors of every token in its context. (n_tokens, dim)"""
        count = len(sentences.lengths)
        batches = [np.arange(first, min(first + _BATCH, count)) for first in range(0, count, _BATCH)]
        parts = [self.projection(self.encoder.states(sentences.take(numbers))).numpy() for numbers in batches]
        none = np.zeros((0, self.projection.directions.shape[1]), dtype=np.float32)
        return np.concatenate([none, *parts])

    # -- folders

    def details(self) -> dict[str, Any]:
        """What ``restore`` needs besides the tensors, as JSON values."""
        return {**self.encoder.encoder.details, "dim": self.projection.directions.shape[1]}

    def tensors(self) -> bytes:
        """All weights, as a file of safetensors."""
        parts = {"encoder": self.encoder.encoder, "projection": self.projection}
        found = {f"{name}.{key}": value for name, part in parts.items() for key, value in part.state_dict().items()}
        return save({**found, "pieces": torch.from_numpy(self.encoder.pieces)})

    @classmethod
    def restore(cls, details: Mapping[str, Any], content: bytes, tokenizer: Tokenizer) -> Self:
        """The inverse of ``details`` and ``tensors``."""
        encoder = TransformerEncoder.restore(TransformerConfig(rescale=False), tokenizer, details)
        projection = Projection(torch.zeros(encoder.dim), torch.zeros(encoder.dim, details["dim"]))
        tensors = load(content)
        pieces = tensors.pop("pieces").numpy()
        nn.ModuleDict({"encoder": encoder, "projection": projection}).load_state_dict(tensors)
        return cls(PieceEncoder(encoder, pieces), projection)
