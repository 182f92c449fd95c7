"""A reader for each format: it yields (line, row) pairs, and reports or raises errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import IO, cast

from awatt.errors import DataError, plural
from awatt.records.formats import (
    DELIMITERS,
    MAX_LINE,
    STANDARD_STREAM,
    InvalidValueError,
    allow_long_cells,
    reason,
    short_repr,
    to_json,
)

Rows = Iterator[tuple[int, dict[str, object]]]
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
            return cast("IO[bytes]", self.opened.enter_context(gzip.GzipFile(mode="rb", fileobj=stream)))
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

    def check_columns(self, names: Sequence[str], line: int) -> None:
        """Raise if a name occurs twice or the text column is missing."""
        for name in names:
            if names.count(name) > 1:
                raise self.error("this column name occurs more than once. Rename one of them.", line, name)
        if self.text_column not in names:
            found = ", ".join(map(repr, names)) or "none"
            advice = "Name the one that holds the text with --text-column."
            if len(names) == 1 and ";" in names[0]:  # which some spreadsheets write as CSV
                advice = "The cells seem to be separated by ';'. Save the file with commas, or with tabs as .tsv."
            raise self.error(f"no such column; the columns are: {found}. {advice}", line, self.text_column)


def _lines(source: Source, errors: list[DataError]) -> Iterator[str]:
    """Each line with its line end. One that is not UTF-8 adds to ``errors`` and is still yielded, because a quoted
    cell may begin or end in it."""
    # surrogateescape: a bad byte affects its own line only; newline="": line ends within cells are kept
    encoding = "utf-8-sig" if source.part is None or source.part.at_start else "utf-8"
    text = io.TextIOWrapper(source.open(), encoding=encoding, errors="surrogateescape", newline="")
    source.opened.callback(text.detach)  # otherwise closing it would close stdin
    number = 0
    try:
        for number, line in enumerate(iter(partial(text.readline, MAX_LINE), ""), 1):
            if len(line) == MAX_LINE:
                raise source.error(f"longer than {MAX_LINE:,} characters. Does the suffix match the file?", number)
            if not line.isascii():
                try:
                    line.encode()
                except UnicodeEncodeError as error:
                    byte, place = ord(line[error.start]) - 0xDC00, len(line[: error.start].encode()) + 1
                    found = f"byte {place} of the line is 0x{byte:02x}, which is not UTF-8"
                    errors.append(source.error(f"{found}. Save the file as UTF-8.", number))
            yield line
    except (OSError, EOFError, zlib.error) as error:
        raise source.read_error(error, number + 1) from error


def _nonblank_lines(source: Source) -> Iterator[tuple[int, str]]:
    errors: list[DataError] = []
    for number, line in enumerate(_lines(source, errors), 1):
        if errors:
            source.on_error(errors.pop())
        elif not line.isspace():
            yield number, line


def _read_text(source: Source) -> Rows:
    for number, line in _nonblank_lines(source):
        yield number, {source.text_column: line.rstrip("\r\n")}


def _read_json(source: Source) -> Rows:
    for number, line in _nonblank_lines(source):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise InvalidValueError('this is JSON, but not an object such as {"text": "Good food."}')
            if "\\u" in line:
                to_json(row).encode()  # fails for an unpaired surrogate, which tokenisers do not accept
        except json.JSONDecodeError as error:
            problem = f"invalid JSON at character {error.colno} ({error.msg})"
        except UnicodeEncodeError as error:
            problem = f"contains an unpaired surrogate ({error.object[error.start]!r})"
        except (InvalidValueError, ValueError, RecursionError) as error:
            problem = str(error)
        else:
            yield number, row
            continue
        advice = "Each line must be one JSON object."
        source.on_error(source.error(f"{problem}: {short_repr(line.strip())}. {advice}", number))


def _read_delimited(source: Source, delimiter: str) -> Rows:
    source.opened.enter_context(allow_long_cells())
    errors: list[DataError] = []
    reader = csv.reader(_lines(source, errors), delimiter=delimiter, strict=True)

    def split_rows(on_error: OnError) -> Iterator[tuple[int, list[str]]]:
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                advice = 'A cell that begins with " must end with ", and a " within it is written twice.'
                errors.append(source.error(f"the row cannot be split into cells ({error}). {advice}", line))
            if errors:
                on_error(errors[-1])
                errors.clear()
            elif cells:
                yield line, cells

    line, names = next(split_rows(raise_error), (1, []))  # raise: no row can be read without the header
    if not names:
        raise source.error("the file is empty, but its first line must name the columns.", line)
    source.check_columns(names, line)
    source.on_columns(names)
    for line, cells in split_rows(source.on_error):
        if len(cells) == len(names):
            yield line, dict(zip(names, cells, strict=True))
        else:
            found = f"found {plural(len(cells), 'cell')}, but the header names {plural(len(names), 'column')}"
            advice = f"Put a cell that contains {delimiter!r} in double quotes."
            source.on_error(source.error(f"{found}: {short_repr(delimiter.join(cells))}. {advice}", line))


def _read_parquet(source: Source) -> Rows:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

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
        file = source.opened.enter_context(ParquetFile(stream))
        names = file.schema_arrow.names
        source.check_columns(names, 1)
        source.on_columns(names)
        for batch in file.iter_batches(source.batch_size, row_groups=source.part and source.part.row_groups):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                line += 1
                yield line, dict(zip(names, cells, strict=True))
    except (OSError, ValueError, ArrowException) as error:
        advice = "Write the file again, or give it the suffix of its format."
        raise source.error(f"broken or not Parquet ({reason(error)}). {advice}", line + 1) from error


READERS: dict[str, Callable[[Source], Rows]] = {
    "jsonl": _read_json,
    **{kind: partial(_read_delimited, delimiter=delimiter) for kind, delimiter in DELIMITERS.items()},
    "parquet": _read_parquet,
    "txt": _read_text,
}
