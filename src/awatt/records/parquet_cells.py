"""Parquet without its traps: a value that occurs a million times is stored once, in the file and in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_REPEATED = 2**26  # values of a list column in one row group: they are decoded together


def check_lists(metadata: Any) -> str | None:
    """What is wrong with the list columns: a few bytes can stand for a billion values in one row."""
    repeated = [i for i in range(metadata.num_columns) if metadata.schema.column(i).max_repetition_level]
    for number in range(metadata.num_row_groups):
        for each in repeated:
            column = metadata.row_group(number).column(each)
            if column.num_values > MAX_REPEATED:
                found = f"the list column '{column.path_in_schema}' has {column.num_values:,} values in one row group"
                return f"{found}, but at most {MAX_REPEATED:,} can be read. Write smaller row groups."
    return None


def text_columns(metadata: Any) -> list[str]:
    """The columns to read as a dictionary, which Arrow would otherwise expand."""
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return [each.path for each in columns if each.physical_type == "BYTE_ARRAY" and each.logical_type.type == "STRING"]


def read_cells(column: Any) -> Iterable[object]:
    """The values of a column of a batch. Equal ones of a dictionary are one object; lists are made one at a time."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        used = column.indices.unique().drop_null()
        values = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
        return [values.get(index) for index in column.indices.to_pylist()]
    if types.is_nested(column.type):
        return (each.as_py() for each in column)
    found: list[object] = column.to_pylist()
    return found
