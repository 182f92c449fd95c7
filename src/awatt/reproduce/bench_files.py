"""Speed of ``awatt detect``, file to file, as ratios to the tokenizer alone: above 1, detection is faster than it.

Times are CPU times in one process, in turns: sample, learning, reading, detection and writing, all of `detect_file`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from awatt.data.corpus import Corpus
from awatt.detector.bulk import BulkConfig, detect_file
from awatt.detector.detector import AspectDetector
from awatt.records.writer import RecordWriter

TOKENIZER = "the tokenizer alone"
BATCH = 1024  # sentences that the tokenizer is given at a time
N_ASPECTS, N_EXAMPLES = 10, 5


class Way(NamedTuple):
    """From file to file."""

    given: str  # format
    made: str
    wanted: float  # ratio
    words: bool = False


WAYS = {
    "CSV to JSONL": Way("csv", "jsonl", 1.3),
    "JSONL to JSONL": Way("jsonl", "jsonl", 1.3),
    "CSV to CSV": Way("csv", "csv", 1.0),
    "Parquet to Parquet": Way("parquet", "parquet", 1.0),
    "CSV to JSONL, with words": Way("csv", "jsonl", 0.7, words=True),
}


def files(corpus: Corpus, quick: bool) -> list[dict[str, object]]:
    """Microseconds per row of each way, and its ratio; 10 aspects with 5 examples of the corpus each."""
    examples = {
        aspect: [corpus.sentences[number] for number in column.nonzero()[0][:N_EXAMPLES].tolist()]
        for aspect, column in zip(corpus.aspects[:N_ASPECTS], corpus.mentions.T, strict=False)
    }
    with TemporaryDirectory(prefix="awatt-") as folder:
        seconds = measure(Path(folder), corpus.sentences, examples, count := 2_000 if quick else 50_000, 2)
    return [
        {"files": name, "microseconds": 1e6 * each / count, "times_the_tokenizer": seconds[TOKENIZER] / each}
        for name, each in seconds.items()
        if name != TOKENIZER
    ]


def measure(
    folder: Path, sentences: Sequence[str], examples: dict[str, list[str]], count: int, repeats: int
) -> dict[str, float]:
    """The least CPU seconds of each way, and of the tokenizer, in some rounds."""
    for kind in {way.given for way in WAYS.values()}:
        write_rows(sentences, count, folder / f"in.{kind}")
    detector = AspectDetector.from_examples(examples)
    texts = [sentences[number % len(sentences)] for number in range(count)]
    runs: dict[str, Callable[[], object]] = {TOKENIZER: partial(tokenize, detector, texts)}
    for name, way in WAYS.items():
        paths = str(folder / f"in.{way.given}"), str(folder / f"out.{way.made}")
        config = BulkConfig(words=way.words)
        runs[name] = partial(detect_file, detector, *paths, config, overwrite=True, learn_from_input=True)
    return least_cpu_seconds(runs, repeats)


def write_rows(sentences: Sequence[str], count: int, path: Path) -> None:
    """Write the sentences to a file."""
    with RecordWriter(path) as writer:
        for part in _rows(sentences, count):
            writer.write(part)


def _rows(sentences: Sequence[str], count: int) -> Iterator[list[dict[str, object]]]:
    """The sentences, again and again, as rows with two more columns."""
    for first in range(0, count, 10_000):
        yield [
            {"id": number, "stars": 1 + number % 5, "text": sentences[number % len(sentences)]}
            for number in range(first, min(count, first + 10_000))
        ]


def tokenize(detector: AspectDetector, texts: list[str]) -> None:
    """Tokenize all texts, nothing else."""
    for first in range(0, len(texts), BATCH):
        detector.loaded_model.tokenizer.encode_batch_fast(texts[first : first + BATCH])


def least_cpu_seconds(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Lowest CPU time of each function; they take turns."""
    found = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            began = time.process_time()
            function()
            found[name] = min(found[name], time.process_time() - began)
    return found
