"""Token vectors of a sentence encoder, computed once and kept on disk: what the student learns to predict."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer

from awatt.packed import Sentences, ranges, starts

logger = logging.getLogger(__name__)
Halves = npt.NDArray[np.float16]

_SHARD = 8_000  # sentences per file: what is lost when a run is stopped


class Taught(NamedTuple):
    """Sentences with the teacher's vectors."""

    sentences: Sentences
    tokens: Halves  # (n_tokens, dim)
    means: Halves  # (n_sentences, dim) over all of the teacher's tokens, its special ones included


class Teacher:
    """A BERT-like encoder that is given the word pieces of another tokenizer with the same pieces."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        from transformers import AutoModel

        # bfloat16 is twice as fast here, and the vectors' cosine with those of single precision is .9999.
        self.model: Any = AutoModel.from_pretrained(folder).eval().to(torch.bfloat16)
        theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
        unknown = theirs.token_to_id("[UNK]")
        pieces = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
        self.ids = np.array([theirs.token_to_id(piece) or unknown for piece in pieces])
        self.first, self.last = theirs.token_to_id("[CLS]"), theirs.token_to_id("[SEP]")

    def teach(self, sentences: Sentences, batch_tokens: int = 2048) -> Taught:
        """The vectors of every token, and of every sentence."""
        order = np.argsort(sentences.lengths, kind="stable")
        first = starts(sentences.lengths)
        dim = self.model.config.hidden_size
        tokens = np.zeros((len(sentences.ids), dim), dtype=np.float16)
        means = np.zeros((len(sentences.lengths), dim), dtype=np.float16)
        place = 0
        while place < len(order):
            size = max(1, batch_tokens // int(sentences.lengths[order[place]] + 8))
            batch = order[place : place + size]
            place += size
            lengths = sentences.lengths[batch]
            hidden, mean = self._forward(sentences.take(batch))
            tokens[ranges(first[batch], lengths)] = hidden
            means[batch] = mean
        return Taught(sentences, tokens, means)

    @torch.inference_mode()
    def _forward(self, sentences: Sentences) -> tuple[Halves, Halves]:
        lengths = torch.from_numpy(sentences.lengths)
        places = torch.arange(int(lengths.max()) + 2)
        inside = places < lengths[:, None] + 2
        own = (places > 0) & (places < lengths[:, None] + 1)
        ids = torch.zeros(inside.shape, dtype=torch.int64)
        ids[:, 0] = self.first
        ids[torch.arange(len(lengths)), lengths + 1] = self.last
        ids[own] = torch.from_numpy(self.ids[sentences.ids])
        hidden = self.model(input_ids=ids, attention_mask=inside.long()).last_hidden_state.float()
        mean = (hidden * inside[..., None]).sum(1) / inside.sum(1, keepdim=True)
        return hidden[own].half().numpy(), mean.half().numpy()


def teach_all(teacher: Teacher, sentences: Sentences, folder: Path) -> list[Path]:
    """Write the vectors in shards, and say where they are; those that are there already are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for shard, first in enumerate(range(0, len(sentences.lengths), _SHARD)):
        path = folder / f"{shard:04d}.npz"
        if path.exists():
            continue
        part = sentences.take(np.arange(first, min(first + _SHARD, len(sentences.lengths))))
        taught = teacher.teach(part)
        arrays = {"ids": part.ids, "lengths": part.lengths, "tokens": taught.tokens, "means": taught.means}
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        partial.rename(path)
        logger.info("wrote %s", path)
    return sorted(folder.glob("*.npz"))


def read_taught(shards: Sequence[Path]) -> Taught:
    """The shards that ``teach_all`` wrote, one after the other."""
    parts = [np.load(path) for path in shards]
    ids, lengths, tokens, means = (
        np.concatenate([part[name] for part in parts]) for name in ("ids", "lengths", "tokens", "means")
    )
    return Taught(Sentences(ids, lengths), tokens, means)
