"""Several processes: the order of the batches, all of them used, and a worker that ends too early."""

from __future__ import annotations

import os
from itertools import chain
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
        return DetectedBatch([], Counts(os.getpid(), 0, 0, [len(text) for text in batch.texts], {}))


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
