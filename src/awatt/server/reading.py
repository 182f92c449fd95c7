"""Reading uploaded reviews: bytes and the name of a format, never a path."""

from __future__ import annotations

import csv
import gzip
import io
import json
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.resources import as_file, files
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

from awatt.detector.words import split_sentences
from awatt.errors import AwattError, DataError
from awatt.records.bounds import CountedStream, Meter
from awatt.records.conversion import to_readable
from awatt.records.formats import DELIMITERS, FORMATS, MAX_LINE, allow_long_cells
from awatt.records.reader import Record, read_records
from awatt.server.errors import ServiceError, TooLargeError
from awatt.server.limits import Limits, check_count, check_length
from awatt.server.progress import Progress

Review = tuple[dict[str, object], list[str]]
PREVIEW_ROWS = 5
PREVIEW_SCAN = 1_000  # rows in which a preview looks for text
PREVIEW_SECONDS = 10.0  # and for how long
MAX_ERRORS = 20  # rows that could not be read, whose errors are kept
N_SHOT = 5  # examples per aspect of a sample
IN_LIST = "with column=NAME, or in the column list"  # how the column with the text is named


@contextmanager
def temporary_file(content: bytes, format: str, named: str = IN_LIST) -> Iterator[Path]:
    """The bytes as a temporary file, since the readers read files; error messages call it "the file".

    ``named`` says in them how the column with the text is named.
    """
    if format.removesuffix(".gz") not in FORMATS:
        known = f"json, xlsx, or one of {', '.join(FORMATS)}, optionally with .gz"
        raise ServiceError(f"the format is {format[:40]!r}, but must be {known}.")
    with TemporaryDirectory(prefix="awatt-") as folder:
        path = Path(folder) / "upload"
        path.write_bytes(content)
        try:
            yield path
        except DataError as error:
            raise _of_upload(error, named) from None


def _of_upload(error: DataError, named: str = IN_LIST) -> DataError:
    """The error without our path, and without the option of the command, which neither the page nor its API has."""
    return DataError(error.message.replace("with --text-column", named), "the file", error.line, error.column)


class _EnoughError(Exception):
    """The preview has looked at enough rows."""


def preview(content: bytes, format: str, limits: Limits) -> tuple[list[str], list[dict[str, str]]]:
    """The columns of a file, and its first rows."""
    content, format = to_readable(content, format, Meter(limits.file, too_large), PREVIEW_SCAN)
    with temporary_file(content, format) as path:
        columns = read_columns(path, format, limits)
        if not columns:
            raise ServiceError("the file has no rows. Choose another file.")
        check_count(len(columns), limits.columns, "columns in the file")
        end = time.monotonic() + PREVIEW_SECONDS
        for column in columns:  # until one is found that contains text
            records = _first_records(path, format, column, limits)
            if records:
                rows: list[dict[str, object]] = [{column: record.text, **record.fields} for record in records]
                return columns, [{name: str(row.get(name, ""))[:200] for name in columns} for row in rows]
            if time.monotonic() > end:
                break
        return columns, []


def _first_records(path: Path, format: str, column: str, limits: Limits) -> list[Record]:
    """The first rows with text in this column, among those at the beginning of the file."""
    meter = Meter(replace(limits.file, rows=PREVIEW_SCAN, seconds=PREVIEW_SECONDS), _EnoughError)

    def skip(error: DataError) -> None:
        meter.add(rows=1)

    batches = read_records(
        path, text_column=column, aspects_column=None, format=format, batch_size=1, on_error=skip, meter=meter
    )
    records: list[Record] = []
    with suppress(_EnoughError):
        records.extend(islice(chain.from_iterable(batches), PREVIEW_ROWS))
    return records


def too_large(message: str) -> TooLargeError:
    return TooLargeError(f"the file {message}")


def read_columns(path: Path, format: str, limits: Limits) -> list[str]:
    """The names of the columns."""
    if format.startswith("txt"):
        return ["text"]
    kind = format.removesuffix(".gz")
    try:
        with gzip.open(path, "rb") if format.endswith(".gz") else path.open("rb") as stream:
            counted = CountedStream(cast("IO[bytes]", stream), Meter(limits.file, too_large))
            content = counted.read(MAX_LINE if kind == "jsonl" else 2**20)
    except (OSError, EOFError, zlib.error):
        raise ServiceError("the gzip data is truncated or corrupt. Choose another file.") from None
    head = content.decode("utf-8-sig", errors="replace")
    if kind == "jsonl":
        try:
            first = json.loads(head.strip().partition("\n")[0])
            "".join(first).encode()  # raises for an unpaired surrogate
        except (ValueError, TypeError, RecursionError):
            first = None
        if not isinstance(first, dict):
            raise ServiceError('the first line of the file is not a JSON object such as {"text": "Good food."}.')
        return list(first)
    try:
        with allow_long_cells():
            rows = csv.reader(io.StringIO(head, newline=""), delimiter=DELIMITERS[kind])
            return next(filter(None, rows), [])  # blank lines before the names of the columns are skipped
    except csv.Error as error:
        raise ServiceError(f"the first line of the file does not name its columns ({error}).") from None


def read_reviews(
    content: bytes,
    format: str,
    column: str,
    split: bool,
    limits: Limits,
    keep: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> tuple[list[Review], int, list[str]]:
    """The reviews of a file, each as its other columns and its sentences; the number of unreadable rows, and the first
    of their errors.

    ``keep`` names the other columns to keep, all by default.
    """
    progress = progress or Progress()
    kept = None if keep is None else set(keep)
    errors: list[str] = []
    left_out = 0
    meter = Meter(limits.file, too_large)

    def skip(error: AwattError) -> None:
        nonlocal left_out
        left_out += 1
        meter.add(rows=1)
        if left_out <= MAX_ERRORS:
            errors.append(str(error).replace(str(path), "the file"))

    reviews: list[Review] = []
    total = 0
    with progress.work("reading") as work:
        content, format = to_readable(content, format, Meter(limits.file, too_large))
        with temporary_file(content, format) as path:
            batches = read_records(
                path,
                text_column=column,
                aspects_column=None,
                format=format,
                on_error=lambda error: skip(_of_upload(error)),
                meter=meter,
            )
            for record in chain.from_iterable(batches):
                work.reach(len(reviews))
                fields = {name: value for name, value in record.fields.items() if kept is None or name in kept}
                try:
                    reviews.append((fields, _sentences(record, split, limits)))
                except AwattError as error:
                    skip(error)
                    continue
                total += len(reviews[-1][1])
                if total > limits.sentences:
                    raise ServiceError(f"the file has more than {limits.sentences:,} sentences. Load part of it.")
    if not total and errors:
        raise ServiceError(f"no row of the file can be read. The first error: {errors[0]}")
    if not total:
        raise ServiceError(f"the column '{column}' of the file has no text. Choose another column.")
    return reviews, left_out, errors


def _sentences(record: Record, split: bool, limits: Limits) -> list[str]:
    check_length(record.text, limits.characters, f"the text of line {record.line}")
    if split:
        return [text for _, text in split_sentences(record.text)]
    return [record.text] if record.text.strip() else []


def read_sample(domain: str) -> tuple[list[Review], dict[str, list[str]]]:
    """The bundled sentences of a domain: a few per aspect as examples, all others as reviews."""
    with as_file(files("awatt.data") / "sample.jsonl") as path:
        records = [each for each in chain.from_iterable(read_records(path)) if each.fields["domain"] == domain]
    if not records:
        raise ServiceError(f"there is no sample '{domain[:40]}'. Choose restaurant, hotel or laptop.")
    examples: dict[str, list[str]] = {}
    for record in records:
        if len(record.aspects) == 1 and len(examples.setdefault(record.aspects[0], [])) < N_SHOT:
            examples[record.aspects[0]].append(record.text)
    taken = set(chain.from_iterable(examples.values()))
    rest = [record.text for record in records if record.text not in taken]
    mixed = rest[::3] + rest[1::3] + rest[2::3]  # the file is sorted by aspect
    return [({}, [text]) for text in mixed], examples
