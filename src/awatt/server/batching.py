"""Inference off the event loop: waiting requests are combined into batches, and the queue is bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from awatt.detector.finding import CHUNK
from awatt.errors import plural
from awatt.server.errors import BusyError
from awatt.server.limits import Limits

MAX_BATCH = CHUNK  # texts of a batch: as many as the detector computes at once
MAX_CHARACTERS = 100_000  # of a batch: some tenths of a second

Result = TypeVar("Result")
Detect = Callable[[list[str], Any, bool], list[Any]]


@dataclass(eq=False)
class _Job:
    texts: list[str]
    threshold: Any
    words: bool
    result: asyncio.Future[list[Any]] = field(repr=False)
    detect: Detect | None = None  # since its first portion: one request is answered by one state of the project
    found: list[Any] = field(default_factory=list, repr=False)  # so far
    begun: int = 0  # texts whose detections are found or being computed

    def fits(self, other: _Job) -> bool:
        """Whether both can be computed in one call."""
        return (self.detect, self.words, self.threshold) == (other.detect, other.words, other.threshold)

    def take(self, texts: int, characters: int) -> list[str]:
        """The next texts that are within these numbers; the first of a batch always is."""
        taken: list[str] = []
        for text in self.texts[self.begun : self.begun + texts]:
            characters -= len(text)
            if characters < 0:
                break
            taken.append(text)
        return taken


class Batcher:
    """One worker thread. Requests that arrive while it computes, and have the same settings, form the next batch.

    It never waits for a batch to fill: an idle server answers a single request immediately. A large request is computed
    in portions, and after each the others have their turn. ``freeze`` returns the detect function for the project as it
    is now.
    """

    def __init__(self, freeze: Callable[[], Detect], limits: Limits) -> None:
        self._freeze, self._limits = freeze, limits
        self._queue: deque[_Job] = deque()
        self._waiting = self._waiting_characters = 0
        self._worker = ThreadPoolExecutor(1, "awatt-detect")
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, texts: list[str], threshold: Any = None, words: bool = True) -> list[Any]:
        """The detections of the texts, when it is their turn."""
        if self._closed:
            raise BusyError("the server is stopping. Try again in a moment.")
        characters = sum(map(len, texts))
        full = self._waiting + len(texts) > self._limits.waiting
        if self._waiting and (full or self._waiting_characters + characters > self._limits.waiting_characters):
            waiting = f"{plural(self._waiting, 'text')} with {plural(self._waiting_characters, 'character')}"
            raise BusyError(f"the queue is full (waiting: {waiting}). Try again in a moment.")
        job = _Job(texts, threshold, words, asyncio.get_running_loop().create_future())
        self._waiting += len(texts)
        self._waiting_characters += characters
        self._queue.append(job)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        try:
            return await job.result
        finally:
            self._waiting -= len(texts)
            self._waiting_characters -= characters

    async def _work(self) -> None:
        while self._queue:
            portions = self._next_batch()
            if portions:
                await self._compute(portions)
            self._queue.extend(job for job, _ in portions if not job.result.done())  # to the end: others come first

    def _next_batch(self) -> list[tuple[_Job, list[str]]]:
        """Jobs with the texts of each that are computed now."""
        portions: list[tuple[_Job, list[str]]] = []
        texts, characters = MAX_BATCH, MAX_CHARACTERS
        while self._queue and texts > 0 and (not portions or self._queue[0].fits(portions[0][0])):
            job = self._queue[0]
            if job.result.done():  # the client has disconnected
                self._queue.popleft()
                continue
            taken = job.take(texts, characters) or ([] if portions else job.texts[job.begun : job.begun + 1])
            if not taken and job.texts:
                break
            portions.append((self._queue.popleft(), taken))
            job.begun += len(taken)
            texts -= len(taken)
            characters -= sum(map(len, taken))
        return portions

    async def _compute(self, portions: list[tuple[_Job, list[str]]]) -> None:
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._worker, self._detect, portions)
        except Exception as error:
            for job, _ in portions:
                if not job.result.done():
                    job.result.set_exception(error)
            return
        start = 0
        for job, taken in portions:
            job.found += found[start : start + len(taken)]
            start += len(taken)
            if not job.result.done() and job.begun == len(job.texts):
                job.result.set_result(job.found)

    def _detect(self, portions: list[tuple[_Job, list[str]]]) -> list[Any]:
        first = portions[0][0]
        detect = first.detect or self._freeze()
        for job, _ in portions:
            job.detect = detect
        return detect([text for _, taken in portions for text in taken], first.threshold, first.words)

    async def close(self) -> None:
        """Finish what is waiting, and accept no more."""
        self._closed = True
        if self._task is not None:
            await self._task
        self._worker.shutdown(wait=True)


class Pool:
    """A few threads, with a limit on the calls that may run or wait."""

    def __init__(self, name: str, threads: int, limit: int) -> None:
        self._limit, self._running = limit, 0
        self._worker = ThreadPoolExecutor(threads, f"awatt-{name}")

    async def run(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """The result of a call, run in a thread."""
        if self._running >= self._limit:
            running = f"{plural(self._running, 'computation')} running or waiting"
            raise BusyError(f"the server is busy: it has {running}. Try again in a moment.")
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, call, *arguments)
        finally:
            self._running -= 1

    def close(self) -> None:
        """Wait for what is running; what has not begun is dropped."""
        self._worker.shutdown(wait=True, cancel_futures=True)
