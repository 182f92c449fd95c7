"""Speed of `awatt detect`, file to file, as ratios to the tokenizer alone: results/files.json.

python benchmarks/files.py                    every way from file to file, one core, fast model, 10 aspects
python benchmarks/files.py profile            the share of each step in CSV to JSONL
python benchmarks/files.py million            memory with 1,000,000 rows
python benchmarks/files.py jobs               two processes compared with one, and with two that share nothing

A ratio is CPU time of `tokenizers`' `encode_batch_fast` divided by CPU time of detection, on the same sentences in the
same process, in turns: above 1, detection is faster than the tokenizer alone. Detection is all of `detect_file`: it
looks at a sample of the file, learns, reads, detects and writes. Starting Python and loading the model are not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from copy import copy
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from awatt import AspectDetector
from awatt.aspect_model.learner import tabulate_words
from awatt.aspect_model.model import AspectModel
from awatt.detector.bulk import BulkConfig, detect_file
from awatt.detector.columns import Batch, TableMaker, find
from awatt.detector.reviews import ReadAhead, sample_texts
from awatt.files import shared_folder, write_text
from awatt.records.format_writers import to_json_lines
from awatt.records.reader import read_rows
from awatt.records.writer import RecordWriter
from awatt.reproduce.bench_files import TOKENIZER, WAYS, least_cpu_seconds, measure, tokenize, write_rows

Found = dict[str, Any]


def read_sentences() -> tuple[list[str], dict[str, list[str]]]:
    """Different review sentences (MAMS, courses, products), shuffled, and 10 aspects with 5 of them each."""
    data = shared_folder() / "data"
    labelled: list[tuple[str, list[str]]] = []
    for split in ("train", "val", "test"):
        for sentence in ET.parse(data / "mams" / f"{split}.xml").getroot():
            found = [each.get("category", "") for each in sentence.iter("aspectCategory")]
            labelled.append((sentence.findtext("text", ""), found))
    for line in (data / "domains" / "courses.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        labelled.append((row["text"], row["aspects"]))
    labelled += [(line, []) for line in (data / "unlabelled" / "products.txt").read_text("utf-8").splitlines()]
    random.Random(5).shuffle(labelled)
    examples: dict[str, list[str]] = {}
    for text, aspects in labelled:
        if len(aspects) == 1 or any(aspect not in examples for aspect in aspects):
            for aspect in aspects:
                if aspect != "miscellaneous" and len(examples.setdefault(aspect, [])) < 5:
                    examples[aspect].append(text)
    return list(dict.fromkeys(text for text, _ in labelled)), dict(list(examples.items())[:10])


def ratios(folder: Path, sentences: list[str], examples: dict[str, list[str]], count: int, repeats: int) -> Found:
    """The ratio of each way: the least CPU time of some rounds, in turns with the tokenizer."""
    seconds = measure(folder, sentences, examples, count, repeats)
    alone = seconds.pop(TOKENIZER)
    return {
        "rows": count,
        "tokenizer_microseconds": 1e6 * alone / count,
        "ways": {
            name: {"microseconds": 1e6 * each / count, "ratio": alone / each, "wanted": WAYS[name].wanted}
            for name, each in seconds.items()
        },
    }


def profile(folder: Path, sentences: list[str], examples: dict[str, list[str]], count: int, repeats: int) -> Found:
    """Microseconds of CPU time per row of each step from CSV to JSONL, the least of some rounds."""
    write_rows(sentences, count, path := folder / "in.csv")
    config, out = BulkConfig(), str(folder / "out.jsonl")
    examined = AspectDetector.from_examples(examples)
    sample = sample_texts(sentences, False)
    detector = copy(examined).use_reviews(sample)
    model, maker = cast("AspectModel", detector.loaded_model), TableMaker(config, detector.aspects, "jsonl")
    batches = [Batch.of(part, "text") for part in read_rows(path)]
    tokens = [model.tokenize(batch.texts) for batch in batches]
    words = tabulate_words(model.parts, detector.fitted_)
    assert words is not None
    found = list(zip(batches, [find(detector, batch.texts, config) for batch in batches], strict=True))
    tables = [maker(*each) for each in found]
    steps: dict[str, Callable[[], object]] = {
        "looking at a sample": lambda: sample_texts(ReadAhead(iter(batches)).texts(), False),
        "learning": lambda: copy(examined).use_reviews(sample),
        "reading": lambda: [Batch.of(part, "text") for part in read_rows(path)],
        "checksum for --resume": lambda: [batch.content() for batch in batches],
        "tokenising": lambda: [model.tokenize(batch.texts) for batch in batches],
        "sums over words": lambda: [words.sums(part) for part in tokens],
        "sums and scores": lambda: [model.probabilities(detector.fitted_, part) for part in tokens],
        "columns": lambda: [maker(*each) for each in found],
        "JSON": lambda: [to_json_lines(each) for each in tables],
        "all": lambda: detect_file(examined, str(path), out, config, overwrite=True, learn_from_input=True),
        TOKENIZER: lambda: tokenize(detector, [text for batch in batches for text in batch.texts]),
    }
    return {name: 1e6 * seconds / count for name, seconds in least_cpu_seconds(steps, repeats).items()}


def million(folder: Path, sentences: list[str], examples: dict[str, list[str]], count: int) -> Found:
    """Peak memory after a tenth of the rows and after all of them, of a command of its own."""
    write_rows(sentences, count, path := folder / "in.csv")
    write_rows(sentences, count // 10, tenth := folder / "tenth.csv")
    with RecordWriter(folder / "examples.jsonl") as writer:
        writer.write([{"text": text, "aspects": [name]} for name, texts in examples.items() for text in texts])
    found: Found = {"rows": count}
    for name, source in (("a_tenth_megabytes", tenth), ("megabytes", path)):
        command = [
            "detect",
            str(source),
            "--examples",
            str(folder / "examples.jsonl"),
            "--out",
            str(folder / "o.jsonl"),
        ]
        code = (
            "import resource, sys; from awatt.cli import main\n"
            "try: main()\n"
            "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *command, "--quiet", "--overwrite"], check=True, capture_output=True, text=True
        )
        found[name] = int(done.stdout.split()[-1]) / 1000
    return found


def jobs(folder: Path, sentences: list[str], examples: dict[str, list[str]], count: int, repeats: int) -> Found:
    """Two processes and one: seconds, and CPU seconds of this process and of the workers."""
    write_rows(sentences, count, path := folder / "in.csv")
    detector = AspectDetector.from_examples(examples)
    found: Found = {"rows": count}
    for number in (1, 2):
        best = float("inf")
        for _ in range(repeats):
            before, began = os.times(), time.perf_counter()
            out = str(folder / f"{number}.jsonl")
            detect_file(detector, str(path), out, BulkConfig(), overwrite=True, learn_from_input=True, jobs=number)
            took, after = time.perf_counter() - began, os.times()
            if took < best:
                best = took
                own = after.user + after.system - before.user - before.system
                workers = after.children_user + after.children_system - before.children_user - before.children_system
                found[str(number)] = {"seconds": took, "own_cpu_seconds": own, "workers_cpu_seconds": workers}
    assert (folder / "1.jsonl").read_bytes() == (folder / "2.jsonl").read_bytes()
    found["times_as_fast"] = found["1"]["seconds"] / found["2"]["seconds"]
    found["two_independent"] = 2 * found["1"]["seconds"] / independent(folder, path, examples, repeats)
    return found


def independent(folder: Path, path: Path, examples: dict[str, list[str]], repeats: int) -> float:
    """Seconds in which two processes that share nothing detect in the whole file each: what the machine can do."""
    best = float("inf")
    with get_context("spawn").Pool(2) as pool:
        for _ in range(repeats + 1):  # the first time they load the model
            began = time.perf_counter()
            pool.starmap(detect_all, [(folder / f"alone{number}.jsonl", path, examples) for number in (1, 2)], 1)
            best = min(best, time.perf_counter() - began)
    return best


def detect_all(out: Path, path: Path, examples: dict[str, list[str]]) -> None:
    """In one process."""
    detector = AspectDetector.from_examples(examples)
    detect_file(detector, str(path), str(out), BulkConfig(), overwrite=True, learn_from_input=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="ratios", choices=("ratios", "profile", "million", "jobs"))
    parser.add_argument("--rows", type=int, help="[100,000; 1,000,000 for million and 500,000 for jobs]")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/files.json"))
    given = parser.parse_args()
    review_sentences, review_examples = read_sentences()
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary), review_sentences, review_examples
        if given.what == "ratios":
            result = ratios(*data, given.rows or 100_000, given.repeats)
            for way, each in result["ways"].items():
                print(f"{way:26}{each['microseconds']:6.1f} us {each['ratio']:6.2f} (wanted {each['wanted']})")
        elif given.what == "profile":
            result = profile(*data, given.rows or 100_000, given.repeats)
            for step, value in result.items():
                print(f"{step:26}{value:6.2f} us")
        elif given.what == "million":
            print(result := million(*data, given.rows or 1_000_000))
        else:
            print(result := jobs(*data, given.rows or 500_000, given.repeats))
    known = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {}
    write_text(given.out, json.dumps({**known, given.what: result}, indent=1) + "\n")
