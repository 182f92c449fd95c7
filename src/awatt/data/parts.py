"""Files in parts that are read apart: bytes of a file of lines, row groups of a Parquet file, or all of any other.

A part holds the lines that begin within its bytes. The borders are found by line feeds when it is opened, so that files
are cut up without being read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, cast

from awatt.data.formats import format_of
from awatt.data.storage import open_file

BY_BYTES = ("jsonl", "txt")  # not CSV: a line feed may be within a cell, and only reading from the beginning tells


@dataclass(frozen=True, slots=True)
class Part:
    """From ``first`` to before ``last``: bytes, or row groups of Parquet. Without ``last`` it is the whole file."""

    path: str
    first: int = 0
    last: int | None = None


@dataclass(frozen=True, slots=True)
class OpenPart:
    """A part's bytes. ``begins``: the file's beginning is in it. ``row_groups`` are those to read of Parquet."""

    stream: IO[bytes]
    begins: bool = True
    row_groups: list[int] | None = None


def split_file(path: str, size: int, most: int, format: str | None = None) -> list[Part]:
    """Parts of about ``most`` bytes. CSV, TSV and gzipped files stay whole."""
    kind, compressed = format_of(path, format)
    if size <= most or compressed or kind not in (*BY_BYTES, "parquet"):
        return [Part(path)]
    if kind == "parquet":
        return list(_split_parquet(path, most))
    borders = [*range(0, size, most), size]
    return [Part(path, first, last) for first, last in pairwise(borders)]


def _split_parquet(path: str, most: int) -> Iterator[Part]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    with open_file(path) as stream:
        try:
            metadata = ParquetFile(stream).metadata
        except (OSError, ArrowException):  # reading says what is wrong with it
            yield Part(path)
            return
        first, size = 0, 0
        for number in range(metadata.num_row_groups):
            size += metadata.row_group(number).total_byte_size
            if size >= most or number == metadata.num_row_groups - 1:
                yield Part(path, first, number + 1)
                first, size = number + 1, 0


@contextmanager
def open_part(part: Part, format: str | None = None) -> Iterator[OpenPart]:
    """For `awatt.data.records.read_records`."""
    with open_file(part.path) as stream:
        if part.last is None:
            yield OpenPart(stream)
        elif format_of(part.path, format)[0] == "parquet":
            yield OpenPart(stream, row_groups=list(range(part.first, part.last)))
        else:
            lines = Lines(stream, _line_start(stream, part.first), _line_start(stream, part.last))
            yield OpenPart(cast("IO[bytes]", lines), begins=part.first == 0)


def _line_start(stream: IO[bytes], place: int) -> int:
    """Where the first line begins at or after a byte."""
    if place == 0:
        return 0
    stream.seek(place - 1)
    while chunk := stream.read(2**16):
        if (feed := chunk.find(b"\n")) >= 0:
            return stream.tell() - len(chunk) + feed + 1
    return stream.tell()


class Lines(io.BufferedReader):
    """The bytes of a stream from ``first`` to before ``last``. ``count`` is the number of lines read so far."""

    def __init__(self, stream: IO[bytes], first: int, last: int) -> None:
        self._counted = _Counted(stream, first, last)
        super().__init__(self._counted, 2**18)

    @property
    def count(self) -> int:
        """Line ends: line feed, carriage return, or both together."""
        return self._counted.lines


class _Counted(io.RawIOBase):
    def __init__(self, stream: IO[bytes], first: int, last: int) -> None:
        self.stream, self.left, self.lines, self.ended_in_return = stream, max(0, last - first), 0, False
        stream.seek(first)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        chunk = self.stream.read(min(len(buffer), self.left))
        buffer[: len(chunk)] = chunk
        self.left -= len(chunk)
        self.lines += chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
        self.lines -= self.ended_in_return and chunk.startswith(b"\n")
        self.ended_in_return = chunk.endswith(b"\r")
        return len(chunk)
