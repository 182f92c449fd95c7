"""What reading and writing records share: the names of the formats, and how values are shown and turned into JSON."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal

from awatt.errors import DataError

FORMATS = ("jsonl", "csv", "tsv", "parquet", "txt")
DELIMITERS = {"csv": ",", "tsv": "\t"}
STANDARD_STREAM = "-"
LONGEST_LINE = 2**24  # characters; bounds the memory when a quote never closes or a file is one huge line
SEPARATORS = re.compile(r"[|;]")  # no comma: the name of an aspect may hold one
HINTS = {
    "json": " A .json file is one value; give one object a line: jq -c '.[]' in.json > out.jsonl",
    "xlsx": " Save the sheet as CSV (UTF-8).",
}

Row = Mapping[str, object]


def format_of(path: str, format: str | None) -> tuple[str, bool]:
    """The name of the format and whether it is gzipped."""
    if format is None and path == STANDARD_STREAM:
        format = "jsonl"
    name = f".{format}".lower() if format else os.path.basename(path).lower()
    _, dot, kind = name.removesuffix(".gz").rpartition(".")
    if not dot or kind not in FORMATS:
        found = f"the format '{format}'" if format else f"the suffix '{dot and dot + kind}'"
        known = ", ".join(f".{each}" for each in FORMATS)
        hint = HINTS.get(kind, "")
        raise DataError(f"{found} is not known. Use {known}, or one of them with .gz.{hint}", path)
    return kind, name.endswith(".gz") or path.lower().endswith(".gz")


_limits: list[int] = []
_limits_lock = threading.RLock()


@contextmanager
def long_cells() -> Iterator[None]:
    """Let csv take long cells. Its limit is the process's: the last reader to end puts the first one back."""
    with _limits_lock:
        _limits.append(csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit())))
    try:
        yield
    finally:
        with _limits_lock:
            csv.field_size_limit(_limits.pop())


def shown(value: object) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def reason(error: Exception) -> str:
    known = error.strerror if isinstance(error, OSError) else None
    return known or " ".join(str(error).split())  # one line


class UnfitError(Exception):
    """A value that does not fit; who catches it knows the place."""


def plain(value: object) -> object:
    """What JSON and CSV write for a value that they do not have."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, date | time | timedelta | Decimal):
        return str(value)
    raise UnfitError(f"found {shown(value)}, which this format cannot hold. Write .parquet.")


JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=plain)


def to_json(value: object) -> str:
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
