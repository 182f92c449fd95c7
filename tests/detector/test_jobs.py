"""Several processes: the order of the batches, all of them used, and a worker that ends too early."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from awatt.detector.columns import Batch, Counts, DetectedBatch
from awatt.detector.jobs import open_jobs
from awatt.errors import AwattError


class Detecting:
    """Stands for the detector and its tables: says which process was asked."""

    def __init__(self) -> None:
        self.command = os.getpid()

    def detect(self, detector: Any, batch: Batch) -> DetectedBatch:
        if batch.texts == ["end"] and os.getpid() != self.command:
            os._exit(1)
        if batch.texts == ["wrong"]:
            raise ZeroDivisionError("by nothing")
        if batch.texts == ["deep answer"] and os.getpid() != self.command:
            return DetectedBatch([], nested(2000))
        return DetectedBatch([], Counts(os.getpid(), 0, 0, [len(text) for text in batch.texts], {}))


def nested(depth: int) -> Any:
    """A list in a list in a list, which cannot be passed to another process."""
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def detect(texts: list[str], jobs: int) -> list[tuple[int, Counts]]:
    stand_in: Any = Detecting()
    with open_jobs(stand_in, stand_in, jobs) as found:
        return [(key, batch.counts) for key, batch in found((len(text), Batch([text], [])) for text in texts)]


@pytest.mark.parametrize("jobs", [2, 4])
def test_batches_come_back_in_order_from_the_command_and_its_workers(jobs: int) -> None:
    found = detect(["x" * number for number in range(400)], jobs)
    assert [key for key, _ in found] == list(range(400))
    assert [counts.aspects for _, counts in found] == [[number] for number in range(400)]
    processes = {counts.rows for _, counts in found}
    assert os.getpid() in processes
    assert 1 < len(processes) <= jobs


def test_fewer_batches_than_workers_can_take() -> None:
    assert [key for key, _ in detect(["a", "bb"], jobs=4)] == [1, 2]
    assert detect([], jobs=4) == []


def test_a_worker_that_ends_too_early_is_reported() -> None:
    with pytest.raises(AwattError, match="a worker process ended before its work was done"):
        detect(list(chain(["a"], ["end"] * 2, "b" * 20)), jobs=2)


def test_an_error_of_a_worker_is_that_of_the_command() -> None:
    with pytest.raises(ZeroDivisionError, match="by nothing"):
        detect(["a", "wrong", *"b" * 20], jobs=2)


def test_what_cannot_be_passed_to_a_worker_or_back_is_said_and_does_not_hang() -> None:
    stand_in: Any = Detecting()
    with (
        pytest.raises(AwattError, match=r"cannot be passed to another process \(.*recursion.*\)\. Use --jobs 1\."),
        open_jobs(stand_in, stand_in, 2) as found,
    ):
        list(found([(0, Batch(["a"], [{"deep": nested(2000)}]))]))
    with pytest.raises(AwattError, match="a row cannot be passed to another process"):
        detect(["deep answer"], jobs=2)


MASK = """
import os
import signal

from awatt.detector.columns import Batch, Counts, DetectedBatch
from awatt.detector.jobs import open_jobs


class Masks:
    def detect(self, detector, batch):
        blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return DetectedBatch([], Counts(os.getpid(), int(blocked), 0, [], {}))


if __name__ == "__main__":
    with open_jobs(Masks(), Masks(), 2) as found:
        counts = [batch.counts for _, batch in found((number, Batch(["a"], [])) for number in range(10))]
    print({each.none for each in counts if each.rows != os.getpid()})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal masks")
def test_ctrl_c_while_the_first_worker_starts_printed_its_traceback(tmp_path: Path) -> None:
    (script := tmp_path / "mask.py").write_text(MASK)  # a new process: in this one the resource tracker may run already
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert found.stdout == "{1}\n"
