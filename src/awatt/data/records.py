"""Records in: JSONL, CSV, TSV, Parquet and plain text, each also gzipped, a batch at a time.

The suffix names the format; ``-`` is stdin. Each format gives (line, row) pairs, and one place turns a row into a
`Record`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, cast

from awatt.data.formats import (
    DELIMITERS,
    LONGEST_LINE,
    SEPARATORS,
    STANDARD_STREAM,
    Row,
    UnfitError,
    format_of,
    long_cells,
    reason,
    shown,
    to_json,
)
from awatt.data.parts import OpenPart
from awatt.errors import AwattError, DataError

Rows = Iterator[tuple[int, dict[str, object]]]
Report = Callable[[DataError], None]


@dataclass(frozen=True, slots=True)
class Record:
    """A sentence, its aspects (none if unlabelled), the other columns in order, and where it began."""

    text: str
    aspects: tuple[str, ...] = ()
    fields: Row = field(default_factory=dict)
    line: int = 0  # counts from 1; the row for Parquet


def read_records(
    path: str | Path,
    *,
    text_column: str = "text",
    aspects_column: str = "aspects",
    batch_size: int = 1024,
    separator: str | None = None,
    format: str | None = None,
    on_error: Report | None = None,
    part: OpenPart | None = None,
) -> Iterator[list[Record]]:
    """Give the records of ``path`` in lists of ``batch_size``, reading little further than asked for.

    Aspects are a list, or a string: a JSON list, or names between ``separator`` (None: ``|`` or ``;``).
    ``format``, such as "csv" or "txt.gz", goes before the suffix; stdin is JSONL unless it says otherwise.
    The first fault raises. With ``on_error``, faulty rows are reported there and skipped, and only a fault of
    the whole file raises (cut short, no such column). ``part`` is what to read of it; lines count from its beginning.
    """
    path = str(path)
    if part is None and path != STANDARD_STREAM and not os.path.exists(path):
        raise DataError("there is no such file. Check the path.", path)
    if os.path.isdir(path):
        raise DataError("this is a folder, but a file is needed. Name a file in it.", path)
    kind, compressed = format_of(path, format)
    if batch_size < 1:
        raise AwattError(f"the batch size is {batch_size}, but at least 1 is needed.")
    if separator == "":
        raise AwattError("the separator of aspects is empty. Give one such as '|', or leave it out.")
    separators = SEPARATORS if separator is None else re.compile(re.escape(separator))
    source = _Source(path, compressed, text_column, aspects_column, separators, batch_size, on_error or _raise, part)
    return _batches(source, READERS[kind])


def _raise(error: DataError) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class _Source:
    """What reading needs, whatever the format."""

    path: str
    compressed: bool
    text_column: str
    aspects_column: str
    separators: re.Pattern[str]
    batch_size: int
    report: Report
    part: OpenPart | None = None
    opened: ExitStack = field(default_factory=ExitStack)  # closed when the last batch is out, or earlier

    def open(self) -> IO[bytes]:
        stream: IO[bytes]
        if self.part is not None:
            stream = self.part.stream
        elif self.path == STANDARD_STREAM:
            stream = sys.stdin.buffer
        else:
            try:
                stream = self.opened.enter_context(open(self.path, "rb"))  # noqa: SIM115 (the stack closes it)
            except OSError as error:
                raise self.read_fault(error) from error
        if self.compressed:
            return cast("IO[bytes]", self.opened.enter_context(gzip.GzipFile(mode="rb", fileobj=stream)))
        return stream

    def fault(self, message: str, line: int | None = None, column: str | None = None) -> DataError:
        return DataError(message, "stdin" if self.path == STANDARD_STREAM else self.path, line, column)

    def read_fault(self, error: Exception, line: int | None = None) -> DataError:
        """What to say when the bytes cannot be had."""
        if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
            advice = "Fetch the file again, or take '.gz' off its name if it is not compressed."
            return self.fault(f"the gzip data is cut short or broken ({error}). {advice}", line)
        return self.fault(f"cannot be read ({reason(error)}). Check its permissions and the disk.", line)

    def skip(self, message: str, line: int) -> None:
        self.report(self.fault(message, line))

    def check_columns(self, names: Sequence[str], line: int) -> None:
        """Raise if a name comes twice or the text column is missing."""
        for name in names:
            if names.count(name) > 1:
                raise self.fault("this column name comes more than once. Rename one of them.", line, name)
        if self.text_column not in names:
            found = ", ".join(map(repr, names)) or "none"
            advice = "Name the one that holds the text with --text-column."
            if len(names) == 1 and ";" in names[0]:  # as some spreadsheets write CSV
                advice = "The cells seem to be separated by ';'. Save the file with commas, or with tabs as .tsv."
            raise self.fault(f"no such column; the columns are: {found}. {advice}", line, self.text_column)

    def record(self, line: int, row: dict[str, object]) -> Record:
        """Turn a row, which it takes apart, into a record."""
        if self.text_column not in row:
            self.check_columns(list(row), line)
        text = row.pop(self.text_column)
        if not isinstance(text, str):
            message = f"found {shown(text)}, but text is needed. Fill it in or remove the row."
            raise self.fault(message, line, self.text_column)
        try:
            return Record(text, _aspects(row.pop(self.aspects_column, None), self.separators), row, line)
        except UnfitError as error:
            raise self.fault(str(error), line, self.aspects_column) from None


def _batches(source: _Source, read_rows: Callable[[_Source], Rows]) -> Iterator[list[Record]]:
    with source.opened:
        batch: list[Record] = []
        for line, row in read_rows(source):
            try:
                batch.append(source.record(line, row))
            except DataError as error:
                source.report(error)
                continue
            if len(batch) == source.batch_size:
                yield batch
                batch = []
        if batch:
            yield batch


def _aspects(value: object, separators: re.Pattern[str]) -> tuple[str, ...]:
    """The names in a list or a string, stripped, each once."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ()
    if isinstance(value, str):
        value = _split_names(value.strip(), separators)
    if not isinstance(value, list):
        raise UnfitError(f"found {shown(value)}, but a list of names is needed, or text like food|service.")
    names: dict[str, None] = {}
    for name in value:
        if isinstance(name, str):
            names[name.strip()] = None
        elif name is not None:
            raise UnfitError(f"found {shown(name)} in the list, but each name must be text.")
    names.pop("", None)
    return tuple(names)


def _split_names(text: str, separators: re.Pattern[str]) -> object:
    if not (text.startswith("[") and text.endswith("]")):
        return separators.split(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        advice = 'Write ["food", "service"] or food|service.'
        raise UnfitError(f"found {shown(text)}, which is not a JSON list. {advice}") from None


def _lines(source: _Source, faults: list[DataError]) -> Iterator[str]:
    """Each line with its end. One that is not UTF-8 adds to ``faults`` and comes all the same, for a quoted
    cell may begin or end in it."""
    # surrogateescape: a bad byte spoils its own line only; newline="": line ends within cells stay as they are
    encoding = "utf-8-sig" if source.part is None or source.part.begins else "utf-8"
    text = io.TextIOWrapper(source.open(), encoding=encoding, errors="surrogateescape", newline="")
    source.opened.callback(text.detach)  # else stdin would be closed with it
    number = 0
    try:
        for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE), ""), 1):
            if len(line) == LONGEST_LINE:
                raise source.fault(f"over {LONGEST_LINE:,} characters. Does the suffix fit the file?", number)
            if not line.isascii():
                try:
                    line.encode()
                except UnicodeEncodeError as error:
                    byte, place = ord(line[error.start]) - 0xDC00, len(line[: error.start].encode()) + 1
                    found = f"byte {place} of the line is 0x{byte:02x}, which is not UTF-8"
                    faults.append(source.fault(f"{found}. Save the file as UTF-8.", number))
            yield line
    except (OSError, EOFError, zlib.error) as error:
        raise source.read_fault(error, number + 1) from error


def _filled_lines(source: _Source) -> Iterator[tuple[int, str]]:
    faults: list[DataError] = []
    for number, line in enumerate(_lines(source, faults), 1):
        if faults:
            source.report(faults.pop())
        elif not line.isspace():
            yield number, line


def _read_text(source: _Source) -> Rows:
    for number, line in _filled_lines(source):
        yield number, {source.text_column: line.rstrip("\r\n")}


def _read_json(source: _Source) -> Rows:
    for number, line in _filled_lines(source):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise UnfitError('this is JSON, but not an object such as {"text": "Good food."}')
            if "\\u" in line:
                to_json(row).encode()  # fails for half a character, which no tokeniser takes
        except json.JSONDecodeError as error:
            fault = f"broken JSON at character {error.colno} ({error.msg})"
        except UnicodeEncodeError:
            fault = "half a character (a lone surrogate)"
        except (UnfitError, ValueError, RecursionError) as error:
            fault = str(error)
        else:
            yield number, row
            continue
        source.skip(f"{fault}: {shown(line.strip())}. Each line must be one JSON object.", number)


def _read_delimited(source: _Source, delimiter: str) -> Rows:
    source.opened.enter_context(long_cells())
    faults: list[DataError] = []
    reader = csv.reader(_lines(source, faults), delimiter=delimiter, strict=True)

    def split_rows(report: Report) -> Iterator[tuple[int, list[str]]]:
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                advice = 'A cell that begins with " must end with ", and a " within it is written twice.'
                faults.append(source.fault(f"the row cannot be split ({error}). {advice}", line))
            if faults:
                report(faults[-1])
                faults.clear()
            elif cells:
                yield line, cells

    line, names = next(split_rows(_raise), (1, []))  # without its header no row can be read: raise
    if not names:
        raise source.fault("the file is empty, but its first line must name the columns.", line)
    source.check_columns(names, line)
    for line, cells in split_rows(source.report):
        if len(cells) == len(names):
            yield line, dict(zip(names, cells, strict=True))
        else:
            found = f"found {len(cells)} cells, but the header names {len(names)} columns"
            advice = f"Put a cell that holds {delimiter!r} in double quotes."
            source.skip(f"{found}: {shown(delimiter.join(cells))}. {advice}", line)


def _read_parquet(source: _Source) -> Rows:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    stream = source.open()
    if source.compressed or not stream.seekable():  # Parquet is read from its end
        spool = source.opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        try:
            shutil.copyfileobj(stream, spool)
        except (OSError, EOFError, zlib.error) as error:
            raise source.read_fault(error) from error
        stream = spool
    line = 0
    try:
        file = source.opened.enter_context(ParquetFile(stream))
        names = file.schema_arrow.names
        source.check_columns(names, 1)
        for batch in file.iter_batches(source.batch_size, row_groups=source.part and source.part.row_groups):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                line += 1
                yield line, dict(zip(names, cells, strict=True))
    except (OSError, ValueError, ArrowException) as error:
        advice = "Write the file again, or give it the suffix of its format."
        raise source.fault(f"broken or not Parquet ({reason(error)}). {advice}", line + 1) from error


READERS: dict[str, Callable[[_Source], Rows]] = {
    "jsonl": _read_json,
    **{kind: partial(_read_delimited, delimiter=delimiter) for kind, delimiter in DELIMITERS.items()},
    "parquet": _read_parquet,
    "txt": _read_text,
}
