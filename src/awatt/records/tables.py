"""Rows as columns: what is written is encoded column by column, which is several times as fast as row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from awatt.records.formats import Row


class JsonTexts(list[str]):
    """Values that are JSON already."""


class Table(NamedTuple):
    """Rows that have the same columns, in the same order."""

    n_rows: int
    columns: dict[str, Sequence[object]]

    def rows(self) -> Iterator[dict[str, object]]:
        """Row by row."""
        for number in range(self.n_rows):
            yield {name: values[number] for name, values in self.columns.items()}


class JsonLines(NamedTuple):
    """Rows as the bytes of a JSONL file."""

    n_rows: int
    content: bytes


def to_tables(rows: Iterable[Row]) -> list[Table]:
    """The rows in order; a table ends where the columns change."""
    return [_table(names, list(group)) for names, group in groupby(rows, key=tuple)]


def _table(names: tuple[str, ...], rows: Sequence[Mapping[str, object]]) -> Table:
    return Table(len(rows), {name: [row[name] for row in rows] for name in names})
