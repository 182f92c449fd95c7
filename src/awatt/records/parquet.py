"""Read Parquet within memory limits: a value that occurs a million times is stored once, in the file and in memory."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from awatt.records.bounds import limited_memory
from awatt.records.formats import import_pyarrow, reason
from awatt.records.source import Block, Source

MAX_REPEATED = 2**26  # values of a list column in one row group: those of a row are decoded together
MAX_DECODING = 2**29  # bytes that Arrow may take to decode a batch, beside 1 GB that it reserves at times
MAX_PIECE = 2**24  # bytes of Arrow's values that become Python's at a time; a row that has more is left out


def read_parquet(source: Source) -> Iterator[Block]:
    """Blocks of rows."""
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
        if problem := _check_lists(metadata):
            raise source.error(problem)
        options = {"metadata": metadata, "read_dictionary": _dictionary_columns(metadata), "buffer_size": 2**20}
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
            cells = zip(*map(_read_cells, piece.columns), strict=True)
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
        yield from _pieces(batch)


def _check_lists(metadata: Any) -> str | None:
    """What is wrong with the list columns: a few bytes can stand for a billion values in one row."""
    repeated = [i for i in range(metadata.num_columns) if metadata.schema.column(i).max_repetition_level]
    for number in range(metadata.num_row_groups):
        for each in repeated:
            column = metadata.row_group(number).column(each)
            if column.num_values > MAX_REPEATED:
                found = f"the list column '{column.path_in_schema}' has {column.num_values:,} values in one row group"
                return f"{found}, but at most {MAX_REPEATED:,} can be read. Write smaller row groups."
    return None


def rows_at_once(metadata: Any, most: int) -> int:
    """How many rows to decode at once: fewer if they are long."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    longest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(most, MAX_PIECE // max(longest, 1)))


def _dictionary_columns(metadata: Any) -> list[str]:
    """The columns to read as a dictionary, which Arrow would otherwise expand. It cannot do so with delta encodings."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [(i, metadata.schema.column(i)) for i in range(metadata.num_columns)]
    encodings = {i: {each for group in groups for each in group.column(i).encodings} for i, _ in columns}
    return [
        column.path
        for i, column in columns
        if column.physical_type == "BYTE_ARRAY" and not any(each.startswith("DELTA_") for each in encodings[i])
    ]


def _pieces(batch: Any) -> Iterator[tuple[Any, int]]:
    """The batch, or its rows one by one if it is large; each with the size that `_read_cells` makes of it."""
    size = sum(map(_size, batch.columns))
    if size <= MAX_PIECE:
        yield batch, size
        return
    for row in range(batch.num_rows):
        piece = batch.slice(row, 1)
        yield piece, sum(map(_size, piece.columns))


def _size(column: Any, nested: bool = False) -> int:
    """About as many bytes as its values have in Python. Equal texts are one object, but not if they are nested."""
    from pyarrow import compute, types

    size = 8 * len(column)
    if types.is_dictionary(column.type):
        used = column.indices.value_counts()
        lengths = compute.binary_length(column.dictionary).take(used.field("values"))
        times = used.field("counts") if nested else 1
        return size + (compute.sum(compute.multiply(lengths, times)).as_py() or 0)
    if types.is_struct(column.type):
        return size + sum(_size(each, nested=True) for each in column.flatten())
    if types.is_map(column.type):
        first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
        return size + sum(_size(each.slice(first, last - first), nested=True) for each in (column.keys, column.items))
    if types.is_nested(column.type):
        return size + _size(column.flatten(), nested=True)
    return size + int(column.nbytes)


def _read_cells(column: Any) -> Iterable[object]:
    """The values of a column of a batch. Equal ones of a dictionary are one object."""
    from pyarrow import duration, timestamp, types

    if types.is_dictionary(column.type):
        used = column.indices.unique().drop_null()
        values = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
        return [values.get(index) for index in column.indices.to_pylist()]
    # Python's times have microseconds; for nanoseconds pyarrow would need pandas.
    if types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(timestamp("us", column.type.tz), safe=False)
    elif types.is_duration(column.type) and column.type.unit == "ns":
        column = column.cast(duration("us"), safe=False)
    found: list[object] = column.to_pylist()
    return found
