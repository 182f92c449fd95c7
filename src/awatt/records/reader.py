"""Reads rows or records in batches from JSONL, CSV, TSV, Parquet and plain text, each also gzipped.

The suffix tells the format; ``-`` is stdin.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import cast

from awatt.errors import AwattError, DataError
from awatt.files import parse_json
from awatt.records.bounds import Meter
from awatt.records.format_readers import READERS
from awatt.records.formats import SEPARATORS, STANDARD_STREAM, InvalidValueError, Row, format_of, short_repr
from awatt.records.source import Block, OnError, OpenPart, Source, raise_error

MAX_BATCH = 64 * 2**20  # bytes: a batch of huge rows is shorter, so that it fits into memory


@dataclass(frozen=True, slots=True)
class Record:
    """A sentence, its aspects (none if unlabelled), the other columns in order, and the line where it begins."""

    text: str
    aspects: tuple[str, ...] = ()
    fields: Row = field(default_factory=dict)
    line: int = 0  # from 1; for Parquet the number of the row


def read_records(
    path: str | Path,
    *,
    text_column: str = "text",
    aspects_column: str | None = "aspects",
    batch_size: int = 1024,
    format: str | None = None,
    on_error: OnError = raise_error,
    part: OpenPart | None = None,
    meter: Meter | None = None,
) -> Iterator[list[Record]]:
    """Yield the records of ``path`` in lists of ``batch_size``, without reading far ahead.

    Aspects are a list, or a string: a JSON list, or names separated by ``|`` or ``;`` (a comma alone is an error,
    because it may separate names or be part of one). With ``aspects_column=None`` they are a column like any other.
    ``format``, such as "csv" or "txt.gz", takes precedence over the suffix; stdin is JSONL by default.
    The first error raises. With another ``on_error`` bad rows are reported there and skipped, and only an error of the
    whole file raises (cut short, no such column).
    ``part`` is the part of the file to read; lines are counted from its beginning.
    ``meter`` limits rows, bytes and time.
    """
    source, blocks = _open(path, text_column, batch_size, format, on_error, lambda names: None, part, meter)
    return _records(source, blocks, aspects_column)


def read_rows(
    path: str | Path,
    *,
    text_column: str = "text",
    batch_size: int = 1024,
    format: str | None = None,
    on_error: OnError = raise_error,
    on_columns: Callable[[Sequence[str]], None] = lambda names: None,
    part: OpenPart | None = None,
) -> Iterator[list[dict[str, object]]]:
    """Like `read_records`, but yields plain dicts and treats the aspects column like any other.

    Faster, with less memory. The text column of each row has text. ``on_columns`` receives the column names of a table.
    """
    source, blocks = _open(path, text_column, batch_size, format, on_error, on_columns, part, None)
    return _batches(source, blocks)


def _open(
    path: str | Path,
    text_column: str,
    batch_size: int,
    format: str | None,
    on_error: OnError,
    on_columns: Callable[[Sequence[str]], None],
    part: OpenPart | None,
    meter: Meter | None,
) -> tuple[Source, Iterator[Block]]:
    path = str(path)
    if part is None and path != STANDARD_STREAM and not os.path.exists(path):
        raise DataError("there is no such file. Check the path.", path)
    if os.path.isdir(path):
        raise DataError("this is a folder, but a file is needed. Name a file in it.", path)
    kind, compressed = format_of(path, format)
    if batch_size < 1:
        raise AwattError(f"the batch size is {batch_size}, but at least 1 is needed.")
    source = Source(path, compressed, text_column, batch_size, on_error, on_columns, part, meter=meter)
    return source, READERS[kind](source)


def _batches(source: Source, blocks: Iterator[Block]) -> Iterator[list[dict[str, object]]]:
    """The rows with text, ``batch_size`` at a time, or fewer if they are huge."""
    with source.opened:
        batch, size = list[dict[str, object]](), 0
        for block in blocks:
            batch += _with_text(source, block)
            size += block.size
            while len(batch) >= source.batch_size:
                yield batch[: source.batch_size]
                batch, size = batch[source.batch_size :], 0
            if size > MAX_BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def _with_text(source: Source, block: Block) -> list[dict[str, object]]:
    with suppress(KeyError):
        if set(map(type, map(itemgetter(source.text_column), block.rows))) <= {str}:
            return block.rows
    good = []
    for line, row in zip(block.lines, block.rows, strict=True):
        try:
            _check_text(source, line, row)
            good.append(row)
        except DataError as error:
            source.on_error(error)
    return good


def _check_text(source: Source, line: int, row: dict[str, object]) -> None:
    if source.text_column not in row:
        source.check_columns(list(row), line)
    text = row[source.text_column]
    if not isinstance(text, str):
        message = f"found {short_repr(text)}, but text is needed. Fill it in or remove the row."
        raise source.error(message, line, source.text_column)


def _records(source: Source, blocks: Iterator[Block], aspects_column: str | None) -> Iterator[list[Record]]:
    with source.opened:
        batch, size = list[Record](), 0
        for block in blocks:
            for line, row in zip(block.lines, block.rows, strict=True):
                if source.meter is not None:
                    source.meter.add(rows=1)
                try:
                    batch.append(_record(source, line, row, aspects_column))
                except DataError as error:
                    source.on_error(error)
                if len(batch) == source.batch_size:
                    yield batch
                    batch, size = [], 0
            size += block.size
            if size > MAX_BATCH and batch:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def _record(source: Source, line: int, row: dict[str, object], aspects_column: str | None) -> Record:
    """Turn a row into a record; columns are removed from the row."""
    _check_text(source, line, row)
    text = cast("str", row.pop(source.text_column))
    try:
        return Record(text, _aspects(row.pop(aspects_column, None) if aspects_column else None), row, line)
    except InvalidValueError as error:
        raise source.error(str(error), line, aspects_column) from None


def _aspects(value: object) -> tuple[str, ...]:
    """The names in a list or a string, stripped, without duplicates."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ()
    if isinstance(value, str):
        value = _split_names(value.strip())
    if not isinstance(value, list):
        raise InvalidValueError(f"found {short_repr(value)}, but a list of names is needed, or text like food|service.")
    names: dict[str, None] = {}
    for name in value:
        if isinstance(name, str):
            names[name.strip()] = None
        elif name is not None:
            raise InvalidValueError(f"found {short_repr(name)} in the list, but each name must be text.")
    names.pop("", None)
    return tuple(names)


def _split_names(text: str) -> object:
    if not (text.startswith("[") and text.endswith("]")):
        if "," in text and not SEPARATORS.search(text):
            names = "|".join(name.strip() for name in text.split(","))
            advice = f"Write {names} if these are several aspects, or {json.dumps([text], ensure_ascii=False)} if one"
            raise InvalidValueError(f"found {short_repr(text)}, with a comma. {advice[:200]}.")
        return SEPARATORS.split(text)
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        advice = 'Write ["food", "service"] or food|service.'
        raise InvalidValueError(f"found {short_repr(text)}, which is not a JSON list. {advice}") from None
