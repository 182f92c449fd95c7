"""Inference off the event loop: waiting requests are combined into batches, and the queue is bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from awatt.detector.results import Detection
from awatt.server.limits import BusyError, Limits

MAX_BATCH = 128  # texts of a batch combined from several requests: as many as the detector computes at once

Result = TypeVar("Result")
Detect = Callable[[list[str], Any, bool], list[Detection]]


@dataclass
class _Job:
    texts: list[str]
    threshold: Any
    words: bool
    result: asyncio.Future[list[Detection]] = field(repr=False)

    def fits(self, other: _Job) -> bool:
        """Whether both can be computed in one call."""
        return self.words == other.words and self.threshold == other.threshold


class Batcher:
    """One worker thread. Requests that arrive while it computes, and have the same settings, form the next batch.

    It never waits for a batch to fill: an idle server answers a single request immediately.
    """

    def __init__(self, detect: Detect, limits: Limits) -> None:
        self._detect, self._limits = detect, limits
        self._queue: deque[_Job] = deque()
        self._waiting = 0
        self._worker = ThreadPoolExecutor(1, "awatt-detect")
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, texts: list[str], threshold: Any = None, words: bool = True) -> list[Detection]:
        """The detections of the texts, when it is their turn."""
        if self._closed:
            raise BusyError("the server is stopping. Try again in a moment.")
        if self._waiting and self._waiting + len(texts) > self._limits.waiting:
            raise BusyError(f"{self._waiting:,} texts are already waiting. Try again in a moment.")
        job = _Job(texts, threshold, words, asyncio.get_running_loop().create_future())
        self._waiting += len(texts)
        self._queue.append(job)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await job.result

    async def _work(self) -> None:
        while self._queue:
            jobs = self._next_batch()
            try:
                await self._compute(jobs)
            finally:
                self._waiting -= sum(len(job.texts) for job in jobs)

    def _next_batch(self) -> list[_Job]:
        jobs = [self._queue.popleft()]
        count = len(jobs[0].texts)
        while self._queue and self._queue[0].fits(jobs[0]) and count + len(self._queue[0].texts) <= MAX_BATCH:
            jobs.append(self._queue.popleft())
            count += len(jobs[-1].texts)
        return jobs

    async def _compute(self, jobs: list[_Job]) -> None:
        jobs = [job for job in jobs if not job.result.done()]  # done: the client has disconnected
        if not jobs:
            return
        texts = [text for job in jobs for text in job.texts]
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._worker, self._detect, texts, jobs[0].threshold, jobs[0].words)
        except Exception as error:
            for job in jobs:
                if not job.result.done():
                    job.result.set_exception(error)
            return
        start = 0
        for job in jobs:
            if not job.result.done():
                job.result.set_result(found[start : start + len(job.texts)])
            start += len(job.texts)

    async def close(self) -> None:
        """Finish what is waiting, and accept no more."""
        self._closed = True
        if self._task is not None:
            await self._task
        self._worker.shutdown(wait=True)


class Pool:
    """A few threads for everything else, with a limit on the calls that may wait."""

    def __init__(self, limits: Limits, threads: int = 4) -> None:
        self._limits, self._running = limits, 0
        self._worker = ThreadPoolExecutor(threads, "awatt-work")

    async def run(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """The result of a call, run in a thread."""
        if self._running >= self._limits.jobs:
            raise BusyError(f"{self._running} computations are already running or waiting. Try again in a moment.")
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, call, *arguments)
        finally:
            self._running -= 1

    def close(self) -> None:
        """Wait for what is running."""
        self._worker.shutdown(wait=True)
