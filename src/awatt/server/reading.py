"""Reading uploaded reviews: bytes and the name of a format, never a path."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from awatt.detector.words import split_sentences
from awatt.errors import AwattError, DataError
from awatt.records.formats import DELIMITERS, FORMATS
from awatt.records.reader import Record, read_records
from awatt.server.limits import Limits, check_length

Review = tuple[dict[str, object], list[str]]
NO_COLUMN = "\0"  # a column of aspects, if there is one, is treated like any other
PREVIEW_ROWS = 5
N_SHOT = 5  # examples per aspect of a sample


@contextmanager
def _temporary_file(content: bytes, format: str) -> Iterator[Path]:
    """The bytes as a temporary file, since the readers read files; error messages call it "the file"."""
    if format.removesuffix(".gz") not in FORMATS:
        raise AwattError(
            f"the format is {format[:40]!r}, but must be one of {', '.join(FORMATS)}, optionally with .gz."
        )
    with TemporaryDirectory(prefix="awatt-") as folder:
        path = Path(folder) / "upload"
        path.write_bytes(content)
        try:
            yield path
        except DataError as error:
            raise AwattError(
                str(error).replace(str(path), "the file").replace("--text-column", "the column list")
            ) from None


def preview(content: bytes, format: str) -> tuple[list[str], list[dict[str, str]]]:
    """The columns of a file, and its first rows."""
    with _temporary_file(content, format) as path:
        columns = _columns(path, format)
        if not columns:
            raise AwattError("the file has no rows. Choose another file.")
        for column in columns:  # until one is found that contains text
            options = {"text_column": column, "aspects_column": NO_COLUMN, "format": format}
            records = list(islice(chain.from_iterable(read_records(path, **options, on_error=_skip)), PREVIEW_ROWS))  # type: ignore[arg-type]
            if records:
                rows: list[dict[str, object]] = [{column: record.text, **record.fields} for record in records]
                return columns, [{name: str(row.get(name, ""))[:200] for name in columns} for row in rows]
        return columns, []


def _skip(error: DataError) -> None:
    """Ignore the error: a preview shows the rows that can be read."""


def _columns(path: Path, format: str) -> list[str]:
    """The names of the columns."""
    if format.startswith("txt"):
        return ["text"]
    kind = format.removesuffix(".gz")
    try:
        with gzip.open(path, "rb") if format.endswith(".gz") else path.open("rb") as stream:
            content = stream.read() if kind == "parquet" else stream.read(2**20)
    except (OSError, EOFError, zlib.error):
        raise AwattError("the gzip data is truncated or corrupt. Choose another file.") from None
    if kind == "parquet":
        return _parquet_columns(content)
    head = content.decode("utf-8-sig", errors="replace")
    if kind == "jsonl":
        try:
            first = json.loads(head.strip().splitlines()[0])
            "".join(first).encode()  # raises for an unpaired surrogate
        except (ValueError, IndexError, TypeError, RecursionError):
            first = None
        if not isinstance(first, dict):
            raise AwattError('the first line of the file is not a JSON object such as {"text": "Good food."}.')
        return list(first)
    return next(csv.reader(io.StringIO(head, newline=""), delimiter=DELIMITERS[kind]), [])


def _parquet_columns(content: bytes) -> list[str]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        return list(ParquetFile(io.BytesIO(content)).schema_arrow.names)
    except (OSError, ArrowException):
        raise AwattError("the file is corrupt or not Parquet. Choose another file, or correct its suffix.") from None


def read_reviews(
    content: bytes, format: str, column: str, split: bool, limits: Limits
) -> tuple[list[Review], list[str]]:
    """The reviews of a file, each as its other columns and its sentences; and the errors of unreadable rows."""
    errors: list[str] = []
    with _temporary_file(content, format) as path:
        batches = read_records(
            path,
            text_column=column,
            aspects_column=NO_COLUMN,
            format=format,
            on_error=lambda error: errors.append(str(error).replace(str(path), "the file")),
        )
        reviews: list[Review] = []
        total = 0
        for record in chain.from_iterable(batches):
            try:
                reviews.append((dict(record.fields), _sentences(record, split, limits)))
            except AwattError as error:
                errors.append(str(error))
                continue
            total += len(reviews[-1][1])
            if total > limits.sentences:
                raise AwattError(f"the file has more than {limits.sentences:,} sentences. Load part of it.")
    if not total and errors:
        raise AwattError(f"no row of the file can be read. The first error: {errors[0]}")
    if not total:
        raise AwattError(f"the column '{column}' of the file has no text. Choose another column.")
    return reviews, errors


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
        raise AwattError(f"there is no sample '{domain[:40]}'. Choose restaurant, hotel or laptop.")
    examples: dict[str, list[str]] = {}
    for record in records:
        if len(record.aspects) == 1 and len(examples.setdefault(record.aspects[0], [])) < N_SHOT:
            examples[record.aspects[0]].append(record.text)
    taken = set(chain.from_iterable(examples.values()))
    rest = [record.text for record in records if record.text not in taken]
    mixed = rest[::3] + rest[1::3] + rest[2::3]  # the file is sorted by aspect
    return [({}, [text]) for text in mixed], examples
