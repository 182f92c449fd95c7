"""Files in parts that are read apart: bytes of a file of lines or cells, row groups of Parquet, or all of a gzip.

A part of JSONL or text holds the lines that begin within its bytes: the borders are found by line feeds when it is
opened, and files are cut up without being read. In CSV and TSV a line feed may be within a cell, which only reading
from the beginning tells: their rows are counted out first, and each part is read with the header before it.
"""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import IO, cast

from awatt.records.format_readers import OpenPart
from awatt.records.formats import DELIMITERS, LONGEST_LINE, format_of, long_cells
from awatt.scale.storage import open_file


@dataclass(frozen=True, slots=True)
class Part:
    """From ``first`` to before ``last``: bytes, or row groups of Parquet. Without ``last`` it is the whole file.

    ``header`` bytes of the file's beginning are read before it.
    """

    path: str
    first: int = 0
    last: int | None = None
    header: int = 0


def split_file(path: str, size: int, most: int, format: str | None = None) -> list[Part]:
    """Parts of about ``most`` bytes. Gzipped files stay whole."""
    kind, compressed = format_of(path, format)
    if size <= most or compressed:
        return [Part(path)]
    if kind == "parquet":
        return list(_split_parquet(path, most))
    if kind in DELIMITERS:
        return list(_split_delimited(path, size, most, DELIMITERS[kind]))
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


def _split_delimited(path: str, size: int, most: int, delimiter: str) -> Iterator[Part]:
    """Borders where `awatt.records.reader` begins a row, also after rows that cannot be split."""
    header = first = place = 0

    def lines() -> Iterator[str]:
        nonlocal place
        for line in iter(partial(text.readline, LONGEST_LINE), ""):
            place += len(line) if line.isascii() else len(line.encode(errors="surrogateescape"))
            yield line

    with open_file(path) as stream, long_cells():
        place = len(BOM_UTF8) if stream.read(len(BOM_UTF8)) == BOM_UTF8 else 0
        stream.seek(place)
        # As UTF-8 and not byte by byte, because csv limits a cell by its characters.
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="")
        reader = csv.reader(lines(), delimiter=delimiter, strict=True)
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error:
                cells = []
            if not header:
                header = place if cells else 0
            elif place - first >= most and place < size:
                yield Part(path, first, place, header if first else 0)
                first = place
        text.detach()
    yield Part(path, first, size, header if first else 0)


@contextmanager
def open_part(part: Part, format: str | None = None) -> Iterator[OpenPart]:
    """For `awatt.records.reader.read_records`."""
    with open_file(part.path) as stream:
        if part.last is None:
            yield OpenPart(stream)
        elif format_of(part.path, format)[0] == "parquet":
            yield OpenPart(stream, row_groups=list(range(part.first, part.last)))
        elif format_of(part.path, format)[0] in DELIMITERS:
            yield OpenPart(cast("IO[bytes]", Lines(stream, part.first, part.last, part.header)))
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
    """The bytes of a stream from ``first`` to before ``last``, after the ``header`` bytes of its beginning."""

    def __init__(self, stream: IO[bytes], first: int, last: int, header: int = 0) -> None:
        stream.seek(0)
        self.header = _count_lines(stream.read(header))  # lines
        self._counted = _Counted(stream, [(0, header), (first, last)])
        super().__init__(self._counted, 2**18)

    @property
    def count(self) -> int:
        """Lines that have been read so far, those of the header as well."""
        return self._counted.lines


def _count_lines(chunk: bytes) -> int:
    """Line ends: line feed, carriage return, or both together."""
    return chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")


class _Counted(io.RawIOBase):
    def __init__(self, stream: IO[bytes], ranges: list[tuple[int, int]]) -> None:
        self.stream, self.ranges, self.lines, self.ended_in_return = stream, ranges, 0, False
        self.left = 0

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
