"""One split of a dataset in memory: its distinct sentences, its aspects, and which sentence mentions which aspect."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from awatt.data.fewasp import read_fewasp
from awatt.errors import AwattError
from awatt.records.format_readers import READERS
from awatt.records.reader import read_records


@dataclass(frozen=True)
class Corpus:
    """Sentences are distinct texts; ``members[c]`` are those that an episode may draw for aspect ``c``."""

    split: str
    sentences: tuple[str, ...]
    aspects: tuple[str, ...]
    mentions: npt.NDArray[np.bool_]  # (n_sentences, n_aspects)
    members: tuple[npt.NDArray[np.int64], ...]  # for each aspect, sentence numbers in ascending order

    @classmethod
    def from_rows(cls, split: str, rows: Iterable[tuple[str, Iterable[str], Iterable[str]]]) -> Corpus:
        """From ``(text, aspects it is listed under, aspects it mentions)``. Rows with the same text are merged."""
        numbers: dict[str, int] = {}
        aspects: dict[str, int] = {}
        listings: set[tuple[int, int]] = set()
        mentions: set[tuple[int, int]] = set()
        for text, listed, mentioned in rows:
            sentence = numbers.setdefault(text, len(numbers))
            listed_pairs = {(sentence, aspects.setdefault(aspect, len(aspects))) for aspect in listed}
            listings |= listed_pairs
            mentions |= listed_pairs
            mentions.update((sentence, aspects.setdefault(aspect, len(aspects))) for aspect in mentioned)
        matrix = np.zeros((len(numbers), len(aspects)), dtype=bool)
        listed_matrix = matrix.copy()
        for target, pairs in ((matrix, mentions), (listed_matrix, listings)):
            if pairs:
                target[tuple(np.array(sorted(pairs)).T)] = True
        members = tuple(np.flatnonzero(column) for column in listed_matrix.T)
        return cls(split, tuple(numbers), tuple(aspects), matrix, members)


def find_split(folder: Path, split: str) -> Path:
    """The file of a split: ``split.json`` (FewAsp's format), or ``split`` with the suffix of any record format."""
    if not folder.is_dir():
        raise AwattError(f"{folder} is not a folder. --data names a dataset's folder, with train, val and test files.")
    for suffix in ("json", *READERS, *(f"{kind}.gz" for kind in READERS)):
        path = folder / f"{split}.{suffix}"
        if path.is_file():
            return path
    raise AwattError(
        f"{folder} has no {split} split. Put {split}.json (FewAsp's format) or {split}.jsonl there, "
        "or build the datasets with 'awatt data build'."
    )


def hash_splits(folder: Path) -> dict[str, str]:
    """SHA-256 of the files that a run is trained and chosen with."""
    return {split: hashlib.sha256(find_split(folder, split).read_bytes()).hexdigest() for split in ("train", "val")}


def load_corpus(folder: Path, split: str) -> Corpus:
    """Read one split from a dataset's folder."""
    path = find_split(folder, split)
    if path.suffix == ".json":
        categories = read_fewasp(path)
        return Corpus.from_rows(
            split,
            (
                (" ".join(instance.tokens), (category,), instance.aspects)
                for category, instances in categories.items()
                for instance in instances
            ),
        )
    batches = read_records(path)
    return Corpus.from_rows(split, ((row.text, row.aspects, ()) for batch in batches for row in batch))


def load_sample() -> Corpus:
    """The bundled sample: sentences about restaurants, hotels and laptops, written for this package."""
    with as_file(files("awatt.data") / "sample.jsonl") as path:
        batches = read_records(path)
        return Corpus.from_rows("sample", ((row.text, row.aspects, ()) for batch in batches for row in batch))
