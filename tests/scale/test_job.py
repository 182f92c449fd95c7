"""A job and its parts, without a Ray: everything that a worker does runs in this process."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

import pytest

from awatt import AspectDetector
from awatt.detector.bulk import BulkConfig, Summary, detect_file
from awatt.errors import AwattError
from awatt.records.writer import RecordWriter
from awatt.scale import detection
from awatt.scale.connection import count_cores
from awatt.scale.job import AlreadyCompleteError, Job, PartReport, read_report, write_report
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
    job.close()
    again = Job(out, {"format": "csv"}, overwrite=True, resume=True)
    assert again.part_bytes == 0
    assert (tmp_path / "found" / "_awatt" / "summary.json").exists()
    again.start(1000)
    assert not (tmp_path / "found" / "_awatt" / "summary.json").exists()


def test_an_interrupt_while_starting_over_leaves_a_job_to_start_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "found")
    job = Job(out, {"format": "csv"}, overwrite=False, resume=False)
    job.start(1000)
    job.close()
    (tmp_path / "found" / "part-00000-00000.csv").write_text("old")
    removed: list[str] = []

    def interrupted(folder: str, names: list[str]) -> None:
        if any(name == "job.json" for name in names):
            raise KeyboardInterrupt
        removed.extend(names)

    again = Job(out, {"format": "csv"}, overwrite=True, resume=False)
    monkeypatch.setattr("awatt.scale.job.remove_files", interrupted)
    with pytest.raises(KeyboardInterrupt):
        again.start(1000)
    again.close()
    monkeypatch.undo()
    assert removed == ["part-00000-00000.csv"]
    Job(out, {"format": "csv"}, overwrite=True, resume=False).start(1000)
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == ["_awatt"]


@pytest.mark.parametrize("content", ["", "[]", '{"settings": {}}', '{"settings": 1, "part_bytes": 1}'])
def test_a_broken_job_is_said_to_be_broken(tmp_path: Path, content: str) -> None:
    (tmp_path / "_awatt").mkdir()
    (tmp_path / "_awatt" / "job.json").write_text(content)
    with pytest.raises(AwattError, match="this file is broken, so the job cannot be resumed: start over"):
        Job(str(tmp_path), {}, overwrite=False, resume=True)


@pytest.mark.parametrize("content", ["", '{"rows": 1', "[]", '{"other": 1}'])
def test_a_part_with_a_broken_report_is_processed_again(tmp_path: Path, content: str) -> None:
    job = Job(str(tmp_path / "found"), {}, overwrite=False, resume=False)
    job.start(1000)
    (tmp_path / "found" / "_awatt" / "part-1.json").write_text(content)
    (tmp_path / "found" / "part-1.csv").touch()
    resumed = Job(str(tmp_path / "found"), {}, overwrite=False, resume=True)
    assert (resumed.part_bytes, list(resumed.reports("csv"))) == (1000, [])


def test_a_resumed_job_processes_a_part_whose_file_was_deleted_again(tmp_path: Path) -> None:
    out = tmp_path / "found"
    job = Job(str(out), {}, overwrite=False, resume=False)
    job.start(1000)
    for part in ("part-00000-00000", "part-00000-00001"):
        (out / f"{part}.csv").write_text("text,aspects\n")
        write_report(str(out), part, PartReport(rows=1, read="of one row"))
    job.close()
    (out / "part-00000-00000.csv").unlink()
    resumed = Job(str(out), {}, overwrite=False, resume=True)
    assert [name for name, _ in resumed.reports("csv")] == ["part-00000-00001"]
    assert read_report(str(out), "part-00000-00000") is None  # otherwise a task of several parts would skip it


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
        (report,) = detection.detect_parts([(f"part-{number}", part)], task)
        assert isinstance(report, detection.PartReport)
        found += read_bytes(f"{store}/part-{number}.jsonl") or b""
    detect_file(detector, str(local), str(tmp_path / "local.jsonl"), BulkConfig())
    assert found == (tmp_path / "local.jsonl").read_bytes()
    missing = detection.detect_parts([("none", detection.Part(f"{store}/none.csv"))], task)
    assert str(missing).startswith(f"{store}/none.csv: cannot be read (")


@pytest.mark.parametrize(
    ("suffix", "part_bytes"), [("csv", 200), ("jsonl", 200), ("parquet", 10**6), ("jsonl.gz", 10**6)]
)
def test_a_finished_part_with_the_same_size_and_time_but_other_rows_is_noticed(
    detector: AspectDetector, tmp_path: Path, suffix: str, part_bytes: int
) -> None:
    source, config = tmp_path / f"in.{suffix}", BulkConfig()

    def write(last: str) -> None:
        with RecordWriter(source, overwrite=True) as writer:
            writer.write([{"id": number, "text": text} for number, text in enumerate([*TEXTS * 5, last])])
        os.utime(source, ns=(0, 0))

    write("my birthday")
    task = detection.Task(_Here(detector), str(tmp_path), "jsonl", config, 20)  # type: ignore[arg-type]
    size = source.stat().st_size
    parts = detection.split_file(str(source), size, part_bytes)
    reports = [detection._detect(f"part-{number}", part, task) for number, part in enumerate(parts)]
    checks = list(zip(parts, reports, strict=True))
    assert [detection.check_parts([check], config) for check in checks] == [None] * len(parts)
    write("my birthdax")
    assert source.stat().st_size == size or suffix == "jsonl.gz"
    *before, last = [detection.check_parts([check], config) for check in checks]
    assert before == [None] * (len(parts) - 1)
    assert str(last).startswith(f"{source}: ")
    assert re.search(r"already read ha(s|ve) changed since the run was started\. Use the file as it was", str(last))


def test_ten_times_as_many_files_make_no_more_tasks() -> None:
    for count in (1_000, 10_000):
        sizes = {f"small-{number}": 500 for number in range(count)} | {f"large-{number}": 2**20 for number in range(20)}
        groups = detection.bundle(sizes, 64)
        assert 20 <= len(groups) <= 64
        assert [name for group in groups for name in group] == list(sizes)
        largest = max(sum(sizes[name] for name in group) for group in groups)
        assert largest < 2**20 + sum(sizes.values()) / 32
    assert detection.bundle({"a": 5, "b": 0}, 64) == [("a",), ("b",)]
    assert len(detection.bundle(dict.fromkeys("abcdefgh", 0), 4)) == 4


def test_a_task_that_is_run_again_goes_on_after_the_parts_that_it_finished(
    detector: AspectDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.csv"
    source.write_text("text\nthe soup\n")
    (tmp_path / "_awatt").mkdir()
    task = detection.Task(_Here(detector), str(tmp_path), "csv", BulkConfig(), 20)  # type: ignore[arg-type]
    parts = [(f"part-{number}", detection.Part(str(source))) for number in range(3)]
    first = detection.detect_parts(parts, task)
    (tmp_path / "_awatt" / "part-1.json").unlink()  # as if the worker had been lost then
    detected: list[str] = []
    detect = detection._detect
    monkeypatch.setattr(detection, "_detect", lambda name, *rest: (detected.append(name), detect(name, *rest))[1])
    assert detection.detect_parts(parts, task) == first
    assert detected == ["part-1"]


def test_cores_are_counted_where_affinity_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= count_cores() <= (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS
    assert count_cores() == os.cpu_count()


def test_two_processes_cannot_work_on_one_job(tmp_path: Path) -> None:
    out = str(tmp_path / "found")
    job = Job(out, {}, overwrite=False, resume=False)
    early = Job(out, {}, overwrite=False, resume=False)  # looked at the folder before the other one started
    job.start(1000)
    for overwrite, resume in ((True, False), (False, True)):
        with pytest.raises(AwattError, match=rf"another process is writing this file \(process {os.getpid()} on "):
            Job(out, {}, overwrite, resume).start(1000)
    job.close()
    with pytest.raises(AwattError, match="another process has just worked on this job"):
        early.start(1000)
    early.close()
    Job(out, {}, overwrite=False, resume=True).start(1000)


class _Here:
    """A detector that need not be shipped."""

    def __init__(self, detector: AspectDetector) -> None:
        self.load = lambda: detector
