"""Output that can be resumed after a kill: no row is lost or doubled."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from awatt.errors import AwattError
from awatt.records.reader import read_records
from awatt.records.resumable import ResumableWriter
from awatt.records.writer import RecordWriter

ROWS = [{"text": f'line "{number}"\nsecond, é😀', "aspects": ["a", "b"][: number % 3]} for number in range(50)]
SETTINGS = {"threshold": 0.5}


class Killed(BaseException):
    """Like a kill: no ``except Exception`` catches it."""


def write_until(path: Path, count: int, monkeypatch: pytest.MonkeyPatch, resume: bool) -> None:
    """Write up to row ``count``, then die in the middle of a row. Commits happen at every third write."""
    writer = ResumableWriter(path, SETTINGS, resume=resume)
    writer.__enter__()
    for number in range(writer.rows, count):
        monkeypatch.setattr("awatt.records.resumable.COMMIT_INTERVAL", 0.0 if number % 3 == 2 else 1e9)
        writer.write([ROWS[number]], {"last": number})
    writer._stream.write(b'{"text": "torn')
    writer._stream.flush()
    writer._raw.flush()
    writer._raw.close()


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "jsonl.gz", "csv.gz"])
def test_no_row_is_lost_or_doubled_after_a_kill(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"out.{suffix}"
    for count in (7, 8, 20, 43):
        write_until(path, count, monkeypatch, resume=True)
        assert not path.exists()
    with ResumableWriter(path, SETTINGS, resume=True) as writer:
        assert writer.rows in range(40, 44)
        assert writer.state == {"last": writer.rows - 1}
        for number in range(writer.rows, 50):
            writer.write([ROWS[number]], {"last": number})
    assert [path.name for path in tmp_path.iterdir()] == [f"out.{suffix}"]
    read = [record for batch in read_records(path) for record in batch]
    assert [record.text for record in read] == [row["text"] for row in ROWS]
    whole = tmp_path / f"whole.{suffix}"
    with RecordWriter(whole) as plain:
        plain.write(ROWS)
    opened = gzip.open if suffix.endswith("gz") else open
    with opened(path, "rb") as found, opened(whole, "rb") as wanted:
        assert found.read() == wanted.read()


def test_other_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.jsonl"
    write_until(path, 7, monkeypatch, resume=False)
    with pytest.raises(AwattError, match="started with another threshold"):
        ResumableWriter(path, {"threshold": 0.6}, resume=True)
    with pytest.raises(AwattError, match="left by a run that was stopped"):
        ResumableWriter(path, SETTINGS)
    with ResumableWriter(path, {"threshold": 0.6}, overwrite=True) as writer:
        assert writer.rows == 0
    assert path.read_text() == ""


def test_a_finished_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with ResumableWriter(path, SETTINGS) as writer:
        writer.write(ROWS, {})
    assert ResumableWriter(path, SETTINGS, resume=True).complete
    assert not ResumableWriter(path, SETTINGS, resume=True, overwrite=True).complete
    with pytest.raises(AwattError, match="the file already exists"):
        ResumableWriter(path, SETTINGS)


def test_a_failure_before_the_first_row_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Killed), ResumableWriter(tmp_path / "out.jsonl", SETTINGS):
        raise Killed
    assert list(tmp_path.iterdir()) == []


def test_a_later_failure_keeps_the_committed_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.records.resumable.COMMIT_INTERVAL", 0.0)
    path = tmp_path / "out.jsonl"

    def run_out_of_space() -> None:
        with ResumableWriter(path, SETTINGS) as writer:
            writer.write(ROWS[:5], {})
            monkeypatch.setattr("os.fsync", no_space)
            writer.write(ROWS[5:], {})

    with pytest.raises(AwattError, match=r"No space left on device\). Free some space, then continue with --resume\.$"):
        run_out_of_space()
    monkeypatch.undo()
    with ResumableWriter(path, SETTINGS, resume=True) as writer:
        assert writer.rows == 5
        writer.write(ROWS[5:], {})
    assert sum(map(len, read_records(path))) == 50


def no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def open_and_write(path: Path, overwrite: bool = False) -> None:
    with ResumableWriter(path, SETTINGS, overwrite=overwrite) as writer:
        writer.write(ROWS, {})


@pytest.mark.parametrize("commits", [0, 1])
def test_a_disk_that_is_full_from_the_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    synced: list[int] = []

    def sync(number: int) -> None:
        if len(synced) == commits:
            no_space()
        synced.append(number)

    monkeypatch.setattr("os.fsync", sync)
    with pytest.raises(AwattError, match=r"No space left on device\). Free some space, or choose another place\.$"):
        open_and_write(tmp_path / "out.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_starts_over_removes_the_old_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_until(tmp_path / "out.jsonl", 7, monkeypatch, resume=False)
    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(AwattError, match="or choose another place"):
        open_and_write(tmp_path / "out.jsonl", overwrite=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["jsonl", "csv.gz", "parquet"])
@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}])
def test_two_runs_cannot_write_the_same_file(tmp_path: Path, suffix: str, options: dict[str, bool]) -> None:
    path = tmp_path / f"out.{suffix}"

    def writer(**given: bool) -> Any:
        if suffix == "parquet":
            return RecordWriter(path, overwrite=given.get("overwrite", False))
        return ResumableWriter(path, SETTINGS, **given)

    with writer() as first:
        with pytest.raises(AwattError, match=rf"another process is writing this file \(process {os.getpid()} on "):
            writer(**options)
        first.write(ROWS[:2], *([] if suffix == "parquet" else [{}]))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert sum(map(len, read_records(path))) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there")
def test_a_killed_run_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    code = f"""
import time
from awatt.records.resumable import ResumableWriter
with ResumableWriter({str(path)!r}, {SETTINGS!r}) as writer:
    print("open", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(AwattError, match=f"process {other.pid} on "):
            ResumableWriter(path, SETTINGS, resume=True)
        other.kill()
    open_and_write(path, overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_part_that_was_deleted_is_named(tmp_path: Path) -> None:
    def delete() -> None:
        with ResumableWriter(tmp_path / "out.jsonl", SETTINGS) as writer:
            writer.write(ROWS, {})
            (tmp_path / "out.jsonl.part").unlink()

    with pytest.raises(AwattError, match=r"out\.jsonl\.part: was deleted during the run"):
        delete()
    assert list(tmp_path.iterdir()) == []


def test_missing_permission_is_not_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(AwattError, match=r"\(Permission denied\). Check the permissions, or choose another place\.$"):
        open_and_write(tmp_path / "out.jsonl")


@pytest.mark.parametrize("journal", ["", "{", "{}", "[]", '{"rows": 6, "bytes": "9", "columns": [], "state": {}}'])
def test_a_broken_journal_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str) -> None:
    path = tmp_path / "out.jsonl"
    write_until(path, 7, monkeypatch, resume=False)
    (tmp_path / "out.jsonl.part.json").write_text(journal)
    with pytest.raises(AwattError, match=r"out\.jsonl\.part\.json: this file is broken.* start over with --overwrite"):
        ResumableWriter(path, SETTINGS, resume=True)
    open_and_write(path, overwrite=True)
    assert sum(map(len, read_records(path))) == 50


def test_a_truncated_part_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, part = tmp_path / "out.jsonl", tmp_path / "out.jsonl.part"
    write_until(path, 7, monkeypatch, resume=False)
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(AwattError, match=r"has 100 bytes, but [0-9]+ were written: start over with --overwrite"):
        ResumableWriter(path, SETTINGS, resume=True)
    assert part.stat().st_size == 100


@pytest.mark.parametrize(
    ("name", "message"),
    [("out.parquet", "cannot be resumed"), ("no/out.jsonl", "no folder"), ("folder.jsonl", "not a regular file")],
)
def test_places_that_cannot_be_written(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(AwattError, match=message):
        ResumableWriter(tmp_path / name, SETTINGS)
