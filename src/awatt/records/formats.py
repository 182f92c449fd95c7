"""What readers and writers share: the formats, and values as JSON and in error messages."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from awatt.errors import DataError, require

FORMATS = ("jsonl", "csv", "tsv", "parquet", "txt")
OUT_FORMATS = (*FORMATS, "excel")  # the last is CSV as Excel needs it; it is read as csv
DELIMITERS = {"csv": ",", "tsv": "\t"}
STANDARD_STREAM = "-"
MAX_LINE = 2**24  # characters; limits memory if a quote is never closed or a file is one huge line
SEPARATORS = re.compile(r"[|;]")  # of aspects in a cell; a comma may as well be part of a name
AMBIGUOUS = re.compile(r"[|;,]")  # a list with such a name is written as JSON
HINTS = {
    "json": " A .json file is a single value; write one object per line: jq -c '.[]' in.json > out.jsonl",
    "xlsx": " Save the sheet as CSV (UTF-8).",
}
OUT_HINTS = {
    "json": " Write .jsonl: one object per line.",
    "xlsx": " For Excel, write a .csv file with --out-format excel.",
}

_SHOWN = 60  # characters of a value in an error message
_NAMED = 50  # columns in one

Row = Mapping[str, object]


def format_of(path: str, format: str | None, formats: Sequence[str] = FORMATS) -> tuple[str, bool]:
    """The name of the format, and whether the file is gzipped. ``format`` takes precedence over the suffix.

    ``formats`` can be given by name; a suffix is always one of `FORMATS`.
    """
    allowed = formats if format else FORMATS
    if format is None and path == STANDARD_STREAM:
        format = "jsonl"
    name = f".{format}".lower() if format else os.path.basename(path).lower()
    _, dot, kind = name.removesuffix(".gz").rpartition(".")
    if not dot or kind not in allowed:
        found = f"the format '{format}'" if format else f"the suffix '{dot and dot + kind}'"
        written = formats == OUT_FORMATS  # plain text can be written, but not with aspects
        known = ", ".join(f".{each}" for each in allowed if not written or each != "txt")
        hint = (OUT_HINTS if written else HINTS).get(kind, "")
        raise DataError(f"{found} is not supported. Use {known}, or one of these with .gz.{hint}", path)
    return kind, name.endswith(".gz") or path.lower().endswith(".gz")


def import_pyarrow() -> Any:
    """``pyarrow`` with ``pyarrow.parquet``; raise an error that names the extra if it is not installed."""
    require("pyarrow.parquet", "parquet")
    return require("pyarrow", "parquet")


_limits: list[int] = []
_limits_lock = threading.RLock()


@contextmanager
def allow_long_cells() -> Iterator[None]:
    """Let the csv module accept long cells. Its limit is global: the last reader to finish restores the first one."""
    with _limits_lock:
        _limits.append(csv.field_size_limit(max(MAX_LINE, csv.field_size_limit())))
    try:
        yield
    finally:
        with _limits_lock:
            csv.field_size_limit(_limits.pop())


def short_repr(value: object) -> str:
    """A value as an error message quotes it: at most 60 characters, with the closing quote of a text."""
    text = "null" if value is None else repr(value)
    if len(text) <= _SHOWN:
        return text
    end = f"...{text[-1]}" if isinstance(value, str | bytes) else "..."
    return text[: _SHOWN - len(end)] + end


def list_columns(names: Collection[str]) -> str:
    """The names of columns as an error message lists them: at most 50."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return (", ".join(map(short_repr, islice(names, _NAMED))) or "none") + more


def reason(error: Exception) -> str:
    """What an exception says, in one line."""
    known = error.strerror if isinstance(error, OSError) else None
    return known or " ".join(str(error).split())


class InvalidValueError(Exception):
    """A value that cannot be read or written. Whoever catches it adds the file and the line."""


def to_plain(value: object) -> object:
    """A value of a type that JSON and CSV lack, as one that they have."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, date | time | timedelta | Decimal):
        return str(value)
    raise InvalidValueError(f"found {short_repr(value)}, which this format cannot store. Write .parquet.")


JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=to_plain)


def to_json(value: object) -> str:
    """A value as JSON; NaN and infinity, which JSON lacks, become null."""
    try:
        return JSON.encode(value)
    except ValueError:
        return JSON.encode(_without_nan(value))


def _without_nan(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
