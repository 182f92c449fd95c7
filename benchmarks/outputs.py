"""Whether a change leaves every output as it was: what `awatt detect` and `awatt report` write, to the last digit.

python benchmarks/outputs.py FOLDER                      writes the outputs of this version
python benchmarks/outputs.py FOLDER --compare OTHER      and compares them with those of another version

Courses, feedback and MAMS with both models: every format, words, whole reviews, names, labels, many aspects, odd
characters.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import compress
from pathlib import Path

from awatt import AspectDetector
from awatt.detector.bulk import BulkConfig, detect_file
from awatt.files import write_text
from awatt.records.writer import RecordWriter
from curve_sets import LabelledSet, draw_labels, labelled, load_sets

MakeDetector = Callable[[], AspectDetector]

SETS = ("courses", "feedback", "mams")
ODD = [
    "",
    " ",
    "\u00a0",
    "naïve café — ok",
    "日本語のテキスト",
    "a\tb  c",
    "x" * 3000,
    "word " * 700,
    "e\u0301 \u200b!",
    "0",
    "😀 fine",
]
SLOW = 1200  # rows for the accurate model


def examples_of(data: LabelledSet, budget: str, n_aspects: int | None = None) -> list[dict[str, object]]:
    """The rows of a file of examples."""
    numbers = labelled(draw_labels(data, 0), budget)
    assert numbers is not None
    if n_aspects is not None:  # each sentence's number decides its aspect: only the amount of work counts
        return [{"text": data.texts[n], "aspects": [f"topic {n % n_aspects}"]} for n in range(5 * n_aspects)]
    return [
        {"text": data.texts[number], "aspects": list(compress(data.aspects, data.labels[number]))}
        for number in numbers.tolist()
    ]


def make_outputs(folder: Path) -> dict[str, Callable[[], None]]:
    """A function that writes each output."""
    steps: dict[str, Callable[[], None]] = {}

    def add(
        name: str,
        detector: MakeDetector,
        data: LabelledSet,
        count: int | None,
        file: bool,
        **config: bool,
    ) -> None:
        def run() -> None:
            kind = name.partition(".")[2]
            source = folder / f"in {data.name} {count}.{'csv' if kind == 'jsonl' else kind}"
            if not source.exists():
                with RecordWriter(source) as writer:
                    texts = [text for text in (*data.texts[:count], *ODD) if kind != "tsv" or "\t" not in text]
                    writer.write([{"id": number, "text": text} for number, text in enumerate(texts)])
            out = str(folder / f"out {name}")
            detect_file(detector(), str(source), out, BulkConfig(**config), overwrite=True, learn_from_input=file)

        steps[f"out {name}"] = run

    def add_report(name: str, detector: MakeDetector, data: LabelledSet, file: bool) -> None:
        def run() -> None:
            made = detector()
            write_text(folder / f"out {name}", str((made.use_reviews(data.texts) if file else made).report()))

        steps[f"out {name}"] = run

    for set_name in SETS:
        data = load_sets()[set_name]()

        def learn(
            data: LabelledSet = data, budget: str = "5", model: str = "fast", many: int | None = None
        ) -> AspectDetector:
            return AspectDetector.from_examples(examples_of(data, budget, many), model=model)

        def by_name(data: LabelledSet = data, model: str = "fast") -> AspectDetector:
            return AspectDetector.from_names(data.aspects, model=model)

        add(f"{set_name} file.jsonl", learn, data, None, True)
        add(f"{set_name} no file.jsonl", learn, data, None, False)
        add(f"{set_name} words.jsonl", learn, data, None, True, words=True)
        add(f"{set_name} reviews.jsonl", learn, data, None, True, reviews=True, words=True)
        add(f"{set_name} labels.jsonl", lambda learn=learn: learn(budget="5+200"), data, None, True, words=True)
        add(f"{set_name} labels no file.jsonl", lambda learn=learn: learn(budget="5+500"), data, None, False)
        add(f"{set_name} names.jsonl", by_name, data, None, True)
        add(f"{set_name} many.jsonl", lambda learn=learn: learn(many=150), data, SLOW, set_name == "mams", words=True)
        add(f"{set_name} accurate.jsonl", lambda learn=learn: learn(model="accurate"), data, SLOW, True, words=True)
        add(f"{set_name} accurate no file.jsonl", lambda learn=learn: learn(model="accurate"), data, SLOW, False)
        add_report(f"{set_name} report.txt", learn, data, False)
        add_report(f"{set_name} report file.txt", lambda learn=learn: learn(budget="5+50"), data, True)
    for kind in ("csv", "tsv", "parquet"):
        add(f"{set_name} file.{kind}", learn, data, None, True)
    add(f"{set_name} accurate labels.jsonl", lambda: learn(model="accurate", budget="5+50"), data, SLOW, True)
    add(f"{set_name} 200 aspects.jsonl", lambda: learn(many=200), data, SLOW, False)
    add_report(f"{set_name} report many.txt", lambda: learn(many=60), data, False)
    return steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--only", default="", help="outputs whose names contain this")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    different = []
    for output, make in make_outputs(given.folder).items():
        if given.only in output:
            make()
            if given.compare and (given.folder / output).read_bytes() != (given.compare / output).read_bytes():
                different.append(output)
            print(output, "DIFFERENT" if output in different else "", flush=True)
    sys.exit(f"{len(different)} outputs are different" if different else 0)
