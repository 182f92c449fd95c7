"""A reader for each format: it yields blocks of rows, and reports or raises errors, all in the order of the file."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from typing import IO, Any, NamedTuple, cast

from awatt.errors import DataError, plural
from awatt.files import parse_json
from awatt.records.bounds import CountedStream, Meter, limited_memory
from awatt.records.formats import (
    DELIMITERS,
    STANDARD_STREAM,
    InvalidValueError,
    allow_long_cells,
    import_pyarrow,
    reason,
    short_repr,
    to_json,
)
from awatt.records.lines import LineReader, RowSplitter
from awatt.records.parquet_cells import (
    MAX_DECODING,
    MAX_PIECE,
    check_lists,
    dictionary_columns,
    pieces,
    read_cells,
    rows_at_once,
)

_BETWEEN = int.from_bytes(os.urandom(8))
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # written as JSON escapes; one alone is an error


class Block(NamedTuple):
    """Rows, the line at which each begins, and about how many bytes they have together (0: counted with the next)."""

    lines: Sequence[int]
    rows: list[dict[str, object]]
    size: int


OnError = Callable[[DataError], None]


def raise_error(error: DataError) -> None:
    """An ``on_error`` that stops at the first error."""
    raise error


@dataclass(frozen=True, slots=True)
class OpenPart:
    """A part of a file to read: its bytes or, of Parquet, the ``row_groups``. ``at_start``: it begins with the file."""

    stream: IO[bytes]
    at_start: bool = True
    row_groups: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What every reader needs."""

    path: str
    compressed: bool
    text_column: str
    batch_size: int
    on_error: OnError
    on_columns: Callable[[Sequence[str]], None]
    part: OpenPart | None = None
    opened: ExitStack = field(default_factory=ExitStack)  # closed after the last batch, or earlier
    meter: Meter | None = None

    def open(self) -> IO[bytes]:
        """The bytes of the file, decompressed."""
        stream: IO[bytes]
        if self.part is not None:
            stream = self.part.stream
        elif self.path == STANDARD_STREAM:
            stream = sys.stdin.buffer
        else:
            try:
                stream = self.opened.enter_context(open(self.path, "rb"))  # noqa: SIM115 (the stack closes it)
            except OSError as error:
                raise self.read_error(error) from error
        if self.compressed:
            stream = cast("IO[bytes]", self.opened.enter_context(gzip.GzipFile(mode="rb", fileobj=stream)))
            return stream if self.meter is None else cast("IO[bytes]", CountedStream(stream, self.meter))
        return stream

    def error(self, message: str, line: int | None = None, column: str | None = None) -> DataError:
        """An error at a place in this file."""
        return DataError(message, "stdin" if self.path == STANDARD_STREAM else self.path, line, column)

    def read_error(self, error: Exception, line: int | None = None) -> DataError:
        """The error for bytes that cannot be read or decompressed."""
        if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
            advice = "Download the file again, or remove '.gz' from its name if it is not compressed."
            return self.error(f"the gzip data is cut short or broken ({error}). {advice}", line)
        return self.error(f"cannot be read ({reason(error)}). Check its permissions and the disk.", line)

    def check_names(self, names: Sequence[str], line: int) -> None:
        """Raise if a name occurs twice."""
        for name, count in Counter(names).items():
            if count > 1:
                raise self.error("this column name occurs more than once. Rename one of them.", line, name)

    def check_columns(self, names: Sequence[str], line: int) -> None:
        """Raise if a name occurs twice or the text column is missing."""
        self.check_names(names, line)
        if self.text_column not in names:
            found = ", ".join(map(repr, names)) or "none"
            advice = "Name the one that holds the text with --text-column."
            if len(names) == 1 and ";" in names[0]:  # which some spreadsheets write as CSV
                advice = "The cells seem to be separated by ';'. Save the file with commas, or with tabs as .tsv."
            raise self.error(f"no such column; the columns are: {found}. {advice}", line, self.text_column)


@contextmanager
def _open_lines(source: Source) -> Iterator[LineReader]:
    # surrogateescape: a bad byte affects its own line only; newline="": line ends within cells are kept
    encoding = "utf-8-sig" if source.part is None or source.part.at_start else "utf-8"
    text = io.TextIOWrapper(source.open(), encoding=encoding, errors="surrogateescape", newline="")
    source.opened.callback(text.detach)  # otherwise closing it would close stdin
    lines = LineReader(text)
    try:
        yield lines
    except (OSError, EOFError, zlib.error) as error:
        raise source.read_error(error, lines.count + 1) from error


def _line_blocks(source: Source) -> Iterator[tuple[Sequence[int], list[str]]]:
    """Lines with their numbers; a line that cannot be used is reported."""
    with _open_lines(source) as lines:
        while True:
            first = lines.count + 1
            block = lines.take(source.batch_size)
            if block:
                yield range(first, first + len(block)), block
                continue
            for line in lines:
                if line.problem:
                    source.on_error(source.error(line.problem, lines.count))
                else:
                    yield [lines.count], [line.text]
                if not lines.one_by_one:
                    break
            else:
                return


def _read_text(source: Source) -> Iterator[Block]:
    for numbers, lines in _line_blocks(source):
        rows = [(number, line) for number, line in zip(numbers, lines, strict=True) if not line.isspace()]
        yield Block(
            [number for number, _ in rows],
            [{source.text_column: line.rstrip("\r\n")} for _, line in rows],
            sum(map(len, lines)),
        )


def _read_json(source: Source) -> Iterator[Block]:
    for numbers, lines in _line_blocks(source):
        size, good, rows = sum(map(len, lines)), list[int](), list[dict[str, object]]()
        together = _parse_together(lines)
        if together is not None:
            yield Block(numbers, together, size)
            continue
        for number, line in zip(numbers, lines, strict=True):
            try:
                row = parse_json(line)
                if not isinstance(row, dict):
                    raise InvalidValueError('this is JSON, but not an object such as {"text": "Good food."}')
                if "\\u" in line:
                    to_json(row).encode()  # fails for an unpaired surrogate, which tokenisers do not accept
            except json.JSONDecodeError as error:
                if line.isspace():
                    continue
                problem = f"invalid JSON at character {error.colno} ({error.msg})"
            except UnicodeEncodeError as error:
                problem = f"contains an unpaired surrogate ({error.object[error.start]!r})"
            except (InvalidValueError, ValueError, RecursionError) as error:
                problem = str(error)
            else:
                good.append(number)
                rows.append(row)
                continue
            yield Block(good, rows, 0)
            good, rows = [], []
            advice = "Each line must be one JSON object."
            source.on_error(source.error(f"{problem}: {short_repr(line.strip())}. {advice}", number))
        yield Block(good, rows, size)


def _parse_together(lines: list[str]) -> list[dict[str, object]] | None:
    """All lines with one call, which is faster; None if they must be looked at one by one.

    A number that no file can contain on purpose stands between them: broken lines cannot complete each other.
    """
    text = f",{_BETWEEN},".join(lines)
    if _SURROGATE.search(text):
        return None
    try:
        found = parse_json(f"[{text}]")
    except (ValueError, RecursionError):
        return None
    rows: list[dict[str, object]] = found[::2]
    whole = found[1::2] == [_BETWEEN] * (len(lines) - 1) and len(rows) == len(lines)
    return rows if whole and set(map(type, rows)) == {dict} else None


def _read_delimited(source: Source, delimiter: str) -> Iterator[Block]:
    source.opened.enter_context(allow_long_cells())
    with _open_lines(source) as lines:
        rows = RowSplitter(lines, delimiter)
        header = next((row for row in rows if row.cells or row.problem), None)
        if header is None:
            raise source.error("the file is empty, but its first line must name the columns.", 1)
        if header.problem:  # raise: no row can be read without the header
            raise source.error(header.problem, header.number)
        names = header.cells
        source.check_columns(names, header.number)
        source.on_columns(names)
        while True:
            first, block = rows.take(source.batch_size)
            if block:
                yield from _rows_of_cells(source, names, range(first, first + len(block)), block, delimiter)
                continue
            for number, taken, cells, problem in rows:
                if problem:
                    bad = next((place for place, line in enumerate(taken) if line.problem), 0)
                    source.on_error(source.error(problem, number + bad))
                else:
                    yield from _rows_of_cells(source, names, [number], [cells], delimiter)
                if not lines.one_by_one:
                    break
            else:
                return


def _rows_of_cells(
    source: Source, names: list[str], numbers: Sequence[int], block: list[list[str]], delimiter: str
) -> Iterator[Block]:
    """The rows of a table that have as many cells as the header; blank ones are skipped, others are reported."""
    width, size = len(names), sum(map(len, chain.from_iterable(block)))
    if set(map(len, block)) == {width}:
        yield Block(numbers, list(map(dict, map(zip, repeat(names), block))), size)
        return
    lines, rows = list[int](), list[dict[str, object]]()
    for number, cells in zip(numbers, block, strict=True):
        if len(cells) == width:
            lines.append(number)
            rows.append(dict(zip(names, cells, strict=True)))
        elif cells:
            yield Block(lines, rows, 0)
            lines, rows = [], []
            found = f"found {plural(len(cells), 'cell')}, but the header names {plural(width, 'column')}"
            advice = f"Put a cell that contains {delimiter!r} in double quotes."
            source.on_error(source.error(f"{found}: {short_repr(delimiter.join(cells))}. {advice}", number))
    yield Block(lines, rows, size)


def _read_parquet(source: Source) -> Iterator[Block]:
    pyarrow = import_pyarrow()
    stream = source.open()
    if source.compressed or not stream.seekable():  # Parquet readers start at the end of the file
        spool = source.opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        try:
            shutil.copyfileobj(stream, spool)
        except (OSError, EOFError, zlib.error) as error:
            raise source.read_error(error) from error
        stream = spool
    line = 0
    try:
        with limited_memory(MAX_DECODING):
            metadata = pyarrow.parquet.ParquetFile(stream).metadata
        if problem := check_lists(metadata):
            raise source.error(problem)
        options = {"metadata": metadata, "read_dictionary": dictionary_columns(metadata), "buffer_size": 2**20}
        file = source.opened.enter_context(pyarrow.parquet.ParquetFile(stream, **options))
        names = file.schema_arrow.names
        source.check_columns(names, 1)
        source.on_columns(names)
        groups, rows = source.part and source.part.row_groups, rows_at_once(metadata, source.batch_size)
        batches = file.iter_batches(rows, row_groups=groups, use_threads=False)
        for piece, size in _pieces_within_memory(batches):
            first, line = line + 1, line + piece.num_rows
            if size > MAX_PIECE:
                source.on_error(source.error(f"the row is larger than {MAX_PIECE:,} bytes. Shorten or split it.", line))
                continue
            cells = zip(*map(read_cells, piece.columns), strict=True)
            yield Block(range(first, line + 1), [dict(zip(names, row, strict=True)) for row in cells], size)
    except MemoryError as error:
        advice = "Write shorter rows and smaller row groups."
        found = f"reading it needs more than {MAX_DECODING // 2**20} MB of memory ({reason(error)})"
        raise source.error(f"{found}. {advice}", line + 1) from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        advice = "Write the file again, or give it the suffix of its format."
        raise source.error(f"broken or not Parquet ({reason(error)}). {advice}", line + 1) from error


def _pieces_within_memory(batches: Iterator[Any]) -> Iterator[tuple[Any, int]]:
    """The pieces of all batches. Arrow decodes a page as a whole, and a few bytes can be a page of gigabytes."""
    while True:
        with limited_memory(MAX_DECODING):
            batch = next(batches, None)
        if batch is None:
            return
        yield from pieces(batch)


READERS: dict[str, Callable[[Source], Iterator[Block]]] = {
    "jsonl": _read_json,
    **{kind: partial(_read_delimited, delimiter=delimiter) for kind, delimiter in DELIMITERS.items()},
    "parquet": _read_parquet,
    "txt": _read_text,
}
