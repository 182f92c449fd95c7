"""Detect aspects in every row of a file, batch by batch, in constant memory."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from awatt.detector.results import Detection, Review
from awatt.detector.reviews import NO_COLUMN, sample_files, sample_records
from awatt.errors import AwattError, DataError
from awatt.records.formats import STANDARD_STREAM, format_of, to_json
from awatt.records.reader import Record, read_records
from awatt.records.resumable import RESUMABLE, ResumableWriter
from awatt.records.writer import RecordWriter

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

BATCH = 1024  # rows
SAMPLE_BYTES = 2**22  # read to estimate the number of rows
MAX_LISTED_ERRORS = 20  # unreadable rows to list; further ones are only counted
RESUMED_COUNTS = ("rows", "none", "aspects")  # restored on resume; unreadable rows are read and counted again


@dataclass(frozen=True)
class BulkConfig:
    """What to read and which columns to write."""

    text_column: str = "text"
    format: str | None = None  # of the input; None: from its suffix
    out_format: str | None = None
    reviews: bool = False  # each row is a text of several sentences
    words: bool = False
    prefix: str = ""  # of the new columns


@dataclass
class Summary:
    """Counts so far: rows, rows without an aspect, rows per aspect, unreadable rows."""

    rows: int = 0
    none: int = 0
    aspects: dict[str, int] = field(default_factory=dict)
    n_faults: int = 0
    faults: list[str] = field(default_factory=list)  # messages of the first ``max_errors``
    max_errors: int = MAX_LISTED_ERRORS

    def add_fault(self, fault: DataError) -> None:
        """Count a row that could not be read."""
        self.n_faults += 1
        if self.n_faults <= self.max_errors:
            self.faults.append(str(fault))

    def add(self, found: Sequence[Detection | Review]) -> None:
        """Count the detections of some rows."""
        self.rows += len(found)
        for each in found:
            self.none += not each.aspects
            for aspect in each.aspects:
                self.aspects[aspect] += 1


def detect_file(
    detector: AspectDetector,
    source: str,
    out: str,
    config: BulkConfig,
    *,
    overwrite: bool = False,
    resume: bool = False,
    max_errors: int = MAX_LISTED_ERRORS,
    also_read: Sequence[str] = (),
    learn_from_input: bool = False,
    on_batch: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Detect in every row of ``source`` and write the rows, with new columns, to ``out``.

    ``also_read`` are further input files, which must not be overwritten. With ``learn_from_input`` the detector learns
    from a sample of the input, spread over its first rows (of a pipe, from the first batch). Unreadable rows are
    counted and left out. Only JSONL, CSV and TSV files can be resumed.
    """
    summary = Summary(aspects=dict.fromkeys(detector.aspects, 0), max_errors=max_errors)
    columns: list[str] = []
    batches = read_records(
        source,
        text_column=config.text_column,
        aspects_column=NO_COLUMN,
        batch_size=BATCH,
        format=config.format,
        on_error=summary.add_fault,
        on_columns=columns.extend,
    )
    kind, _ = format_of(out, config.out_format)
    if kind == "txt":
        raise AwattError(f"{out}: plain text cannot hold aspects. Write .jsonl, .csv, .tsv or .parquet.")
    for read in (source, *also_read):
        check_apart(out, read)
    make_rows = RowMaker(config, detector.aspects, table=kind != "jsonl")
    plain = out == STANDARD_STREAM or kind not in RESUMABLE or source == STANDARD_STREAM
    if plain and resume:
        advice = "Read from a file and write .jsonl, .csv or .tsv."
        raise AwattError(f"--resume does not work from '{source}' to '{out}'. {advice}")
    if learn_from_input and detector.loaded_model.learns_from_reviews:
        if source == STANDARD_STREAM:
            first = next(batches, [])
            batches = chain([first], batches)
            sample = sample_records(first, config.reviews)
        else:
            sample = sample_files([source], config.text_column, config.format, config.reviews)
        detector = copy(detector).use_reviews(sample)
    writer: Any
    if plain:
        writer = _NonResumableWriter(out, overwrite, config.out_format)
    else:
        settings = _settings(detector, source, config)
        writer = ResumableWriter(out, settings, overwrite=overwrite, resume=resume, format=config.out_format)
        if writer.complete:
            kept = "already complete, left unchanged; its input, examples and settings were not compared"
            raise AlreadyCompleteError(f"{out}: {kept}. Use --overwrite to write it again.")
    with writer:
        if writer.rows:
            for name in RESUMED_COUNTS:
                setattr(summary, name, writer.state[name])
        for batch in _skip(batches, writer.rows):
            found = find(detector, [record.text for record in batch], config)
            summary.add(found)
            writer.write(make_rows(batch, found), {name: getattr(summary, name) for name in RESUMED_COUNTS})
            on_batch(summary)
        if not summary.rows:
            writer.write_header(make_rows.empty(columns, find(detector, [""], config)))
    return summary


def find(detector: AspectDetector, texts: Sequence[str], config: BulkConfig) -> Sequence[Detection | Review]:
    """Detect in each text, as a sentence or as a review."""
    detect = detector.detect_reviews if config.reviews else detector.detect_many
    return detect(texts, words=config.words)


def check_apart(out: str, source: str) -> None:
    """Raise if the output file is also an input file."""
    if STANDARD_STREAM not in (out, source) and os.path.realpath(out) == os.path.realpath(source):
        raise AwattError(f"{out}: this file is an input. Choose another output file.")


class AlreadyCompleteError(AwattError):
    """Raised on resuming a run that is already complete."""


class _NonResumableWriter(RecordWriter):
    """Has the interface of ``ResumableWriter`` but starts at row 0 and saves no state."""

    rows = 0

    def __init__(self, path: str, overwrite: bool, format: str | None) -> None:
        super().__init__(path, overwrite=overwrite, format=format)

    def write(self, records: Sequence[Any], state: object = None) -> None:
        super().write(records)


def _settings(detector: AspectDetector, source: str, config: BulkConfig) -> dict[str, object]:
    status = os.stat(source)
    given = [os.path.realpath(source), status.st_size, status.st_mtime_ns]
    return {"input file": given, **describe(detector, config)}


def describe(detector: AspectDetector, config: BulkConfig) -> dict[str, object]:
    """What the output depends on besides the input, keyed by names for messages to the user."""
    digest = hashlib.sha256()
    if detector.fitted_ is not None:
        for name, array in sorted(detector.loaded_model.pack(detector.fitted_).items()):
            digest.update(name.encode() + array.tobytes())
    return {
        "set of examples or model": [list(detector.aspects), digest.hexdigest()],
        "threshold or mode": [detector.mode, list(map(repr, detector.thresholds().tolist()))],
        "choice of columns": asdict(config),
    }


def _skip(batches: Iterator[list[Record]], rows: int) -> Iterator[list[Record]]:
    """Skip the rows that are already done."""
    for batch in batches:
        if rows < len(batch):
            yield batch[rows:]
        rows = max(0, rows - len(batch))


@dataclass
class RowMaker:
    """Makes output rows: the input's columns, then the detection. Tables get one score column per aspect."""

    config: BulkConfig
    aspects: tuple[str, ...]
    table: bool

    def __post_init__(self) -> None:
        prefix = self.config.prefix
        self.new = [f"{prefix}{name}" for name in ("aspects", "scores", "words", "sentences")]
        self.score_columns = [f"{prefix}score_{aspect}" for aspect in self.aspects]
        self.taken = {*self.new, *(self.score_columns if self.table else ())}

    def __call__(self, batch: Sequence[Record], found: Sequence[Detection | Review]) -> list[dict[str, object]]:
        return [self.row(record, each) for record, each in zip(batch, found, strict=True)]

    def empty(self, columns: Sequence[str], found: Sequence[Detection | Review]) -> dict[str, object]:
        """An example row for an input that has ``columns`` but no rows."""
        fields = dict.fromkeys(name for name in columns if name != self.config.text_column)
        return self([Record("", fields=fields)], found)[0]

    def row(self, record: Record, found: Detection | Review) -> dict[str, object]:
        row = {self.config.text_column: record.text, **record.fields}
        for name in self.taken & row.keys():
            raise AwattError(
                f"the input already has a column '{name}'. Rename the new ones, for example with --prefix found_."
            )
        aspects, scores, words, sentences = self.new
        row[aspects] = found.aspects
        if self.table:
            row.update(zip(self.score_columns, found.scores.values(), strict=True))
        else:
            row[scores] = found.scores
        if self.config.words:
            row[words] = self.nested(
                [
                    {"aspect": aspect, "word": word.text, "start": word.start, "end": word.end, "weight": word.weight}
                    for aspect, each in found.words.items()
                    for word in each
                ]
            )
        if isinstance(found, Review):
            parts = [{"start": part.start, "end": part.end, "aspects": part.aspects} for part in found.sentences]
            row[sentences] = self.nested(parts)
        return row

    def nested(self, value: object) -> object:
        return to_json(value) if self.table else value


def estimate_rows(source: str, format: str | None = None) -> int | None:
    """Estimate a file's number of rows, for the time left; None if unknown, as for stdin."""
    if source == STANDARD_STREAM or not os.path.isfile(source):
        return None
    kind, compressed = format_of(source, format)
    if kind == "parquet":
        if compressed:
            return None
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            with ParquetFile(source) as file:
                return int(file.metadata.num_rows)
        except (OSError, ArrowException):
            return None  # reading it will report the error
    size = os.path.getsize(source)
    with open(source, "rb") as raw:
        try:
            with gzip.GzipFile(fileobj=raw, mode="rb") if compressed else nullcontext(raw) as stream:
                lines = cast("Any", stream).read(SAMPLE_BYTES).count(b"\n") + 1
                read = max(raw.tell(), 1)
        except (OSError, EOFError, zlib.error):
            return None
    return lines if read >= size else int(lines * size / read)
