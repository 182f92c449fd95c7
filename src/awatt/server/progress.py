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


class Progress:
    """One piece of work at a time; safe with several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._step, self._cancelled, self._ended = Step(), False, False

    @property
    def step(self) -> Step:
        """What is being done now."""
        return self._step

    @contextmanager
    def work(self, doing: str, total: int = 0) -> Iterator[None]:
        """While this is being done."""
        with self._lock:
            self._step, self._cancelled = Step(doing, 0, total), False
        try:
            yield
        finally:
            with self._lock:
                self._step = Step()

    def reach(self, done: int) -> None:
        """Say how many are done; raise if the user has cancelled it."""
        with self._lock:
            if self._cancelled or self._ended:
                raise CancelledError("cancelled.")
            self._step = Step(self._step.doing, done, self._step.total)

    def cancel(self) -> None:
        """Let what is being done stop soon."""
        with self._lock:
            self._cancelled = bool(self._step.doing)

    def end(self) -> None:
        """Let this and all later work stop soon: the server is being stopped."""
        with self._lock:
            self._ended = True
