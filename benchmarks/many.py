"""Many aspects, many examples, many reviews: learning, advice and the page's detection, in CPU seconds on one core.

    OMP_NUM_THREADS=1 python benchmarks/many.py --out results/many.json

Sentences are those of FewAsp(single) if it is there (or of ``--data``), else of the bundled sample. Aspects are groups
of sentences of one of its categories: the time depends on their number and length, not on what they say.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from copy import copy
from pathlib import Path

from awatt.data.corpus import Corpus
from awatt.detector.detector import AspectDetector
from awatt.files import write_text
from awatt.reproduce.bench import find_corpus
from awatt.server.store import ProjectStore
from awatt.server.workbench import Workbench

REVIEWS = 2_000  # sentences of the file that the detector may look at
PAGE = 50_000  # sentences of the page's project
MEMORY = 50_000  # examples
PARTS = ("learning", "detection", "report", "page", "memory")


def make_examples(corpus: Corpus, n_aspects: int, n_examples: int) -> dict[str, list[str]]:
    """Each aspect with so many sentences of one of the corpus' categories; a number makes repeated ones different."""
    rows = [column.nonzero()[0].tolist() for column in corpus.mentions.T]
    found = {}
    for number in range(n_aspects):
        own, turn = rows[number % len(rows)], number // len(rows)
        places = range(turn * n_examples, (turn + 1) * n_examples)
        texts = [corpus.sentences[own[place % len(own)]] for place in places]
        found[f"{corpus.aspects[number % len(rows)]} {turn + 1}"] = [
            f"{text} {place}" if place >= len(own) else text for place, text in zip(places, texts, strict=True)
        ]
    return found


def fastest(call: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds, the best of ``repeats`` after one to warm up."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds[1:])


def learn(examples: dict[str, list[str]], file: list[str] | None, model: str) -> AspectDetector:
    """A new detector."""
    return AspectDetector.from_examples(examples, file, model=model)


def learning(corpus: Corpus, model: str) -> dict[str, float]:
    """Learning from examples, with and without a file; one more example for one of 50 aspects."""
    found, reviews = {}, list(corpus.sentences[:REVIEWS])
    for n_aspects in (10, 50, 200):
        examples = make_examples(corpus, n_aspects, 5)
        for name, file in (("", None), (" with a file", reviews)):
            found[f"learn {n_aspects} x 5{name}"] = fastest(
                lambda examples=examples, file=file: learn(examples, file, model)
            )
    examples = make_examples(corpus, 50, 5)
    for name, file in (("", None), (" with a file", reviews)):
        detector, texts = AspectDetector.from_examples(examples, file, model=model), iter(corpus.sentences[-100:])
        found[f"add an example to one of 50{name}"] = fastest(
            lambda detector=detector, texts=texts: copy(detector).add_examples(next(iter(examples)), [next(texts)])
        )
    return found


def detection(corpus: Corpus, model: str) -> dict[str, float]:
    """Sentences per second of CPU time with 10 and 200 aspects."""
    texts, found = list(corpus.sentences[-5000:]), {}
    for n_aspects in (10, 200):
        detector = AspectDetector.from_examples(make_examples(corpus, n_aspects, 5), model=model)
        seconds = fastest(lambda detector=detector: detector.detect_many(texts, words=False), 2)
        found[f"sentences per second with {n_aspects} aspects"] = len(texts) / seconds
    names = [f"sentences per second with {number} aspects" for number in (200, 10)]
    return {**found, "rate with 200 to rate with 10": found[names[0]] / found[names[1]]}


def report(corpus: Corpus, model: str) -> dict[str, float]:
    """Reports, with and without a file."""
    found, reviews = {}, list(corpus.sentences[-REVIEWS:])
    for n_aspects, n_examples in ((15, 5), (200, 5), (15, 200)):
        for name, file in (("", None), (" with a file", reviews)):
            seconds = []
            for _ in range(2):  # the first report of a detector: it keeps what it has left out
                detector = learn(make_examples(corpus, n_aspects, n_examples), file, model)
                start = time.process_time()
                detector.report()
                seconds.append(time.process_time() - start)
            found[f"report {n_aspects} x {n_examples}{name}"] = min(seconds)
    return found


def page(corpus: Corpus, model: str) -> dict[str, float]:
    """What the server computes after a label, in a project with 50,000 reviews and 10 aspects of 5 examples."""
    texts = [f"{text} {turn or ''}".strip() for turn in range(10) for text in corpus.sentences][:PAGE]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        store = ProjectStore(Path(folder) / "p.sqlite")
        for name, examples in make_examples(corpus, 10, 5).items():
            store.add_aspect(name, examples)
        store.load_reviews([(text, [text]) for text in texts])
        workbench = Workbench(store, model)
        start = time.process_time()
        workbench.scores_and_thresholds()
        found[f"{len(texts):,} reviews, first time"] = time.process_time() - start
        ids = reversed(workbench.reviews().ids)

        def label() -> None:
            workbench.label_sentence(next(ids), [1])
            workbench.scores_and_thresholds()

        found[f"{len(texts):,} reviews after a label"] = fastest(label)
        store.close()
    return found


def memory(corpus: Corpus, model: str) -> dict[str, float]:
    """Peak megabytes of processes that learn from 50,000 examples."""
    found = {}
    for n_aspects in (10, 100):
        for name in ("", " with a file"):
            arguments = ["--peak", str(n_aspects), *(["--file"] if name else []), "--model", model]
            out = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
            seconds, megabytes = map(float, out.stdout.split())
            found[f"learn {MEMORY:,} examples of {n_aspects} aspects{name}"] = seconds
            found[f"its peak megabytes{name}, {n_aspects} aspects"] = megabytes
    return found


def print_peak(corpus: Corpus, n_aspects: int, file: bool, model: str) -> None:
    """CPU seconds and peak megabytes of learning from 50,000 examples in this process."""
    examples = make_examples(corpus, n_aspects, MEMORY // n_aspects)
    start = time.process_time()
    AspectDetector.from_examples(examples, list(corpus.sentences[:REVIEWS]) if file else None, model=model)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.process_time() - start, peak)


def main() -> None:
    """Run the parts and print what they give."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--model", default="fast")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--file", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    name, corpus = find_corpus(options.data)
    if options.peak:
        print_peak(corpus, options.peak, options.file, options.model)
        return
    found: dict[str, object] = {"corpus": name, "model": options.model}
    for part in options.parts:
        numbers: dict[str, float] = globals()[part](corpus, options.model)
        for label, number in numbers.items():
            print(f"{label:<60} {number:>10,.3f}", flush=True)
        found[part] = numbers
    if options.out:
        write_text(options.out, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
