"""Records in and out: JSONL, CSV, TSV, Parquet and plain text, each also gzipped, a batch at a time.

The suffix names the format; ``-`` is stdin or stdout. For reading, each format gives (line, row) pairs and one
place turns a row into a `Record`; for writing, each has a small writer and one place makes the file whole.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, cast

from awatt.errors import AwattError, DataError

STANDARD_STREAM = "-"
SEPARATORS = re.compile(r"[|;]")  # no comma: the name of an aspect may hold one
LONGEST_LINE = 2**24  # characters; bounds the memory when a quote never closes or a file is one huge line
ROW_GROUP = 16_384  # rows of a Parquet row group: enough to compress well, few enough to hold
HINTS = {
    "json": " A .json file is one value; give one object a line: jq -c '.[]' in.json > out.jsonl",
    "xlsx": " Save the sheet as CSV (UTF-8).",
}

Row = Mapping[str, object]
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
) -> Iterator[list[Record]]:
    """Give the records of ``path`` in lists of ``batch_size``, reading little further than asked for.

    Aspects are a list, or a string: a JSON list, or names between ``separator`` (None: ``|`` or ``;``).
    ``format``, such as "csv" or "txt.gz", goes before the suffix; stdin is JSONL unless it says otherwise.
    The first fault raises. With ``on_error``, faulty rows are reported there and skipped, and only a fault of
    the whole file raises (cut short, no such column).
    """
    path = str(path)
    if path != STANDARD_STREAM and not os.path.exists(path):
        raise DataError("there is no such file. Check the path.", path)
    if os.path.isdir(path):
        raise DataError("this is a folder, but a file is needed. Name a file in it.", path)
    kind, compressed = _format_of(path, format)
    if batch_size < 1:
        raise AwattError(f"the batch size is {batch_size}, but at least 1 is needed.")
    if separator == "":
        raise AwattError("the separator of aspects is empty. Give one such as '|', or leave it out.")
    separators = SEPARATORS if separator is None else re.compile(re.escape(separator))
    source = _Source(path, compressed, text_column, aspects_column, separators, batch_size, on_error or _raise)
    return _batches(source, READERS[kind])


def _format_of(path: str, format: str | None) -> tuple[str, bool]:
    """The name of the format and whether it is gzipped."""
    if format is None and path == STANDARD_STREAM:
        format = "jsonl"
    name = f".{format}".lower() if format else os.path.basename(path).lower()
    _, dot, kind = name.removesuffix(".gz").rpartition(".")
    if not dot or kind not in READERS:
        found = f"the format '{format}'" if format else f"the suffix '{dot and dot + kind}'"
        known = ", ".join(f".{each}" for each in READERS)
        hint = HINTS.get(kind, "")
        raise DataError(f"{found} is not known. Use {known}, or one of them with .gz.{hint}", path)
    return kind, name.endswith(".gz") or path.lower().endswith(".gz")


def _shown(value: object) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _reason(error: Exception) -> str:
    known = error.strerror if isinstance(error, OSError) else None
    return known or " ".join(str(error).split())  # one line


def _raise(error: DataError) -> None:
    raise error


class _UnfitError(Exception):
    """A value that does not fit; who catches it knows the place."""


# ---- reading ----


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
    opened: ExitStack = field(default_factory=ExitStack)  # closed when the last batch is out, or earlier

    def open(self) -> IO[bytes]:
        if self.path == STANDARD_STREAM:
            stream: IO[bytes] = sys.stdin.buffer
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
        return self.fault(f"cannot be read ({_reason(error)}). Check its permissions and the disk.", line)

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
            raise self.fault(f"no such column; the columns are: {found}. {advice}", line, self.text_column)

    def record(self, line: int, row: dict[str, object]) -> Record:
        """Turn a row, which it takes apart, into a record."""
        if self.text_column not in row:
            self.check_columns(list(row), line)
        text = row.pop(self.text_column)
        if not isinstance(text, str):
            message = f"found {_shown(text)}, but text is needed. Fill it in or remove the row."
            raise self.fault(message, line, self.text_column)
        try:
            return Record(text, _aspects(row.pop(self.aspects_column, None), self.separators), row, line)
        except _UnfitError as error:
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
        raise _UnfitError(f"found {_shown(value)}, but a list of names is needed, or text like food|service.")
    names: dict[str, None] = {}
    for name in value:
        if isinstance(name, str):
            names[name.strip()] = None
        elif name is not None:
            raise _UnfitError(f"found {_shown(name)} in the list, but each name must be text.")
    names.pop("", None)
    return tuple(names)


def _split_names(text: str, separators: re.Pattern[str]) -> object:
    if not (text.startswith("[") and text.endswith("]")):
        return separators.split(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        advice = 'Write ["food", "service"] or food|service.'
        raise _UnfitError(f"found {_shown(text)}, which is not a JSON list. {advice}") from None


def _lines(source: _Source, faults: list[DataError]) -> Iterator[str]:
    """Each line with its end. One that is not UTF-8 adds to ``faults`` and comes all the same, for a quoted
    cell may begin or end in it."""
    # surrogateescape: a bad byte spoils its own line only; newline="": line ends within cells stay as they are
    text = io.TextIOWrapper(source.open(), encoding="utf-8-sig", errors="surrogateescape", newline="")
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
                raise _UnfitError('this is JSON, but not an object such as {"text": "Good food."}')
            if "\\u" in line:
                _to_json(row).encode()  # fails for half a character, which no tokeniser takes
        except json.JSONDecodeError as error:
            reason = f"broken JSON at character {error.colno} ({error.msg})"
        except UnicodeEncodeError:
            reason = "half a character (a lone surrogate)"
        except (_UnfitError, ValueError, RecursionError) as error:
            reason = str(error)
        else:
            yield number, row
            continue
        source.skip(f"{reason}: {_shown(line.strip())}. Each line must be one JSON object.", number)


_limits: list[int] = []
_limits_lock = threading.RLock()


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let csv take long cells. Its limit is the process's: the last reader to end puts the first one back."""
    with _limits_lock:
        _limits.append(csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit())))
    try:
        yield
    finally:
        with _limits_lock:
            csv.field_size_limit(_limits.pop())


def _read_delimited(source: _Source, delimiter: str) -> Rows:
    source.opened.enter_context(_long_cells())
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
            source.skip(f"{found}: {_shown(delimiter.join(cells))}. {advice}", line)


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
        for batch in file.iter_batches(source.batch_size):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                line += 1
                yield line, dict(zip(names, cells, strict=True))
    except (OSError, ValueError, ArrowException) as error:
        advice = "Write the file again, or give it the suffix of its format."
        raise source.fault(f"broken or not Parquet ({_reason(error)}). {advice}", line + 1) from error


READERS: dict[str, Callable[[_Source], Rows]] = {
    "jsonl": _read_json,
    "csv": partial(_read_delimited, delimiter=","),
    "tsv": partial(_read_delimited, delimiter="\t"),
    "parquet": _read_parquet,
    "txt": _read_text,
}

# ---- writing ----


def _plain(value: object) -> object:
    """What JSON and CSV write for a value that they do not have."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, date | time | timedelta | Decimal):
        return str(value)
    raise _UnfitError(f"found {_shown(value)}, which this format cannot hold. Write .parquet.")


JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)


def _to_json(value: object) -> str:
    try:
        return JSON.encode(value)
    except ValueError:  # NaN or infinity, which JSON does not have
        return JSON.encode(_without_nan(value))


def _without_nan(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _to_cell(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return _to_json(value)
    if not isinstance(value, list | tuple):
        return _plain(value)
    if all(isinstance(name, str) and not SEPARATORS.search(name) for name in value):
        names = "|".join(value)
        if not names.lstrip().startswith("["):
            return names
    return _to_json(value)


class _Writer:
    """Writes rows to a stream. A table's columns are those of its first rows."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.columns: dict[str, Any] = {}  # with their types where the format has types

    def write(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Write what is left."""

    def abandon(self) -> None:
        """Let go of everything."""

    def check_columns(self, rows: Sequence[Row]) -> None:
        for name in chain.from_iterable(rows):
            if name not in self.columns:
                known = ", ".join(map(repr, self.columns))
                advice = "Write .jsonl, whose rows may differ."
                raise _UnfitError(f"found the column '{name}', but the first rows have {known}. {advice}")


class _JsonWriter(_Writer):
    def write(self, rows: Sequence[Row]) -> None:
        self.stream.write("".join(f"{_to_json(row)}\n" for row in rows).encode())


class _TextWriter(_Writer):
    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            text = next(iter(row.values()), None)
            if len(row) != 1 or not isinstance(text, str) or "\n" in text or "\r" in text:
                needed = "plain text takes one column of text without line breaks"
                raise _UnfitError(f"{needed}, but found {_shown(dict(row))}. Write .jsonl.")
            self.stream.write(f"{text}\n".encode())


class _CsvLines(list[str]):
    """Takes what csv writes, a line a call. csv quotes the characters of its line end, so with this one a cell
    with a lone carriage return is quoted too; the file gets a plain one."""

    END = "\r\n"

    def write(self, line: str) -> None:
        self.append(line.removesuffix(self.END) + "\n")


class _DelimitedWriter(_Writer):
    def __init__(self, stream: IO[bytes], delimiter: str) -> None:
        super().__init__(stream)
        self.delimiter = delimiter

    def write(self, rows: Sequence[Row]) -> None:
        lines = _CsvLines()
        writer = csv.writer(lines, delimiter=self.delimiter, lineterminator=_CsvLines.END)
        if not self.columns:
            self.columns = dict.fromkeys(chain.from_iterable(rows))
            writer.writerow(self.columns)
        self.check_columns(rows)
        writer.writerows([_to_cell(row.get(name)) for name in self.columns] for row in rows)
        self.stream.write("".join(lines).encode())


class _ParquetWriter(_Writer):
    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream)
        self.pending: list[Row] = []
        self.file: Any = None

    def write(self, rows: Sequence[Row]) -> None:
        self.pending.extend(rows)
        if len(self.pending) >= ROW_GROUP:
            self.write_pending()

    def write_pending(self) -> None:
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        if self.file is None:
            self.columns = dict.fromkeys(chain.from_iterable(self.pending))
        self.check_columns(self.pending)
        table = pyarrow.table({name: self.to_array(name) for name in self.columns})
        try:
            self.file = self.file or ParquetWriter(self.stream, table.schema)
            self.file.write_table(table)
        except pyarrow.ArrowException as error:
            raise _UnfitError(f"Parquet cannot hold these rows ({_reason(error)}). Write .jsonl.") from error
        self.pending = []

    def to_array(self, name: str) -> Any:
        """The pending values of a column, in the type of its first ones."""
        import pyarrow

        values = [row.get(name) for row in self.pending]
        try:
            found = pyarrow.array(values).type
            kind = self.columns[name] = self.columns[name] or _settled(found)
            both = [pyarrow.schema([(name, each)]) for each in (kind, found)]
            if pyarrow.unify_schemas(both, promote_options="permissive") == both[0]:
                return pyarrow.array(values, type=kind)
            reason = f"{found} after {kind}"
        except pyarrow.ArrowException as error:
            reason = _reason(error)
        advice = "Give the column values of one kind, or write .jsonl."
        raise _UnfitError(f"the values of column '{name}' do not fit together ({reason}). {advice}")

    def close(self) -> None:
        if self.pending or self.file is None:
            self.write_pending()
        self.file.close()

    def abandon(self) -> None:
        if self.file is not None:
            self.file.is_open = False  # else pyarrow would write to the closed stream when it lets go


def _settled(kind: Any) -> Any:
    """The type to keep: where the first rows have no value at all, later ones may have text."""
    from pyarrow import list_, string, struct, types

    if types.is_null(kind):
        return string()
    if types.is_list(kind):
        return list_(_settled(kind.value_type))
    if types.is_struct(kind):
        return struct([(each.name, _settled(each.type)) for each in kind])
    return kind


WRITERS: dict[str, Callable[[IO[bytes]], _Writer]] = {
    "jsonl": _JsonWriter,
    "csv": partial(_DelimitedWriter, delimiter=","),
    "tsv": partial(_DelimitedWriter, delimiter="\t"),
    "parquet": _ParquetWriter,
    "txt": _TextWriter,
}


class RecordWriter:
    """Writes rows to a file, whole or not at all: it appears when the ``with`` block ends well.

    JSONL takes any rows; a table (CSV, TSV, Parquet) has the columns of its first rows; plain text takes one
    column. In CSV and TSV a list is ``a|b`` (a JSON list if a name holds a separator), an object is JSON.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False, format: str | None = None) -> None:
        self.path = str(path)
        self._kind, self._compressed = _format_of(self.path, format)
        self._target: Path | None = None
        if self.path != STANDARD_STREAM:
            self._target = Path(os.path.realpath(path))  # a link stays a link to the new file
            if not self._target.parent.is_dir():
                raise AwattError(f"{path}: there is no folder '{self._target.parent}'. Create it first.")
            if self._target.exists() and not self._target.is_file():
                raise AwattError(f"{path}: this is not a plain file. Name a file, or '-' for stdout.")
            if self._target.exists() and not overwrite:
                raise AwattError(f"{path}: the file exists. Use --overwrite to replace it, or another name.")

    def __enter__(self) -> Self:
        with self._write_faults(), ExitStack() as stack:
            if self._target is None:
                stream: IO[bytes] = sys.stdout.buffer
                stack.callback(stream.flush)
            else:
                self._temporary = self._target.with_name(f".awatt-{secrets.token_hex(8)}.tmp")
                stream = stack.enter_context(open(self._temporary, "xb"))
            if self._compressed:  # no name and no time within, so that the same rows give the same bytes
                zipped = gzip.GzipFile(filename="", mode="wb", fileobj=stream, compresslevel=6, mtime=0)
                stream = cast("IO[bytes]", stack.enter_context(zipped))
            self._writer = WRITERS[self._kind](stream)
            self._streams = stack.pop_all()
        return self

    def write(self, records: Sequence[Row]) -> None:
        """Add rows."""
        if records:
            with self._write_faults():
                self._writer.write(records)

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        try:
            if failure is None:
                with self._write_faults():
                    self._writer.close()
                    self._streams.close()
                    if self._target is not None:
                        os.replace(self._temporary, self._target)
        finally:  # after success nothing is left to do; after a failure, what closing says does not count
            with suppress(Exception):
                self._writer.abandon()
            with suppress(Exception):
                self._streams.close()
            if self._target is not None:
                self._temporary.unlink(missing_ok=True)

    @contextmanager
    def _write_faults(self) -> Iterator[None]:
        name = "stdout" if self._target is None else self.path
        try:
            yield
        except BrokenPipeError:  # the reader of stdout has seen enough: for the command line to settle
            raise
        except OSError as error:
            advice = "Free some space, or choose another place."
            raise AwattError(f"{name}: cannot be written ({_reason(error)}). {advice}") from error
        except _UnfitError as error:
            raise AwattError(f"{name}: {error}") from None
        except UnicodeEncodeError as error:
            found = _shown(error.object[max(0, error.start - 20) : error.end])
            raise AwattError(f"{name}: half a character (a lone surrogate) at the end of {found}.") from None
