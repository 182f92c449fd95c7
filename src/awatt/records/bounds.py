"""Bounds on what is read from one file, checked while it is read: a few bytes can decompress to gigabytes."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_memory_lock = threading.RLock()


@dataclass(frozen=True)
class Bounds:
    """The most that may be read."""

    rows: int  # bad ones included
    bytes: int  # after decompression
    seconds: float


@dataclass
class Meter:
    """Counts what is read, and raises once it is too much: ``error`` makes the exception from a message."""

    bounds: Bounds
    error: Callable[[str], Exception]
    rows: int = 0
    bytes: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, rows: int = 0, size: int = 0) -> None:
        """Count rows and bytes."""
        self.rows += rows
        self.bytes += size
        if self.rows > self.bounds.rows:
            raise self.error(f"has more than {self.bounds.rows:,} rows. Split the file.")
        if self.bytes > self.bounds.bytes:
            raise self.error(f"has more than {self.bounds.bytes:,} bytes after decompression. Split the file.")
        if time.monotonic() > self.began + self.bounds.seconds:
            raise self.error(f"could not be read within {self.bounds.seconds:g} seconds. Split the file.")


class CountedStream(io.BufferedIOBase):
    """A stream whose bytes are counted as they are read."""

    def __init__(self, stream: IO[bytes], meter: Meter) -> None:
        self._stream, self._meter = stream, meter

    def readable(self) -> bool:
        """It can be read, and nothing else."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Some bytes at most, all by default; in portions, so that the meter can stop it."""
        if size is not None and size >= 0:
            return self._counted(self._stream.read(size))
        return b"".join(iter(lambda: self._counted(self._stream.read(2**20)), b""))

    def read1(self, size: int = -1, /) -> bytes:
        """What one read gives, 64 kB at most."""
        return self._counted(self._stream.read(min(size, 2**16) if size >= 0 else 2**16))

    def _counted(self, data: bytes) -> bytes:
        self._meter.add(size=len(data))
        return data


@contextmanager
def limited_memory(size: int) -> Iterator[None]:
    """Within, the process may take ``size`` bytes more than it has now; MemoryError if that is not enough.

    For a single call. One thread at a time: the limit is the process's. Only Linux can do this; elsewhere nothing is
    limited.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    with _memory_lock:
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_DATA)
        limits = [each for each in (used + size, *before) if each != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, before)
