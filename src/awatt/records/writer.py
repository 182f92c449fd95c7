"""Writes records to JSONL, CSV, TSV, Parquet and plain text, each also gzipped; a file appears whole or not at all.

Each format has a small writer; `RecordWriter` puts the finished file in its place.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from json.encoder import encode_basestring
from pathlib import Path
from typing import IO, Any, Self, cast

from awatt.errors import AwattError
from awatt.files import FileLock, file_advice
from awatt.records.formats import (
    AMBIGUOUS,
    DELIMITERS,
    OUT_FORMATS,
    STANDARD_STREAM,
    InvalidValueError,
    Row,
    format_of,
    import_pyarrow,
    reason,
    short_repr,
    to_json,
    to_plain,
)
from awatt.records.spreadsheet import BOM, escape_formula
from awatt.records.tables import JsonLines, JsonTexts, Table, to_tables

ROW_GROUP = 16_384  # rows per Parquet row group: enough to compress well, few enough to keep in memory


def to_cell(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return to_json(value)
    if not isinstance(value, list | tuple):
        return to_plain(value)
    if all(isinstance(name, str) and not AMBIGUOUS.search(name) for name in value):
        names = "|".join(value)
        if not names.lstrip().startswith("["):
            return names
    return to_json(value)


def _to_cells(values: Sequence[object]) -> Sequence[object]:
    return values if set(map(type, values)) <= _CELLS else list(map(to_cell, values))


_CELLS = {str, int, float, bool, type(None)}  # what the csv module writes as it should be


class _Writer:
    """Writes rows to a stream. A table has the columns of its first rows."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.columns: dict[str, Any] = {}  # with their types where the format has types

    def write(self, tables: Any) -> None:
        raise NotImplementedError

    def write_header(self, row: Row) -> None:
        """Write the column names of a table that has no rows."""

    def close(self) -> None:
        """Write what is pending."""

    def abandon(self) -> None:
        """Release everything after a failure, without writing."""

    def check_columns(self, tables: Sequence[Table]) -> None:
        """Raise if a row has a column that the first rows do not have; before those, they are the columns."""
        names = dict.fromkeys(chain.from_iterable(table.columns for table in tables))
        self.columns = self.columns or names
        for name in names:
            if name not in self.columns:
                known = ", ".join(map(repr, self.columns))
                advice = "Write .jsonl, whose rows may differ."
                raise InvalidValueError(f"found the column '{name}', but the first rows have {known}. {advice}")


class _JsonWriter(_Writer):
    def write(self, tables: Sequence[Table | JsonLines]) -> None:
        for table in tables:
            self.stream.write(table.content if isinstance(table, JsonLines) else _json_lines(table).encode())


def to_json_lines(tables: Sequence[Table]) -> JsonLines:
    """The bytes that would be written."""
    content = "".join(map(_json_lines, tables)).encode()
    return JsonLines(sum(table.n_rows for table in tables), content)


def _json_lines(table: Table) -> str:
    """All rows: what stands around the values is the same in each, so one join puts them together."""
    row = [piece for text in around_values(table.columns) for piece in (text, "")][:-1]
    row[-1] += "\n"
    pieces = row * table.n_rows
    for place, values in enumerate(table.columns.values()):
        pieces[2 * place + 1 :: len(row)] = _to_json_texts(values)
    return "".join(pieces)


def around_values(names: Iterable[str]) -> list[str]:
    """What stands before, between and after the values of an object in JSON."""
    keys = [f"{to_json(name)}: " for name in names]
    return ["{" + keys[0], *(f", {key}" for key in keys[1:]), "}"] if keys else ["{}"]


def _to_json_texts(values: Sequence[object]) -> Iterable[str]:
    if isinstance(values, JsonTexts):
        return values
    kinds = set(map(type, values))
    if kinds == {str}:
        return map(encode_basestring, cast("Sequence[str]", values))
    return map(str if kinds == {int} else to_json, values)


class _TextWriter(_Writer):
    def write(self, tables: Sequence[Table]) -> None:
        for row in chain.from_iterable(table.rows() for table in tables):
            text = next(iter(row.values()), None)
            if len(row) != 1 or not isinstance(text, str) or "\n" in text or "\r" in text:
                needed = "plain text takes one column of text without line breaks"
                raise InvalidValueError(f"{needed}, but found {short_repr(row)}. Write .jsonl.")
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

    def write(self, tables: Sequence[Table]) -> None:
        header = not self.columns
        self.check_columns(tables)
        self.write_cells([self.columns] if header else [])
        for table in tables:
            none = [None] * table.n_rows
            cells = [_to_cells(table.columns.get(name, none)) for name in self.columns]
            self.write_cells(list(zip(*cells, strict=True)))

    def write_header(self, row: Row) -> None:
        if not self.columns:
            self.columns = dict.fromkeys(row)
            self.write_cells([self.columns])

    def write_cells(self, rows: Sequence[Iterable[object]]) -> None:
        whole = io.StringIO(newline="")
        csv.writer(whole, delimiter=self.delimiter, lineterminator=_CsvLines.END).writerows(rows)
        text = whole.getvalue()
        if text.count("\r") == len(rows):  # none but those of the line ends
            self.stream.write(text.replace(_CsvLines.END, "\n").encode())
            return
        lines = _CsvLines()
        csv.writer(lines, delimiter=self.delimiter, lineterminator=_CsvLines.END).writerows(rows)
        self.stream.write("".join(lines).encode())


class _ExcelWriter(_DelimitedWriter):
    """CSV that begins with the mark of UTF-8, without formulas."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream, ",")

    def write(self, tables: Sequence[Table]) -> None:
        self.write_mark()
        super().write(tables)

    def write_header(self, row: Row) -> None:
        self.write_mark()
        super().write_header(row)

    def write_mark(self) -> None:
        if not self.columns:  # at the beginning of the file
            self.stream.write(BOM)

    def write_cells(self, rows: Sequence[Iterable[object]]) -> None:
        super().write_cells([[escape_formula(cell) for cell in row] for row in rows])


class _ParquetWriter(_Writer):
    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream)
        self.pending: list[Table] = []
        self.file: Any = None

    def write(self, tables: Sequence[Table]) -> None:
        self.pending.extend(tables)
        if sum(table.n_rows for table in self.pending) >= ROW_GROUP:
            self.write_pending()

    def write_header(self, row: Row) -> None:
        self.pending = to_tables([row])
        self.write_pending(count=0)

    def write_pending(self, count: int | None = None) -> None:
        """Write the first ``count`` pending rows, or all of them; the types of the columns come from all."""
        pyarrow = import_pyarrow()
        self.check_columns(self.pending)
        table = pyarrow.table({name: self.to_array(name) for name in self.columns})
        try:
            self.file = self.file or pyarrow.parquet.ParquetWriter(self.stream, table.schema)
            self.file.write_table(table.slice(0, count))
        except pyarrow.ArrowException as error:
            raise InvalidValueError(f"Parquet cannot store these rows ({reason(error)}). Write .jsonl.") from error
        self.pending = []

    def to_array(self, name: str) -> Any:
        """The pending values of a column, with the type of its first values."""
        pyarrow = import_pyarrow()
        values = [value for table in self.pending for value in table.columns.get(name, [None] * table.n_rows)]
        try:
            array = pyarrow.array(values)
            found = array.type
            kind = self.columns[name] = self.columns[name] or _concrete_type(found)
            if found == kind:
                return array
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
    pyarrow = import_pyarrow()
    if pyarrow.types.is_null(kind):
        return pyarrow.string()
    if pyarrow.types.is_list(kind):
        return pyarrow.list_(_concrete_type(kind.value_type))
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([(each.name, _concrete_type(each.type)) for each in kind])
    return kind


WRITERS: dict[str, Callable[[IO[bytes]], _Writer]] = {
    "jsonl": _JsonWriter,
    **{kind: partial(_DelimitedWriter, delimiter=delimiter) for kind, delimiter in DELIMITERS.items()},
    "excel": _ExcelWriter,
    "parquet": _ParquetWriter,
    "txt": _TextWriter,
}


class RecordWriter:
    """Writes rows to a file, whole or not at all: it appears when the ``with`` block ends without an exception.

    Until then no other process can write the same file: that one gets an error.
    JSONL accepts any rows; a table (CSV, TSV, Parquet) has the columns of its first rows; plain text has one column. In
    CSV and TSV a list is written as ``a|b`` (as JSON if a name contains ``|``, ``;`` or ``,``), an object as JSON.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False, format: str | None = None) -> None:
        self.path = str(path)
        self._kind, self._compressed = format_of(self.path, format, OUT_FORMATS)
        if self._kind == "parquet":
            import_pyarrow()  # now, not after the work
        self._target: Path | None = None
        if self.path != STANDARD_STREAM:
            self._target = Path(os.path.realpath(path))  # a symbolic link stays, and points to the new file
            if not self._target.parent.is_dir():
                raise AwattError(f"{path}: there is no folder '{self._target.parent}'. Create it first.")
            if self._target.exists() and not self._target.is_file():
                raise AwattError(f"{path}: this is not a regular file. Name a file, or '-' for stdout.")
            with self._write_errors():
                self._lock = FileLock(self._target)
            if self._target.exists() and not overwrite:
                self._lock.release()
                raise AwattError(f"{path}: the file already exists. Use --overwrite to replace it, or another name.")
            self._temporary = self._target.with_name(f".{self._target.name}.tmp")

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._clean_up()
            raise
        return self

    def _open(self) -> None:
        with self._write_errors(), ExitStack() as stack:
            if self._target is None:
                stream: IO[bytes] = sys.stdout.buffer
                stack.callback(stream.flush)
            else:
                stream = stack.enter_context(open(self._temporary, "wb"))
            if self._compressed:  # without name and time, so that the same rows give the same bytes
                zipped = gzip.GzipFile(filename="", mode="wb", fileobj=stream, compresslevel=6, mtime=0)
                stream = cast("IO[bytes]", stack.enter_context(zipped))
            self._writer = WRITERS[self._kind](stream)
            self._streams = stack.pop_all()

    def write(self, records: Sequence[Row]) -> None:
        """Add rows."""
        self.write_tables(to_tables(records))

    def write_tables(self, tables: Sequence[Table] | Sequence[JsonLines]) -> None:
        """Add the rows of tables; lines of JSON only to JSONL."""
        if tables:
            with self._write_errors():
                self._writer.write(tables)

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
            self._clean_up()

    def _clean_up(self) -> None:
        if self._target is not None:
            self._temporary.unlink(missing_ok=True)
            self._lock.release()

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Turn errors of writing into one line."""
        name = "stdout" if self._target is None else self.path
        try:
            yield
        except BrokenPipeError:  # whoever reads stdout has stopped: left to the command line
            raise
        except OSError as error:
            advice = f"{file_advice(error)}, or choose another place."
            raise AwattError(f"{name}: cannot be written ({reason(error)}). {advice}") from error
        except InvalidValueError as error:
            raise AwattError(f"{name}: {error}") from None
        except UnicodeEncodeError as error:
            text = short_repr(error.object[max(0, error.start - 20) : error.end])
            raise AwattError(f"{name}: a row contains an unpaired surrogate, at the end of {text}.") from None
