"""The output folder of a job: the settings that it was started with, and a report for each finished part.

found/part-00000-00000.jsonl ...    the rows
found/_awatt/job.json               settings and the size of a part
found/_awatt/part-00000-00000.json  a report: counts, faulty rows
found/_awatt/summary.json           written last, when all parts are finished
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from awatt.detector.bulk import AlreadyCompleteError, Summary
from awatt.errors import AwattError
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
    """What was found in a part. ``lines`` are those read, the ``header`` lines before the part included."""

    rows: int = 0
    none: int = 0
    aspects: dict[str, int] = field(default_factory=dict)
    n_faults: int = 0
    lines: int = 0
    header: int = 0
    faults: list[tuple[int, str]] = field(default_factory=list)  # the first ones, with the line within the part

    def add_to(self, summary: Summary) -> None:
        """Add the counts; the faults wait until all parts are finished, and their lines are known."""
        summary.rows += self.rows
        summary.none += self.none
        summary.n_faults += self.n_faults
        for aspect, count in self.aspects.items():
            summary.aspects[aspect] += count


class Job:
    """A job in the folder ``out``, new or resumed. ``part_bytes`` is the size of a part, 0 before `start`."""

    def __init__(self, out: str, settings: dict[str, object], overwrite: bool, resume: bool) -> None:
        self.out = absolute(out)
        self.folder = f"{self.out}/{REPORTS}"
        self.settings = json.loads(json.dumps(settings))  # tuples become lists, as when they are read
        self.part_bytes: int = 0
        if not is_remote(out) and os.path.exists(self.out) and not os.path.isdir(self.out):
            raise AwattError(f"{out}: this is a file, but --engine ray writes a folder. Name a folder.")
        found, names = read_bytes(f"{self.folder}/{JOB}"), list_folder(self.out)
        complete = read_bytes(f"{self.folder}/{SUMMARY}") is not None
        if found is None and names:
            raise AwattError(f"{out}: this folder is not empty and holds no job. Name a new folder.")
        if found is None:
            return
        if resume and not (complete and overwrite):
            self._resume(json.loads(found))
            if complete:
                raise AlreadyCompleteError(f"{out}: already complete, there is nothing to resume.")
        elif overwrite:
            remove_files(self.folder, list_folder(self.folder))
            remove_files(self.out, [name for name in names if name.startswith("part-")])
        else:
            advice = "Use --resume to continue it, --overwrite to start over, or another folder."
            raise AwattError(f"{out}: already holds a job. {advice}")

    def _resume(self, job: dict[str, Any]) -> None:
        for name, value in job["settings"].items():
            if self.settings.get(name) != value:
                advice = "Use the same again, or start over with --overwrite."
                raise AwattError(f"{self.out}: this job was started with another {name}. {advice}")
        self.part_bytes = job["part_bytes"]

    def start(self, part_bytes: int) -> None:
        """Write down the settings, unless the job is resumed."""
        make_folder(self.folder)
        if not self.part_bytes:
            self.part_bytes = part_bytes
            job = {"settings": self.settings, "part_bytes": part_bytes}
            write_bytes(f"{self.folder}/{JOB}", json.dumps(job, indent=1).encode())

    def reports(self) -> Iterator[tuple[str, PartReport]]:
        """The names of the finished parts, and their reports."""
        for name in list_folder(self.folder):
            if name.startswith("part-") and name.endswith(".json"):
                with suppress(ValueError, TypeError):  # not written completely: the part is processed again
                    report = PartReport(**json.loads(read_bytes(f"{self.folder}/{name}") or b""))
                    yield name.removesuffix(".json"), report

    def finish(self, summary: Summary) -> None:
        """Mark the job as complete."""
        content = json.dumps(asdict(summary), indent=1, ensure_ascii=False)
        write_bytes(f"{self.folder}/{SUMMARY}", content.encode())
