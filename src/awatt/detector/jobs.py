"""Detection by several processes of this machine: batches go out, tables come back, in order.

A worker is a new process with one thread, which is given the detector once. It ends with its connection, so that no
worker outlives a killed command.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from awatt.detector.columns import Batch, DetectedBatch, TableMaker
from awatt.errors import AwattError

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

Key = TypeVar("Key")
Keyed = Iterator[tuple[Key, DetectedBatch]]

AHEAD = 2  # batches per worker that wait for it, or to be written: a worker never waits, and memory stays small
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class _Failure(NamedTuple):
    """An error of a worker that the user can fix."""

    message: str


@contextmanager
def open_jobs(
    detector: AspectDetector, make_tables: TableMaker, jobs: int
) -> Iterator[Callable[[Iterable[tuple[Key, Batch]]], Keyed[Key]]]:
    """A function that detects in batches, each with a key, in order: here, or with ``jobs`` > 1 in as many workers."""
    if jobs == 1:
        yield lambda batches: ((key, make_tables.detect(detector, batch)) for key, batch in batches)
        return
    with ExitStack() as stack:
        free: SimpleQueue[Connection] = SimpleQueue()
        for connection in _start(detector, make_tables, jobs, stack):
            free.put(connection)
        threads = stack.enter_context(ThreadPoolExecutor(jobs))  # each waits for a worker
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)

        def ask(batch: Batch) -> DetectedBatch:
            connection = free.get()
            try:
                connection.send(batch)
                found = connection.recv()
            except (EOFError, OSError) as error:
                advice = "Is there enough memory? Use fewer --jobs, with --resume if the output is a file."
                raise AwattError(f"a worker process ended before its work was done. {advice}") from error
            finally:
                free.put(connection)
            if isinstance(found, _Failure):
                raise AwattError(found.message)
            return found

        def detect(batches: Iterable[tuple[Key, Batch]]) -> Keyed[Key]:
            waiting: deque[tuple[Key, Future[DetectedBatch]]] = deque()
            for key, batch in batches:
                waiting.append((key, threads.submit(ask, batch)))
                if len(waiting) > AHEAD * jobs:
                    first, found = waiting.popleft()
                    yield first, found.result()
            while waiting:
                first, found = waiting.popleft()
                yield first, found.result()

        yield detect


def _start(detector: AspectDetector, make_tables: TableMaker, jobs: int, stack: ExitStack) -> Iterator[Connection]:
    context = get_context("spawn")  # a copy of this process could inherit locks that are held
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, detector, make_tables), daemon=True)
            process.start()
            theirs.close()  # so that it ends with the worker
            stack.callback(_end, process, ours)
            yield ours
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end(process: Any, connection: Connection) -> None:
    connection.close()
    process.terminate()
    process.join()


def _work(connection: Connection, detector: AspectDetector, make_tables: TableMaker) -> None:
    """Answer until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its workers itself
    with suppress(EOFError, OSError):
        while True:
            batch = connection.recv()
            try:
                found: object = make_tables.detect(detector, batch)
            except AwattError as error:
                found = _Failure(str(error))
            connection.send(found)
