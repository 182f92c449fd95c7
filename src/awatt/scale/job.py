"""The output folder of a job: the settings that it was started with, and a report for each finished part.

found/part-00000-00000.jsonl ...    the rows
found/_awatt/job.json               settings and the size of a part
found/_awatt/part-00000-00000.json  a report: counts, faulty rows, a hash of the rows read
found/_awatt/summary.json           written last, when all parts are finished
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from awatt.detector.bulk import AlreadyCompleteError, Summary
from awatt.errors import AwattError
from awatt.files import FileLock
from awatt.records.resumable import START_OVER
from awatt.scale.storage import (
    absolute,
    is_remote,
    list_folder,
    make_folder,
    read_bytes,
    remove_files,
    write_bytes,
)

REPORTS = "_awatt"  # most readers of a folder ignore names that begin with _
JOB, SUMMARY = "job.json", "summary.json"


@dataclass
class PartReport:
    """What was found in a part. ``lines`` are those read, the ``header`` lines before the part included.

    ``read`` is the `RowDigest` of its rows, which a resumed job compares.
    """

    rows: int = 0
    none: int = 0
    several: int = 0
    aspects: dict[str, int] = field(default_factory=dict)
    n_faults: int = 0
    lines: int = 0
    header: int = 0
    read: str = ""
    faults: list[tuple[int, str]] = field(default_factory=list)  # the first ones, with the line within the part

    def add_to(self, summary: Summary) -> None:
        """Add the counts; the faults wait until all parts are finished, and their lines are known."""
        summary.rows += self.rows
        summary.none += self.none
        summary.several += self.several
        summary.n_faults += self.n_faults
        for aspect, count in self.aspects.items():
            summary.aspects[aspect] += count


def write_report(out: str, part: str, report: PartReport) -> None:
    """Mark a part as finished."""
    write_bytes(f"{out}/{REPORTS}/{part}.json", json.dumps(asdict(report)).encode())


def read_report(out: str, part: str) -> PartReport | None:
    """The report of a finished part; None if it is not finished, or not as this version needs it."""
    with suppress(ValueError, TypeError):  # not written completely: the part is processed again
        report = PartReport(**json.loads(read_bytes(f"{out}/{REPORTS}/{part}.json") or b""))
        return report if report.read else None
    return None


class Job:
    """A job in the folder ``out``, new or resumed. ``part_bytes`` is the size of a part, 0 before `start`.

    From `start` to `close` no other process can work on it, if the folder is a local one.
    """

    def __init__(self, out: str, settings: dict[str, object], overwrite: bool, resume: bool) -> None:
        self.out = absolute(out)
        self.folder = f"{self.out}/{REPORTS}"
        self.settings = json.loads(json.dumps(settings))  # tuples become lists, as when they are read
        self.part_bytes: int = 0
        self._lock: FileLock | None = None
        self._start_over = False
        if not is_remote(out) and os.path.exists(self.out) and not os.path.isdir(self.out):
            raise AwattError(f"{out}: this is a file, but --engine ray writes a folder. Name a folder.")
        self._found = read_bytes(f"{self.folder}/{JOB}")
        complete = read_bytes(f"{self.folder}/{SUMMARY}") is not None
        if self._found is None and list_folder(self.out):
            raise AwattError(f"{out}: this folder is not empty and holds no job. Name a new folder.")
        if self._found is None:
            return
        if resume and not (complete and overwrite):
            self._resume(self._found)
            if complete:
                raise AlreadyCompleteError(f"{out}: already complete, there is nothing to resume.")
        elif overwrite:
            self._start_over = True
        else:
            advice = "Use --resume to continue it, --overwrite to start over, or another folder."
            raise AwattError(f"{out}: already holds a job. {advice}")

    def _resume(self, content: bytes) -> None:
        try:
            job = json.loads(content)
            settings, self.part_bytes = dict(job["settings"]), int(job["part_bytes"])
        except (ValueError, TypeError, KeyError):
            broken = f"{self.folder}/{JOB}: this file is broken, so the job cannot be resumed"
            raise AwattError(f"{broken}: {START_OVER}") from None
        for name, value in settings.items():
            if self.settings.get(name) != value:
                advice = "Use the same again, or start over with --overwrite."
                raise AwattError(f"{self.out}: this job was started with another {name}. {advice}")

    def start(self, part_bytes: int) -> None:
        """Write down the settings, unless the job is resumed; what it had is removed if it starts over."""
        make_folder(self.folder)
        if not is_remote(self.out):
            self._lock = FileLock(Path(self.folder, JOB))
        if read_bytes(f"{self.folder}/{JOB}") != self._found:
            raise AwattError(f"{self.out}: another process has just worked on this job. Run the command again.")
        if self._start_over:
            # What says that there is a job goes last: an interrupt leaves a job that can be started over.
            for folder, own in ((self.out, "part-"), (self.folder, ("part-", SUMMARY)), (self.folder, JOB)):
                remove_files(folder, [name for name in list_folder(folder) if name.startswith(own)])
        if not self.part_bytes:
            self.part_bytes = part_bytes
            job = {"settings": self.settings, "part_bytes": part_bytes}
            write_bytes(f"{self.folder}/{JOB}", json.dumps(job, indent=1).encode())

    def reports(self, kind: str) -> Iterator[tuple[str, PartReport]]:
        """The names of the finished parts, and their reports. ``kind`` is the suffix of their files.

        The report of a part whose file is gone is removed, so that the part is processed again.
        """
        names, written = list_folder(self.folder), set(list_folder(self.out))
        parts = [name.removesuffix(".json") for name in names if name.startswith("part-") and name.endswith(".json")]
        remove_files(self.folder, [f"{part}.json" for part in parts if f"{part}.{kind}" not in written])
        for part in parts:
            if f"{part}.{kind}" in written and (report := read_report(self.out, part)) is not None:
                yield part, report

    def close(self) -> None:
        """Let other processes work on the job."""
        if self._lock is not None:
            self._lock.release()

    def finish(self, summary: Summary) -> None:
        """Mark the job as complete."""
        content = json.dumps(asdict(summary), indent=1, ensure_ascii=False)
        write_bytes(f"{self.folder}/{SUMMARY}", content.encode())
