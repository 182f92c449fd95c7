"""Reading uploaded labels: what was exported, or what ``--examples`` takes."""

from __future__ import annotations

from itertools import chain
from typing import TypeAlias

from awatt.detector.examples import Examples, is_labelled
from awatt.files import parse_json
from awatt.records.bounds import Meter
from awatt.records.conversion import to_readable
from awatt.records.formats import MAX_LINE
from awatt.records.reader import Record, read_records
from awatt.records.spreadsheet import unescape_formula
from awatt.server.errors import ServiceError
from awatt.server.limits import Limits, check_count, check_length
from awatt.server.reading import read_columns, temporary_file, too_large

Labelled: TypeAlias = list[tuple[str, tuple[str, ...]]]
COLUMNS = ("text", "aspects")
SPREADSHEETS = ("csv", "tsv", "xlsx")  # exported as CSV, and perhaps saved by a spreadsheet: formulas are escaped
NEEDED = 'Labels have the columns text and aspects: {"text": "Cold soup.", "aspects": ["food"]}.'


def read_labelled(content: bytes, format: str, limits: Limits) -> Labelled:
    """The labelled sentences of a file: each text with the names of its aspects.

    Of exported results only those count that a person has labelled.
    """
    labelled = (format == "json" and _by_aspect(content)) or _by_row(content, format, limits)
    if not labelled:
        raise ServiceError("the file has no labelled sentence. Choose another file.")
    check_count(len(labelled), limits.examples, "examples in the file")
    for number, (text, _) in enumerate(labelled, 1):
        check_length(text, limits.characters, f"example {number} of the file")
    return Examples.from_pairs(labelled).pairs()  # rows with the same text are one sentence


def _by_row(content: bytes, format: str, limits: Limits) -> Labelled:
    meter, is_escaped = Meter(limits.file, too_large), format.removesuffix(".gz") in SPREADSHEETS
    content, format = to_readable(content, format, meter)
    with temporary_file(content, format, "'text'") as path:
        missing = set(COLUMNS).difference(read_columns(path, format, limits))
        if missing:
            raise ServiceError(f"the file has no column {max(missing)!r}. {NEEDED}")
        records = chain.from_iterable(read_records(path, format=format, meter=meter))
        return [_labels(record, is_escaped) for record in records if record.text.strip() and is_labelled(record)]


def _by_aspect(content: bytes) -> Labelled | None:
    """The sentences of {"food": ["Cold soup."], ...}; None if the file is something else."""
    try:
        found = parse_json(content[:MAX_LINE])
    except (ValueError, RecursionError):  # reported by `_by_row`
        return None
    if not isinstance(found, dict) or not all(isinstance(texts, list) for texts in found.values()):
        return None
    if not all(isinstance(text, str) and text.strip() for texts in found.values() for text in texts):
        return None
    return Examples.from_json(found).pairs()


def _labels(record: Record, is_escaped: bool) -> tuple[str, tuple[str, ...]]:
    """A text and its aspects, as they were before results were exported for spreadsheets."""
    if not is_escaped or "by_person" not in record.fields:
        return record.text, record.aspects
    return unescape_formula(record.text), tuple(map(unescape_formula, record.aspects))
