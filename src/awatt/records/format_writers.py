"""A writer for each format: it writes tables to a stream."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from json.encoder import encode_basestring
from operator import ne
from typing import IO, Any, cast

from awatt.records.formats import (
    AMBIGUOUS,
    DELIMITERS,
    InvalidValueError,
    Row,
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
    """A value of any type as CSV has it: a list of names is written as ``a|b``, an object as JSON, NaN as nothing."""
    if value is None or isinstance(value, str | int | float):
        return None if value != value else value  # only NaN differs from itself
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
    kinds = set(map(type, values))
    plain = kinds <= _CELLS and not (float in kinds and any(map(ne, values, values)))  # without NaN
    return values if plain else list(map(to_cell, values))


_CELLS = {str, int, float, bool, type(None)}  # what the csv module writes as it should be, except NaN


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
