"""How far a load is: reading, then detecting. Another request asks for it, or cancels it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from awatt.server.errors import ServiceError


class CancelledError(ServiceError):
    """The user has cancelled the work."""

    status, code = 409, "cancelled"


@dataclass(frozen=True)
class Step:
    """What is being done: "reading" rows, "detecting" in sentences, or nothing (""); ``total`` is 0 while unknown."""

    doing: str = ""
    done: int = 0
    total: int = 0


class Work:
    """One piece of work: how far it is, and whether it is to stop."""

    def __init__(self, doing: str, total: int = 0) -> None:
        self.step, self.cancelled = Step(doing, 0, total), False

    def reach(self, done: int) -> None:
        """Say how many are done; raise if the user has cancelled it."""
        if self.cancelled:
            raise CancelledError("cancelled.")
        self.step = Step(self.step.doing, done, self.step.total)


class Progress:
    """The work that is running, often one piece, but a load and a detection can overlap; safe with several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Work] = []
        self._ended = False

    @property
    def step(self) -> Step:
        """What is being done now, of several the piece that was begun last."""
        with self._lock:
            return self._running[-1].step if self._running else Step()

    @contextmanager
    def work(self, doing: str, total: int = 0) -> Iterator[Work]:
        """While this is being done."""
        work = Work(doing, total)
        with self._lock:
            self._running.append(work)
            work.cancelled = self._ended
        try:
            yield work
        finally:
            with self._lock:
                self._running.remove(work)

    def cancel(self) -> None:
        """Ask the running work to stop at its next step."""
        with self._lock:
            for work in self._running:
                work.cancelled = True

    def end(self) -> None:
        """Ask this and all later work to stop: the server is being stopped."""
        with self._lock:
            self._ended = True
        self.cancel()
