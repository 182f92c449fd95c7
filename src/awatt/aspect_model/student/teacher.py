"""Token vectors of a sentence encoder, computed once and kept on disk: what the student learns to predict."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer

from awatt.arrays import Sentences
from awatt.aspect_model.transformer import PieceEncoder

_log = logging.getLogger(__name__)

MAX_LENGTH = 96  # tokens of a sentence that is learned from
_SHARD = 8_000  # sentences per file: what is lost when a run is stopped


class Taught(NamedTuple):
    """Sentences with the teacher's vectors."""

    sentences: Sentences
    tokens: npt.NDArray[np.float16]  # (n_tokens, dim)


def load_teacher(name: str, tokenizer: Tokenizer) -> PieceEncoder:
    """A BERT-like encoder. In bfloat16, which is twice as fast; the cosine with single precision is .9999."""
    found = PieceEncoder.create(name, tokenizer, MAX_LENGTH)
    found.encoder.to(torch.bfloat16)
    return found


def teach_all(teacher: PieceEncoder, sentences: Sentences, folder: Path) -> list[Path]:
    """Write the vectors in shards, and say where they are; those that are there already are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for shard, first in enumerate(range(0, len(sentences.lengths), _SHARD)):
        path = folder / f"{shard:04d}.npz"
        paths.append(path)
        if path.exists():
            continue
        part = sentences.take(np.arange(first, min(first + _SHARD, len(sentences.lengths))))
        arrays = {"ids": part.ids, "lengths": part.lengths, "tokens": teacher.states(part).half().numpy()}
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        partial.rename(path)
        _log.info("wrote %s", path)
    return paths


def read_taught(shards: Sequence[Path]) -> Taught:
    """The shards that `teach_all` wrote, one after the other."""
    parts = [np.load(path) for path in shards]
    ids, lengths, tokens = (np.concatenate([part[name] for part in parts]) for name in ("ids", "lengths", "tokens"))
    return Taught(Sentences(ids, lengths), tokens)
