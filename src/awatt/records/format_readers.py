"""Rows in: for each format a reader that gives (line, row) pairs, and reports or raises what is wrong with them."""

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

from awatt.errors import DataError
from awatt.records.formats import (
    DELIMITERS,
    LONGEST_LINE,
    STANDARD_STREAM,
    UnfitError,
    long_cells,
    reason,
    shown,
    to_json,
)

Rows = Iterator[tuple[int, dict[str, object]]]
Report = Callable[[DataError], None]


def raise_fault(error: DataError) -> None:
    """The report of who wants none: the first fault ends the reading."""
    raise error


@dataclass(frozen=True, slots=True)
class OpenPart:
    """A part's bytes. ``begins``: the file's beginning is in it. ``row_groups`` are those to read of Parquet."""

    stream: IO[bytes]
    begins: bool = True
    row_groups: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What reading needs, whatever the format."""

    path: str
    compressed: bool
    text_column: str
    batch_size: int
    report: Report
    on_columns: Callable[[Sequence[str]], None]
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


def _lines(source: Source, faults: list[DataError]) -> Iterator[str]:
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


def _filled_lines(source: Source) -> Iterator[tuple[int, str]]:
    faults: list[DataError] = []
    for number, line in enumerate(_lines(source, faults), 1):
        if faults:
            source.report(faults.pop())
        elif not line.isspace():
            yield number, line


def _read_text(source: Source) -> Rows:
    for number, line in _filled_lines(source):
        yield number, {source.text_column: line.rstrip("\r\n")}


def _read_json(source: Source) -> Rows:
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


def _read_delimited(source: Source, delimiter: str) -> Rows:
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

    line, names = next(split_rows(raise_fault), (1, []))  # without its header no row can be read: raise
    if not names:
        raise source.fault("the file is empty, but its first line must name the columns.", line)
    source.check_columns(names, line)
    source.on_columns(names)
    for line, cells in split_rows(source.report):
        if len(cells) == len(names):
            yield line, dict(zip(names, cells, strict=True))
        else:
            found = f"found {len(cells)} cells, but the header names {len(names)} columns"
            advice = f"Put a cell that holds {delimiter!r} in double quotes."
            source.skip(f"{found}: {shown(delimiter.join(cells))}. {advice}", line)


def _read_parquet(source: Source) -> Rows:
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
        source.on_columns(names)
        for batch in file.iter_batches(source.batch_size, row_groups=source.part and source.part.row_groups):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                line += 1
                yield line, dict(zip(names, cells, strict=True))
    except (OSError, ValueError, ArrowException) as error:
        advice = "Write the file again, or give it the suffix of its format."
        raise source.fault(f"broken or not Parquet ({reason(error)}). {advice}", line + 1) from error


READERS: dict[str, Callable[[Source], Rows]] = {
    "jsonl": _read_json,
    **{kind: partial(_read_delimited, delimiter=delimiter) for kind, delimiter in DELIMITERS.items()},
    "parquet": _read_parquet,
    "txt": _read_text,
}
