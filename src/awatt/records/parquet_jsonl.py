"""Parquet from someone else as JSONL: read by a process of its own, whose memory and time are limited.

A few hundred bytes of Parquet can decode to gigabytes in many ways (repeated values, lists, prefixes), each within one
call of Arrow that nothing can interrupt. Only the operating system can set a limit to that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import astuple
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from awatt.errors import AwattError
from awatt.records.bounds import Bounds, Meter
from awatt.records.format_readers import READERS
from awatt.records.formats import to_json
from awatt.records.source import OpenPart, Source, raise_error

MAX_MEMORY = 768 * 2**20  # bytes of the process, of which Python and Arrow take about 100 MB
BROKEN, TOO_LARGE = 2, 3  # exit codes; any other means that the memory was not enough
#: one thread, and an allocator without reserves: both would count as memory
SMALL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class _TooLargeError(Exception):
    """The file has more than the bounds allow."""


def parquet_to_jsonl(content: bytes, compressed: bool, meter: Meter, most_rows: int | None = None) -> bytes:
    """The rows, one JSON object per line. ``most_rows`` of them are enough."""
    with TemporaryDirectory(prefix="awatt-") as folder:
        path, out = Path(folder) / "upload", Path(folder) / "rows"
        path.write_bytes(content)
        options = json.dumps([compressed, most_rows, astuple(meter.bounds), MAX_MEMORY])
        command = [sys.executable, "-m", __spec__.name, str(path), str(out), options]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=meter.bounds.seconds,
                env=os.environ | SMALL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise meter.error(f"could not be read within {meter.bounds.seconds:g} seconds. Split the file.") from None
        message = done.stdout.decode()
        if done.returncode == BROKEN:
            raise AwattError(message)
        if done.returncode == TOO_LARGE:
            raise meter.error(message)
        if done.returncode:
            raise meter.error(f"needs more than {MAX_MEMORY // 2**20} MB of memory to be read. Split the file.")
        return out.read_bytes()


class _AnyTable(Source):
    """A file of which no column is that of the text yet."""

    def check_columns(self, names: Sequence[str], line: int) -> None:
        """Raise if a name occurs twice."""
        self.check_names(names, line)


def convert(stream: IO[bytes], out: IO[bytes], compressed: bool, most_rows: int | None, bounds: Bounds) -> None:
    """Write the rows of a Parquet file as JSONL."""
    unzipped, written = Meter(bounds, _TooLargeError), Meter(bounds, _TooLargeError)
    source = _AnyTable("the file", compressed, "", 1024, raise_error, lambda _: None, OpenPart(stream), meter=unzipped)
    with source.opened:
        rows = chain.from_iterable(block.rows for block in READERS["parquet"](source))
        for row in islice(rows, most_rows):
            line = (
                to_json({name: _without_bytes(value) for name, value in row.items()}).encode(errors="replace") + b"\n"
            )
            written.add(rows=1, size=len(line))
            out.write(line)
    if not out.tell():
        raise AwattError("the file has no rows. Choose another file.")


def _without_bytes(value: object) -> object:
    """Replace bytes, which JSON lacks, with their count."""
    if isinstance(value, bytes):
        return {"bytes": len(value)}
    if isinstance(value, dict):
        return {name: _without_bytes(each) for name, each in value.items()}
    return [_without_bytes(each) for each in value] if isinstance(value, list | tuple) else value


def _limit_memory(size: int) -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def main(path: str, out: str, options: str) -> int:
    """Convert a file; the exit code. What is wrong with it goes to stdout."""
    compressed, most_rows, bounds, memory = json.loads(options)
    _limit_memory(memory)
    try:
        with open(path, "rb") as source, open(out, "wb") as target:
            convert(source, target, compressed, most_rows, Bounds(*bounds))
    except (AwattError, _TooLargeError) as error:
        sys.stdout.buffer.write(str(error).encode("utf-8", errors="replace"))
        return BROKEN if isinstance(error, AwattError) else TOO_LARGE
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
