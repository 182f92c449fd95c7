"""A job and its parts, without a Ray: everything that a worker does runs in this process."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from awatt import AspectDetector
from awatt.detector.bulk import BulkConfig, Summary, detect_file
from awatt.records.writer import RecordWriter
from awatt.scale import detection
from awatt.scale.job import AlreadyCompleteError, Job
from awatt.scale.storage import find_files, read_bytes, write_bytes

TEXTS = ["The pizza was delicious!", "a rude waiter", "", "😀", "the parking lot was full", "zxqv"]
EXAMPLES = {"food": ["delicious pizza", "tasty soup"], "staff": ["a rude waiter"], "parking": ["the lot was full"]}


@pytest.fixture(scope="module")
def detector() -> AspectDetector:
    return AspectDetector.from_examples(EXAMPLES)


def test_a_complete_job_is_done_again_only_with_overwrite(tmp_path: Path) -> None:
    out = str(tmp_path / "found")
    job = Job(out, {"format": "csv"}, overwrite=False, resume=False)
    job.start(1000)
    job.finish(Summary())
    with pytest.raises(AlreadyCompleteError):
        Job(out, {"format": "csv"}, overwrite=False, resume=True)
    assert Job(out, {"format": "csv"}, overwrite=True, resume=True).part_bytes == 0
    assert not (tmp_path / "found" / "_awatt" / "summary.json").exists()


@pytest.mark.parametrize("content", ["", '{"rows": 1', "[]", '{"other": 1}'])
def test_a_part_with_a_broken_report_is_processed_again(tmp_path: Path, content: str) -> None:
    job = Job(str(tmp_path / "found"), {}, overwrite=False, resume=False)
    job.start(1000)
    (tmp_path / "found" / "_awatt" / "part-1.json").write_text(content)
    resumed = Job(str(tmp_path / "found"), {}, overwrite=False, resume=True)
    assert (resumed.part_bytes, list(resumed.reports())) == (1000, [])


def test_a_part_without_rows_has_its_columns(detector: AspectDetector, tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("id,text\n")
    task = detection.Task(_Here(detector), str(tmp_path), "csv", BulkConfig(), 20)  # type: ignore[arg-type]
    report = detection._detect("part-0", detection.Part(str(tmp_path / "none.csv")), task)
    assert report.rows == 0
    assert (tmp_path / "part-0.csv").read_text() == "text,id,aspects,score_food,score_staff,score_parking\n"


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "csv.gz"])
def test_a_store_gets_the_bytes_of_the_local_engine(detector: AspectDetector, tmp_path: Path, suffix: str) -> None:
    local, store = tmp_path / f"in.{suffix}", f"memory://{secrets.token_hex(8)}"
    with RecordWriter(local) as writer:
        writer.write([{"id": number, "text": f'{text}, "x"\ny'} for number, text in enumerate(TEXTS * 20)])
    write_bytes(f"{store}/in.{suffix}", local.read_bytes())
    task = detection.Task(_Here(detector), store, "jsonl", BulkConfig(), 20)  # type: ignore[arg-type]
    ((path, size),) = find_files(f"{store}/*.{suffix}")
    parts = detection.split_file(path, size, 500)
    assert len(parts) > 5 or suffix in ("parquet", "csv.gz")
    found = b""
    for number, part in enumerate(parts):
        assert isinstance(detection.detect_part(f"part-{number}", part, task), detection.PartReport)
        found += read_bytes(f"{store}/part-{number}.jsonl") or b""
    detect_file(detector, str(local), str(tmp_path / "local.jsonl"), BulkConfig())
    assert found == (tmp_path / "local.jsonl").read_bytes()
    missing = detection.detect_part("none", detection.Part(f"{store}/none.csv"), task)
    assert str(missing).startswith(f"{store}/none.csv: cannot be read (")


class _Here:
    """A detector that need not be shipped."""

    def __init__(self, detector: AspectDetector) -> None:
        self.load = lambda: detector
