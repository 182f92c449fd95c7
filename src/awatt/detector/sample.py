"""The detector on the bundled sample, compared with a person's labels."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from itertools import chain

import numpy as np

from awatt.arrays import Bools
from awatt.detector.detector import AspectDetector
from awatt.detector.models import FAST
from awatt.detector.results import Detection
from awatt.errors import AwattError
from awatt.records.reader import Record, read_records


@dataclass(frozen=True)
class DomainResult:
    """Detections in the sentences of a domain that were not examples."""

    domain: str
    aspects: tuple[str, ...]
    detections: list[Detection]
    truth: Bools  # (n_sentences, n_aspects)
    found: Bools


def detect_sample(n_shot: int, seed: int, model: str = FAST) -> list[DomainResult]:
    """In each domain, learn from ``n_shot`` sentences per aspect and detect in all others."""
    domains: dict[str, list[Record]] = {}
    with as_file(files("awatt.data") / "sample.jsonl") as path:
        for record in chain.from_iterable(read_records(path)):
            domains.setdefault(str(record.fields["domain"]), []).append(record)
    rng = np.random.default_rng(seed)
    shuffled = {name: [rows[number] for number in rng.permutation(len(rows))] for name, rows in domains.items()}
    return [_detect_domain(name, rows, n_shot, model) for name, rows in shuffled.items()]


def _detect_domain(domain: str, records: list[Record], n_shot: int, model: str) -> DomainResult:
    examples: dict[str, list[str]] = {}
    for aspect in sorted({aspect for record in records for aspect in record.aspects}):
        own = [record.text for record in records if record.aspects == (aspect,)]
        examples[aspect] = own[:n_shot]
        if len(own) <= n_shot:
            count = f"aspect '{aspect}' of the sample has {len(own)} sentences that mention only this aspect"
            raise AwattError(f"{count}, but --n-shot {n_shot} needs at least {n_shot + 1}. Lower it.")
    taken = set(chain.from_iterable(examples.values()))
    rest = [record for record in records if record.text not in taken]
    texts = [record.text for record in rest]
    detections = AspectDetector.from_examples(examples, reviews=texts, model=model).detect_many(texts)
    truth = np.array([[aspect in record.aspects for aspect in examples] for record in rest])
    found = np.array([[aspect in each.aspects for aspect in examples] for each in detections])
    return DomainResult(domain, tuple(examples), detections, truth, found)
