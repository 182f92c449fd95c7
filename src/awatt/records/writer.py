"""Writes records to JSONL, CSV, TSV, Parquet and plain text, each also gzipped; a file appears whole or not at all.

Each format has a small writer; `RecordWriter` puts the finished file in its place.
"""

from __future__ import annotations

import csv
import errno
import gzip
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, cast

from awatt.errors import AwattError
from awatt.records.formats import (
    DELIMITERS,
    SEPARATORS,
    STANDARD_STREAM,
    InvalidValueError,
    Row,
    format_of,
    reason,
    short_repr,
    to_json,
    to_plain,
)

ROW_GROUP = 16_384  # rows per Parquet row group: enough to compress well, few enough to keep in memory


def _to_cell(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return to_json(value)
    if not isinstance(value, list | tuple):
        return to_plain(value)
    if all(isinstance(name, str) and not SEPARATORS.search(name) for name in value):
        names = "|".join(value)
        if not names.lstrip().startswith("["):
            return names
    return to_json(value)


class _Writer:
    """Writes rows to a stream. A table has the columns of its first rows."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.columns: dict[str, Any] = {}  # with their types where the format has types

    def write(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def write_header(self, row: Row) -> None:
        """Write the column names of a table that has no rows."""

    def close(self) -> None:
        """Write what is pending."""

    def abandon(self) -> None:
        """Release everything after a failure, without writing."""

    def check_columns(self, rows: Sequence[Row]) -> None:
        """Raise if a row has a column that the first rows do not have."""
        for name in chain.from_iterable(rows):
            if name not in self.columns:
                known = ", ".join(map(repr, self.columns))
                advice = "Write .jsonl, whose rows may differ."
                raise InvalidValueError(f"found the column '{name}', but the first rows have {known}. {advice}")


class _JsonWriter(_Writer):
    def write(self, rows: Sequence[Row]) -> None:
        self.stream.write("".join(f"{to_json(row)}\n" for row in rows).encode())


class _TextWriter(_Writer):
    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            text = next(iter(row.values()), None)
            if len(row) != 1 or not isinstance(text, str) or "\n" in text or "\r" in text:
                needed = "plain text takes one column of text without line breaks"
                raise InvalidValueError(f"{needed}, but found {short_repr(dict(row))}. Write .jsonl.")
            self.stream.write(f"{text}\n".encode())


class _CsvLines(list[str]):
    """Collects what csv.writer writes, one row per call. csv quotes cells that contain a character of its line end, so
    with this one it also quotes a lone carriage return; the file gets a plain line feed."""

    END = "\r\n"

    def write(self, line: str) -> None:
        self.append(line.removesuffix(self.END) + "\n")


class _DelimitedWriter(_Writer):
    def __init__(self, stream: IO[bytes], delimiter: str) -> None:
        super().__init__(stream)
        self.delimiter = delimiter

    def write(self, rows: Sequence[Row]) -> None:
        header = not self.columns
        self.columns = self.columns or dict.fromkeys(chain.from_iterable(rows))
        self.check_columns(rows)
        cells = ([_to_cell(row.get(name)) for name in self.columns] for row in rows)
        self.write_cells(chain([self.columns] if header else [], cells))

    def write_header(self, row: Row) -> None:
        if not self.columns:
            self.columns = dict.fromkeys(row)
            self.write_cells([self.columns])

    def write_cells(self, rows: Iterable[Iterable[object]]) -> None:
        lines = _CsvLines()
        csv.writer(lines, delimiter=self.delimiter, lineterminator=_CsvLines.END).writerows(rows)
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

    def write_header(self, row: Row) -> None:
        self.pending = [row]
        self.write_pending(count=0)

    def write_pending(self, count: int | None = None) -> None:
        """Write the first ``count`` pending rows, or all of them; the types of the columns come from all."""
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        if self.file is None:
            self.columns = dict.fromkeys(chain.from_iterable(self.pending))
        self.check_columns(self.pending)
        table = pyarrow.table({name: self.to_array(name) for name in self.columns})
        try:
            self.file = self.file or ParquetWriter(self.stream, table.schema)
            self.file.write_table(table.slice(0, count))
        except pyarrow.ArrowException as error:
            raise InvalidValueError(f"Parquet cannot store these rows ({reason(error)}). Write .jsonl.") from error
        self.pending = []

    def to_array(self, name: str) -> Any:
        """The pending values of a column, with the type of its first values."""
        import pyarrow

        values = [row.get(name) for row in self.pending]
        try:
            found = pyarrow.array(values).type
            kind = self.columns[name] = self.columns[name] or _concrete_type(found)
            both = [pyarrow.schema([(name, each)]) for each in (kind, found)]
            if pyarrow.unify_schemas(both, promote_options="permissive") == both[0]:
                return pyarrow.array(values, type=kind)
            problem = f"{found} after {kind}"
        except (pyarrow.ArrowException, OverflowError) as error:
            problem = reason(error)
        advice = "Use values of one type in this column, or write .jsonl."
        raise InvalidValueError(f"the values of column '{name}' have different types ({problem}). {advice}")

    def close(self) -> None:
        if self.pending or self.file is None:
            self.write_pending()
        self.file.close()

    def abandon(self) -> None:
        if self.file is not None:
            self.file.is_open = False  # otherwise pyarrow would write to the closed stream when it is deleted


def _concrete_type(kind: Any) -> Any:
    """The type of a column: text if its first rows have no value, because later ones may have text."""
    from pyarrow import list_, string, struct, types

    if types.is_null(kind):
        return string()
    if types.is_list(kind):
        return list_(_concrete_type(kind.value_type))
    if types.is_struct(kind):
        return struct([(each.name, _concrete_type(each.type)) for each in kind])
    return kind


WRITERS: dict[str, Callable[[IO[bytes]], _Writer]] = {
    "jsonl": _JsonWriter,
    **{kind: partial(_DelimitedWriter, delimiter=delimiter) for kind, delimiter in DELIMITERS.items()},
    "parquet": _ParquetWriter,
    "txt": _TextWriter,
}


def write_advice(error: OSError) -> str:
    """What the user can do about a file that cannot be written."""
    return "Check the permissions" if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else "Free some space"


class RecordWriter:
    """Writes rows to a file, whole or not at all: it appears when the ``with`` block ends without an exception.

    JSONL accepts any rows; a table (CSV, TSV, Parquet) has the columns of its first rows; plain text has one column. In
    CSV and TSV a list is written as ``a|b`` (as a JSON list if a name contains a separator), an object as JSON.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False, format: str | None = None) -> None:
        self.path = str(path)
        self._kind, self._compressed = format_of(self.path, format)
        self._target: Path | None = None
        if self.path != STANDARD_STREAM:
            self._target = Path(os.path.realpath(path))  # a symbolic link stays, and points to the new file
            if not self._target.parent.is_dir():
                raise AwattError(f"{path}: there is no folder '{self._target.parent}'. Create it first.")
            if self._target.exists() and not self._target.is_file():
                raise AwattError(f"{path}: this is not a regular file. Name a file, or '-' for stdout.")
            if self._target.exists() and not overwrite:
                raise AwattError(f"{path}: the file already exists. Use --overwrite to replace it, or another name.")

    def __enter__(self) -> Self:
        with self._write_errors(), ExitStack() as stack:
            if self._target is None:
                stream: IO[bytes] = sys.stdout.buffer
                stack.callback(stream.flush)
            else:
                self._temporary = self._target.with_name(f".awatt-{secrets.token_hex(8)}.tmp")
                stream = stack.enter_context(open(self._temporary, "xb"))
            if self._compressed:  # without name and time, so that the same rows give the same bytes
                zipped = gzip.GzipFile(filename="", mode="wb", fileobj=stream, compresslevel=6, mtime=0)
                stream = cast("IO[bytes]", stack.enter_context(zipped))
            self._writer = WRITERS[self._kind](stream)
            self._streams = stack.pop_all()
        return self

    def write(self, records: Sequence[Row]) -> None:
        """Add rows."""
        if records:
            with self._write_errors():
                self._writer.write(records)

    def write_header(self, row: Row) -> None:
        """Write the column names of a table that has no rows; ``row`` is an example of one and is not written."""
        with self._write_errors():
            self._writer.write_header(row)

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        try:
            if failure is None:
                with self._write_errors():
                    self._writer.close()
                    self._streams.close()
                    if self._target is not None:
                        os.replace(self._temporary, self._target)
        finally:  # nothing to do after success; after a failure, errors of closing do not matter
            with suppress(Exception):
                self._writer.abandon()
            with suppress(Exception):
                self._streams.close()
            if self._target is not None:
                self._temporary.unlink(missing_ok=True)

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Turn errors of writing into one line."""
        name = "stdout" if self._target is None else self.path
        try:
            yield
        except BrokenPipeError:  # whoever reads stdout has stopped: left to the command line
            raise
        except OSError as error:
            advice = f"{write_advice(error)}, or choose another place."
            raise AwattError(f"{name}: cannot be written ({reason(error)}). {advice}") from error
        except InvalidValueError as error:
            raise AwattError(f"{name}: {error}") from None
        except UnicodeEncodeError as error:
            text = short_repr(error.object[max(0, error.start - 20) : error.end])
            raise AwattError(f"{name}: a row contains an unpaired surrogate, at the end of {text}.") from None
