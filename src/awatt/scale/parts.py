"""Files in parts that are read independently: byte ranges of lines or cells, row groups of Parquet, or a whole gzip.

Why not Ray Data's readers: a part must have the rows, the order and the line numbers of the local reader.

A part of JSONL or text holds the lines that begin within its bytes: such a file is split without reading it, and the
line feeds are looked for when a part is opened. In CSV and TSV a line feed may be part of a cell, so the file is read
once from the beginning to find where rows begin, and each part is read with the header before it.
"""

from __future__ import annotations

import io
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, cast

from awatt.records.formats import DELIMITERS, allow_long_cells, format_of, import_pyarrow
from awatt.records.lines import LineReader, RowSplitter
from awatt.records.source import OpenPart
from awatt.scale.storage import open_file


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes, or row groups of Parquet, from ``first`` to before ``last``; the whole file if ``last`` is None.

    The first ``header`` bytes of the file are read before them. ``size`` is that of the part, in bytes.
    """

    path: str
    first: int = 0
    last: int | None = None
    header: int = 0
    size: int = field(default=0, compare=False)


def split_file(path: str, size: int, part_bytes: int, format: str | None = None) -> list[Part]:
    """Parts of about ``part_bytes`` bytes each. Gzipped files are not split."""
    kind, compressed = format_of(path, format)
    if size <= part_bytes or compressed:
        return [Part(path, size=size)]
    if kind == "parquet":
        return list(_split_parquet(path, part_bytes))
    if kind in DELIMITERS:
        return list(_split_delimited(path, size, part_bytes, DELIMITERS[kind]))
    bounds = [*range(0, size, part_bytes), size]
    return [Part(path, first, last, size=last - first) for first, last in pairwise(bounds)]


def _split_parquet(path: str, part_bytes: int) -> Iterator[Part]:
    pyarrow = import_pyarrow()
    with open_file(path) as stream:
        try:
            metadata = pyarrow.parquet.ParquetFile(stream).metadata
        except (OSError, pyarrow.ArrowException):  # the reader reports what is wrong
            yield Part(path)
            return
        first, size = 0, 0
        for number in range(metadata.num_row_groups):
            size += metadata.row_group(number).total_byte_size
            if size >= part_bytes or number == metadata.num_row_groups - 1:
                yield Part(path, first, number + 1, size=size)
                first, size = number + 1, 0


def _split_delimited(path: str, size: int, part_bytes: int, delimiter: str) -> Iterator[Part]:
    """Split where `awatt.records.reader` begins a row, also after rows that it cannot parse."""
    header = first = 0
    with open_file(path) as stream, allow_long_cells():
        place = len(BOM_UTF8) if stream.read(len(BOM_UTF8)) == BOM_UTF8 else 0
        stream.seek(place)
        # Decoded, because the csv module limits the length of a cell in characters, not bytes.
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="")
        for row in RowSplitter(LineReader(text), delimiter):
            start = place + row.lines[0].skipped
            if header and start - first >= part_bytes:
                yield Part(path, first, start, header if first else 0, start - first)
                first = start
            place += sum(line.skipped + len(line.text.encode(errors="surrogateescape")) for line in row.lines)
            header = header or (place if row.cells else 0)
        text.detach()
    yield Part(path, first, size, header if first else 0, size - first)


@contextmanager
def open_part(part: Part, format: str | None = None) -> Iterator[OpenPart]:
    """Open a part for `awatt.records.reader.read_rows`."""
    with open_file(part.path) as stream:
        kind, _ = format_of(part.path, format)
        if part.last is None:
            yield OpenPart(stream)
        elif kind == "parquet":
            yield OpenPart(stream, row_groups=list(range(part.first, part.last)))
        elif kind in DELIMITERS:
            yield OpenPart(cast("IO[bytes]", Lines(stream, part.first, part.last, part.header)))
        else:
            lines = Lines(stream, _line_start(stream, part.first), _line_start(stream, part.last))
            yield OpenPart(cast("IO[bytes]", lines), at_start=part.first == 0)


def _line_start(stream: IO[bytes], place: int) -> int:
    """The position of the first line that begins at ``place`` or later."""
    if place == 0:
        return 0
    stream.seek(place - 1)
    while chunk := stream.read(2**16):
        if (feed := chunk.find(b"\n")) >= 0:
            return stream.tell() - len(chunk) + feed + 1
    return stream.tell()


class Lines(io.BufferedReader):
    """The first ``header`` bytes of a stream, then those from ``first`` to before ``last``; counts their lines."""

    def __init__(self, stream: IO[bytes], first: int, last: int, header: int = 0) -> None:
        stream.seek(0)
        self.header = _count_lines(stream.read(header))  # lines
        self._counted = _Counted(stream, [(0, header), (first, last)])
        super().__init__(self._counted, 2**18)

    @property
    def count(self) -> int:
        """The number of lines read so far, those of the header included."""
        return self._counted.lines


def _count_lines(chunk: bytes) -> int:
    """The number of line ends: a line feed, a carriage return, or both together."""
    return chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")


class _Counted(io.RawIOBase):
    """Reads some byte ranges of a stream, one after the other, and counts the line ends."""

    def __init__(self, stream: IO[bytes], ranges: list[tuple[int, int]]) -> None:
        self.stream, self.ranges = stream, ranges
        self.lines, self.left, self.ended_in_return = 0, 0, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self.left and self.ranges:
            first, last = self.ranges.pop(0)
            self.stream.seek(first)
            self.left = max(0, last - first)
        chunk = self.stream.read(min(len(buffer), self.left))
        buffer[: len(chunk)] = chunk
        self.left -= len(chunk)
        self.lines += _count_lines(chunk)
        self.lines -= self.ended_in_return and chunk.startswith(b"\n")
        self.ended_in_return = chunk.endswith(b"\r")
        return len(chunk)
