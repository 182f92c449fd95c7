"""Records in: JSONL, CSV, TSV, Parquet and plain text, each also gzipped, a batch at a time.

The suffix names the format; ``-`` is stdin.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from awatt.errors import AwattError, DataError
from awatt.records.format_readers import READERS, OpenPart, Report, Rows, Source, raise_fault
from awatt.records.formats import SEPARATORS, STANDARD_STREAM, Row, UnfitError, format_of, shown


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
    on_columns: Callable[[Sequence[str]], None] = lambda names: None,
    part: OpenPart | None = None,
) -> Iterator[list[Record]]:
    """Give the records of ``path`` in lists of ``batch_size``, reading little further than asked for.

    Aspects are a list, or a string: a JSON list, or names between ``separator`` (None: ``|`` or ``;``).
    ``format``, such as "csv" or "txt.gz", goes before the suffix; stdin is JSONL unless it says otherwise.
    The first fault raises. With ``on_error``, faulty rows are reported there and skipped, and only a fault of
    the whole file raises (cut short, no such column). ``on_columns`` is given the names of a table's columns.
    ``part`` is what to read of the file; lines count from its beginning.
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
    source = Source(path, compressed, text_column, batch_size, on_error or raise_fault, on_columns, part)
    return _batches(source, READERS[kind](source), aspects_column, separators)


def _batches(source: Source, rows: Rows, aspects_column: str, separators: re.Pattern[str]) -> Iterator[list[Record]]:
    with source.opened:
        batch: list[Record] = []
        for line, row in rows:
            try:
                batch.append(_record(source, line, row, aspects_column, separators))
            except DataError as error:
                source.report(error)
                continue
            if len(batch) == source.batch_size:
                yield batch
                batch = []
        if batch:
            yield batch


def _record(
    source: Source, line: int, row: dict[str, object], aspects_column: str, separators: re.Pattern[str]
) -> Record:
    """Turn a row, which it takes apart, into a record."""
    if source.text_column not in row:
        source.check_columns(list(row), line)
    text = row.pop(source.text_column)
    if not isinstance(text, str):
        message = f"found {shown(text)}, but text is needed. Fill it in or remove the row."
        raise source.fault(message, line, source.text_column)
    try:
        return Record(text, _aspects(row.pop(aspects_column, None), separators), row, line)
    except UnfitError as error:
        raise source.fault(str(error), line, aspects_column) from None


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
