"""How much a cluster needs for a million, 100 million and a billion sentences, from rates measured on one core here.

    python benchmarks/capacity.py                   writes results/capacity.json and prints the table of the docs

A part is processed as a worker of the Ray engine does it: JSONL in and out, four aspects, no words. Rates are rows per
CPU second, so that other work on this machine does not change them much.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from awatt import AspectDetector
from awatt.detector.bulk import BulkConfig
from awatt.scale import detection
from awatt.scale.parts import Part, split_file

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "results" / "capacity.json"
SAMPLE = ROOT / "src" / "awatt" / "data" / "sample.jsonl"
ROWS = {"fast": 100_000, "accurate": 20_000}
SIZES = {"1 million": 10**6, "100 million": 10**8, "1 billion": 10**9}
CORES = (8, 64)


class Here:
    """A detector that need not be sent to a worker."""

    def __init__(self, detector: AspectDetector) -> None:
        self.load = lambda: detector


def write_rows(path: Path, rows: int) -> None:
    """The sentences of the bundled sample, two by two, so that almost none occurs twice."""
    texts = [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()]
    with path.open("w", encoding="utf-8") as stream:
        for number in range(rows):
            first, second = texts[number % len(texts)], texts[(number // len(texts)) % len(texts)]
            half = " ".join(second.split()[: len(second.split()) // 2])
            stream.write(json.dumps({"id": number, "text": f"{half} {first}"}, ensure_ascii=False) + "\n")


def measure(model: str, rows: int, folder: Path) -> dict[str, Any]:
    """CPU seconds and bytes of one part on one core."""
    detector = AspectDetector.from_examples(ROOT / "examples" / "aspects.jsonl", model=model)
    detector.detect("Load everything.")
    (folder / "_awatt").mkdir(exist_ok=True)
    write_rows(source := folder / f"{model}-in.jsonl", rows)
    task = detection.Task(Here(detector), str(folder), "jsonl", BulkConfig(), 20)  # type: ignore[arg-type]
    begin = time.process_time()
    (report,) = detection.detect_parts([(model, Part(str(source)))], task)
    seconds = time.process_time() - begin
    assert isinstance(report, detection.PartReport)
    assert report.rows == rows
    written = (folder / f"{model}.jsonl").stat().st_size
    return {
        "rows": rows,
        "cpu_seconds": round(seconds, 2),
        "rows_per_cpu_second": round(rows / seconds),
        "bytes_read_per_row": round(source.stat().st_size / rows),
        "bytes_written_per_row": round(written / rows),
    }


def measure_splitting(rows: int, folder: Path) -> dict[str, Any]:
    """How fast the driver finds where the rows of a CSV begin, before the work starts."""
    path = folder / "in.csv"
    path.write_text(
        "id,text\n" + "".join(f'{number},"the soup, of course, was cold {number}"\n' for number in range(rows))
    )
    begin = time.process_time()
    split_file(str(path), path.stat().st_size, 2**20)
    return {"rows": rows, "rows_per_cpu_second": round(rows / (time.process_time() - begin))}


def table(found: dict[str, Any]) -> str:
    """What each number of sentences needs, as Markdown."""
    hours = " | ".join(f"hours on {cores} cores" for cores in CORES)
    lines = [f"| sentences | model | core-hours | {hours} | GB read | GB written | MB/s on {CORES[-1]} cores |"]
    lines.append("|" + "---|" * (6 + len(CORES)))
    for name, size in SIZES.items():
        for model in ROWS:
            one = found[model]
            work = size / one["rows_per_cpu_second"] / 3600
            read, written = (size * one[f"bytes_{what}_per_row"] / 1e9 for what in ("read", "written"))
            each = " | ".join(f"{work / cores:.2g}" for cores in CORES)
            rate = (read + written) * 1e3 / (work / CORES[-1] * 3600)
            lines.append(f"| {name} | {model} | {work:.2g} | {each} | {read:.3g} | {written:.3g} | {rate:.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, store and print."""
    with tempfile.TemporaryDirectory() as name:
        found = {model: measure(model, rows, Path(name)) for model, rows in ROWS.items()}
        found["splitting CSV"] = measure_splitting(300_000, Path(name))
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    print(table(found))


if __name__ == "__main__":
    main()
