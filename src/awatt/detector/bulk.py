"""Detect aspects in every row of a file, batch by batch, in constant memory."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from awatt.detector.columns import Batch, Counts, TableMaker
from awatt.detector.comparison import Tally
from awatt.detector.jobs import open_jobs
from awatt.detector.language import NOT_ENGLISH, seems_english
from awatt.detector.reviews import ReadAhead, sample_texts
from awatt.errors import AwattError, DataError, plural
from awatt.records.digest import RowDigest
from awatt.records.formats import OUT_FORMATS, STANDARD_STREAM, format_of, import_pyarrow
from awatt.records.reader import read_rows
from awatt.records.resumable import RESUMABLE, ResumableWriter
from awatt.records.tables import JsonLines, Table
from awatt.records.writer import RecordWriter

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

BATCH = 1024  # rows
SAMPLE_BYTES = 2**22  # read to estimate the number of rows
MAX_LISTED_ERRORS = 20  # unreadable rows to list; further ones are only counted
RESUMED_COUNTS = ("rows", "none", "aspects", "several")  # on resume; unreadable rows are read and counted again


MANY = 0.1  # share of rows with several sentences from which on it is worth a note


@dataclass(frozen=True)
class BulkConfig:
    """What to read and which columns to write."""

    text_column: str = "text"
    format: str | None = None  # of the input; None: from its suffix
    out_format: str | None = None
    reviews: bool = False  # each row is a text of several sentences
    words: bool = False
    prefix: str = ""  # of the new columns
    by: tuple[str, ...] = ()  # columns by which the shares of the aspects are compared


@dataclass
class Summary:
    """Counts so far: rows, rows without an aspect, rows per aspect, unreadable rows."""

    rows: int = 0
    none: int = 0
    several: int = 0  # rows that seem to have several sentences, unless they are split
    aspects: dict[str, int] = field(default_factory=dict)
    n_faults: int = 0
    faults: list[str] = field(default_factory=list)  # messages of the first ``max_errors``
    max_errors: int = MAX_LISTED_ERRORS
    tally: Tally | None = None  # for comparisons by column
    english: bool = True  # whether the first rows seem to be

    def add_fault(self, fault: DataError) -> None:
        """Count a row that could not be read."""
        self.n_faults += 1
        if self.n_faults <= self.max_errors:
            self.faults.append(str(fault))

    @property
    def notes(self) -> list[str]:
        """What the user should know about the rows, in one line each."""
        notes = [] if self.english else [NOT_ENGLISH]
        if self.several and self.several >= MANY * self.rows:
            found = f"several sentences in about {self.several:,} of {plural(self.rows, 'row')}, each read as one"
            notes.append(f"{found}. Add --reviews to split them.")
        return notes

    def add(self, counts: Counts) -> None:
        """Count some more rows."""
        self.rows += counts.rows
        self.none += counts.none
        self.several += counts.several
        for aspect, count in zip(self.aspects, counts.aspects, strict=True):
            self.aspects[aspect] += count


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
    jobs: int = 1,
    on_batch: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Detect in every row of ``source`` and write the rows, with new columns, to ``out``.

    ``also_read`` are further input files, which must not be overwritten. With ``learn_from_input`` the detector learns
    from a sample of the input, spread over its first rows (of a pipe, from the first batch). Unreadable rows are
    counted and left out. Only JSONL, CSV and TSV files can be resumed. ``jobs`` processes detect; the output is the
    same whatever their number.
    """
    summary = Summary(aspects=dict.fromkeys(detector.aspects, 0), max_errors=max_errors)
    columns: list[str] = []
    batches = read_rows(
        source,
        text_column=config.text_column,
        batch_size=BATCH,
        format=config.format,
        on_error=summary.add_fault,
        on_columns=columns.extend,
    )
    optional = format_of(source, config.format)[0] == "jsonl"
    there: dict[str, None] = {}  # the columns besides the text
    read = ReadAhead(
        _note_columns((Batch.of(batch, config.text_column) for batch in batches), there if config.by else None)
    )
    if config.text_column in config.by:
        advice = "Name one with a few different values, such as stars, or a date."
        raise AwattError(f"--by is '{config.text_column}', which is the column with the text. {advice}")
    if config.by and resume:
        raise AwattError("--by counts all rows, but --resume skips those that are done. Leave out one of them.")
    summary.tally = Tally(config.by, detector.aspects, optional, there) if config.by else None
    kind, _ = format_of(out, config.out_format, OUT_FORMATS)
    if kind == "txt":
        raise AwattError(f"{out}: plain text cannot hold aspects. Write .jsonl, .csv, .tsv or .parquet.")
    for path in (source, *also_read):
        check_apart(out, path)
    make_tables = TableMaker(config, detector.aspects, kind)
    plain = out == STANDARD_STREAM or kind not in RESUMABLE or source == STANDARD_STREAM
    if plain and resume:
        advice = "Read from a file and write .jsonl, .csv or .tsv."
        raise AwattError(f"--resume does not work from '{source}' to '{out}'. {advice}")
    learns = learn_from_input and detector.loaded_model.learns_from_reviews
    most = None if learns and source != STANDARD_STREAM else 1  # rows of a pipe may be long in coming
    sample = sample_texts(read.texts(most), config.reviews)
    summary.english = seems_english(sample)
    if learns:
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
    with writer, open_jobs(detector, make_tables, jobs) as detect:
        if writer.rows:
            for name in RESUMED_COUNTS:
                setattr(summary, name, writer.state.get(name, getattr(summary, name)))
        digest = RowDigest()
        for read_so_far, (tables, counts) in detect(_skip(read, writer, digest, source)):
            summary.add(counts)
            if summary.tally:
                summary.tally.add(counts.values, counts.accepted)
            state = {name: getattr(summary, name) for name in RESUMED_COUNTS}
            writer.write_tables(tables, {**state, "read": read_so_far})
            on_batch(summary)
        if not summary.rows:
            writer.write_header(make_tables.empty(detector, columns))
    if summary.tally:
        summary.tally.check()  # after everything has been written
    return summary


def _note_columns(batches: Iterable[Batch], there: dict[str, None] | None) -> Iterator[Batch]:
    """The same batches; the columns of their rows are added to ``there``."""
    for batch in batches:
        if there is not None:
            there.update(dict.fromkeys(chain.from_iterable(batch.fields)))
        yield batch


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

    def write_tables(self, tables: Sequence[Table] | Sequence[JsonLines], state: object = None) -> None:
        super().write_tables(tables)


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
    options = {name.replace("_", "-"): value for name, value in asdict(config).items() if name != "by"}
    return {  # the options first: what is learned from the input depends on them
        **{f"setting of --{option}": value for option, value in options.items()},
        "set of examples or model": [list(detector.aspects), digest.hexdigest()],
        "threshold or mode": [detector.mode, list(map(repr, detector.thresholds().tolist()))],
    }


def _skip(
    batches: Iterable[tuple[Batch, bytes]], writer: Any, digest: RowDigest, source: str
) -> Iterator[tuple[str, Batch]]:
    """Skip the rows that are already done; raise if they are not those that were read then. ``digest`` is of all.

    Each batch comes with its content, and goes on with the digest of all rows up to its end.
    """
    left = writer.rows
    for batch, content in batches:
        if left:
            done, batch = batch.part(slice(left)), batch.part(slice(left, None))
            digest.add(done.content(), len(done.texts))
            left -= len(done.texts)
            if not left:
                digest.check(writer.state.get("read"), writer.rows, source)
            content = batch.content()
        digest.add(content, len(batch.texts))
        if batch.texts:
            yield str(digest), batch
    if left:
        digest.check(writer.state.get("read"), writer.rows, source)


def estimate_rows(source: str, format: str | None = None) -> int | None:
    """Estimate a file's number of rows, for the time left; None if unknown, as for stdin."""
    if source == STANDARD_STREAM or not os.path.isfile(source):
        return None
    kind, compressed = format_of(source, format)
    if kind == "parquet":
        if compressed:
            return None
        pyarrow = import_pyarrow()
        try:
            with pyarrow.parquet.ParquetFile(source) as file:
                return int(file.metadata.num_rows)
        except (OSError, pyarrow.ArrowException):
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
