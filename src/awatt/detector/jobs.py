"""Detection by several processes of this machine: batches go out, tables come back, in order.

The command is one of them: it reads, writes, and detects whenever the others have enough to do. A worker is a new
process, which is given the detector once. It ends with its connection, so that no worker outlives a killed command.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from awatt.detector.columns import Batch, DetectedBatch, TableMaker
from awatt.errors import AwattError
from awatt.files import interrupts_blocked
from awatt.records.formats import reason

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

Key = TypeVar("Key")
Keyed = Iterator[tuple[Key, DetectedBatch]]

AHEAD = 3  # batches that a worker is given at once: it never waits for the next one
MOST_WAITING = 50  # batches that are not yet written: memory stays small
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class _Task(NamedTuple):
    """A batch for any worker."""

    batch: Batch
    found: Future[DetectedBatch]


@contextmanager
def open_jobs(
    detector: AspectDetector, make_tables: TableMaker, jobs: int
) -> Iterator[Callable[[Iterable[tuple[Key, Batch]]], Keyed[Key]]]:
    """A function that detects in batches, each with a key, in order: here, and in ``jobs`` - 1 workers."""
    if jobs == 1:
        yield lambda batches: ((key, make_tables.detect(detector, batch)) for key, batch in batches)
        return
    tasks: SimpleQueue[_Task | None] = SimpleQueue()
    with ExitStack() as stack:
        for connection in _start(detector, make_tables, jobs - 1, stack):
            Thread(target=_hand_out, args=(tasks, connection), daemon=True).start()
            stack.callback(tasks.put, None)

        def detect(batches: Iterable[tuple[Key, Batch]]) -> Keyed[Key]:
            waiting: deque[tuple[Key, Future[DetectedBatch]]] = deque()
            for key, batch in batches:
                found = Future[DetectedBatch]()
                if sum(not each.done() for _, each in waiting) < AHEAD * (jobs - 1):
                    tasks.put(_Task(batch, found))
                else:
                    found.set_result(make_tables.detect(detector, batch))
                waiting.append((key, found))
                while waiting and (waiting[0][1].done() or len(waiting) > MOST_WAITING):
                    first, found = waiting.popleft()
                    yield first, found.result()
            for first, found in waiting:
                yield first, found.result()

        yield detect


def _hand_out(tasks: SimpleQueue[_Task | None], connection: Connection) -> None:
    """Send batches to a worker, a few ahead of its results, until None is queued."""
    given: deque[Future[DetectedBatch]] = deque()
    while True:
        if len(given) < AHEAD:
            with suppress(Empty):
                task = tasks.get(block=not given)
                if task is None:
                    connection.close()  # not in another thread: this one might then read from the next of its number
                    return
                try:
                    connection.send(task.batch)
                except OSError:  # a worker that has ended: the next lines say so
                    pass
                except Exception as error:  # whatever it is, the command must not wait for ever
                    task.found.set_exception(_cannot_be_sent(error))
                    continue
                given.append(task.found)
                continue
        try:
            found = connection.recv()
        except (EOFError, OSError):
            advice = "Is there enough memory? Use fewer --jobs, with --resume if the output is a file."
            found = AwattError(f"a worker process ended before its work was done. {advice}")
        except Exception as error:
            found = error
        if isinstance(found, Exception):
            given.popleft().set_exception(found)
        else:
            given.popleft().set_result(found)


def _cannot_be_sent(error: Exception) -> AwattError:
    return AwattError(f"a row cannot be passed to another process ({reason(error)}). Use --jobs 1.")


def _start(detector: AspectDetector, make_tables: TableMaker, jobs: int, stack: ExitStack) -> Iterator[Connection]:
    context = get_context("spawn")  # a copy of this process could inherit locks that are held
    if sys.platform != "win32":
        resource_tracker.ensure_running()  # else the first worker starts it, which lets Ctrl-C through
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, detector, make_tables), daemon=True)
            with interrupts_blocked():
                process.start()
            theirs.close()  # so that it ends with the worker
            stack.callback(_end, process)
            yield ours
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end(process: Any) -> None:
    process.terminate()
    process.join()


def _work(connection: Connection, detector: AspectDetector, make_tables: TableMaker) -> None:
    """Answer until the other end is closed. Batches come and results go while the next one is computed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its workers itself
    received: SimpleQueue[Batch | None] = SimpleQueue()
    results: SimpleQueue[object] = SimpleQueue()
    Thread(target=_receive, args=(connection, received), daemon=True).start()
    sender = Thread(target=_send, args=(connection, results))
    sender.start()
    while (batch := received.get()) is not None:
        try:
            results.put(make_tables.detect(detector, batch))
        except Exception as error:  # is raised by the command, as if it had happened there
            results.put(error)
    results.put(None)
    sender.join()


def _receive(connection: Connection, received: SimpleQueue[Batch | None]) -> None:
    """Take batches, and at last None."""
    with suppress(EOFError, OSError):
        while True:
            received.put(connection.recv())
    received.put(None)


def _send(connection: Connection, results: SimpleQueue[object]) -> None:
    """Return results until there is None."""
    with suppress(OSError):
        while (found := results.get()) is not None:
            try:
                connection.send(found)
            except OSError:
                raise
            except Exception as error:
                connection.send(_cannot_be_sent(error))
