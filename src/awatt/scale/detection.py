"""Detection in many files by many workers: each part of the input becomes one output file.

Why not Ray Data's readers and writers: they convert cells, do not keep the order of rows, cannot skip a faulty row and
name its line, and cannot resume. Here the output has the same bytes as that of the local engine.

A part is finished when its file and then its report are written. If a worker or a machine is lost, its part is
processed again and writes the same file. A resumed job reads the parts that have a file and a report once more, and
stops if their rows have changed. A task takes several parts if there are many. Only counts and faults return to the
driver, so its memory grows by less than 1 kB per part, not with the rows, and the number of tasks depends on that of
the workers only.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from awatt.detector.bulk import (
    BATCH,
    MAX_LISTED_ERRORS,
    BulkConfig,
    Summary,
    check_apart,
    describe,
)
from awatt.detector.columns import Batch, TableMaker
from awatt.detector.reviews import ReadAhead, sample_texts
from awatt.errors import AwattError, DataError
from awatt.records.digest import RowDigest
from awatt.records.formats import FORMATS, STANDARD_STREAM, format_of
from awatt.records.reader import read_rows
from awatt.records.source import OpenPart
from awatt.records.writer import RecordWriter
from awatt.scale.connection import LOCAL, connected, count_workers, one_line, run_tasks
from awatt.scale.job import Job, PartReport, read_report, write_report
from awatt.scale.parts import Lines, Part, open_part, split_file
from awatt.scale.shipping import Shipped, ship
from awatt.scale.storage import FileSize, find_files, writable_path

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

MAX_PART = 2**25  # bytes: about ten seconds of work, which is what a lost worker costs
MIN_PART = 2**20  # bytes: starting a smaller part takes longer than processing it
PARTS_PER_WORKER = 4  # so that all workers finish at about the same time
TASKS_PER_WORKER = 32  # at most, however many parts there are


class Task(NamedTuple):
    """What all parts share."""

    shipped: Shipped
    out: str  # folder
    kind: str  # suffix of the files to write
    config: BulkConfig
    max_errors: int


class PartLines(NamedTuple):
    """What the driver keeps of a report until all parts are finished, and the numbers of their lines are known."""

    lines: int
    header: int
    faults: list[tuple[int, str]]


def detect_files(
    detector: AspectDetector,
    pattern: str,
    out: str,
    config: BulkConfig,
    *,
    address: str = LOCAL,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    max_errors: int = MAX_LISTED_ERRORS,
    also_read: Sequence[str] = (),
    learn_from_input: bool = False,
    on_batch: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Detect in every row of all files that match, and write a folder of files. Rows keep their order within a file.

    All machines must reach ``out`` and the input files under the same path or address. With
    ``learn_from_input`` the detector learns from a sample of their first rows, in the order of the files.
    """
    if out == STANDARD_STREAM:
        raise AwattError("--engine ray writes a folder. Give one: --out found, say.")
    for read in also_read:
        check_apart(out, read)
    files = find_files(pattern)
    for path, _ in files:
        format_of(path, config.format)
    kind = _output_kind(config, files[0][0])
    if learn_from_input and detector.loaded_model.learns_from_reviews:
        detector = copy(detector).use_reviews(sample_texts(ReadAhead(_batches(files, config)).texts(), config.reviews))
    settings = {"set of input files": _describe_files(files), **describe(detector, config), "format": kind}
    job = Job(out, settings, overwrite, resume)
    with connected(address, workers) as ray, closing(job):
        workers = count_workers(ray, workers)
        total = sum(size for _, size in files)
        job.start(min(MAX_PART, max(MIN_PART, total // (PARTS_PER_WORKER * workers))))
        parts = _split_files(files, job.part_bytes, config)
        summary = Summary(aspects=dict.fromkeys(detector.aspects, 0), max_errors=max_errors)
        kept: dict[str, PartLines] = {}

        def add(name: str, report: PartReport) -> None:
            report.add_to(summary)
            kept[name] = PartLines(report.lines, report.header, report.faults)

        reports = {name: report for name, report in job.reports(kind) if name in parts}
        checks = {
            names: ([(parts[name], reports[name]) for name in names], config)
            for names in bundle({name: parts[name].size for name in reports}, TASKS_PER_WORKER * workers)
        }
        with closing(_run(ray, check_parts, checks, workers)) as checked:
            deque(checked, maxlen=0)
        for name, report in reports.items():
            add(name, report)
        on_batch(summary)
        task = Task(ship(detector), job.out, kind, config, max_errors)
        left = {name: part.size for name, part in parts.items() if name not in reports}
        calls = {
            names: ([(name, parts[name]) for name in names], task) for names in bundle(left, TASKS_PER_WORKER * workers)
        }
        with closing(_run(ray, detect_parts, calls, workers)) as finished:
            for names, found in finished:
                for name, report in zip(names, found, strict=True):
                    add(name, report)
                on_batch(summary)
        summary.faults = _list_faults(parts, kept)[:max_errors]
        job.finish(summary)
    return summary


def _batches(files: list[FileSize], config: BulkConfig) -> Iterator[Batch]:
    """The rows of all files, in order. Unreadable ones are reported when their part is processed."""
    for path, _ in files:
        part = Part(path)
        with open_part(part, config.format) as opened:
            yield from _read(part, opened, config, on_error=lambda fault: None)


def _read(part: Part, opened: OpenPart, config: BulkConfig, **options: Any) -> Iterator[Batch]:
    """The rows of a part, in batches."""
    column = config.text_column
    rows = read_rows(part.path, text_column=column, batch_size=BATCH, format=config.format, part=opened, **options)
    return (Batch.of(each, column) for each in rows)


def _output_kind(config: BulkConfig, first: str) -> str:
    """The suffix of the files to write: as configured, or that of the first input file."""
    if config.out_format is None:
        kind, compressed = format_of(first, config.format)
        kind = "jsonl" if kind == "txt" else kind
        return f"{kind}.gz" if compressed else kind
    if config.out_format == "excel":
        raise AwattError("--engine ray writes no format 'excel'. Write csv, or use --engine local.")
    kind = format_of(first, config.out_format)[0]
    if kind == "txt":
        raise AwattError(f"plain text has no room for aspects. Write one of {', '.join(FORMATS[:-1])}.")
    return config.out_format


def _split_files(files: list[FileSize], part_bytes: int, config: BulkConfig) -> dict[str, Part]:
    """The parts of all files; a name has the number of the file, and that of the part in the file."""
    return {
        f"part-{file_number:05d}-{part_number:05d}": part
        for file_number, (path, size) in enumerate(files)
        for part_number, part in enumerate(split_file(path, size, part_bytes, config.format))
    }


def _describe_files(files: list[FileSize]) -> list[object]:
    """Their number and a hash of their paths and sizes, because there may be very many."""
    return [len(files), hashlib.sha256(json.dumps(files).encode()).hexdigest()]


def bundle(sizes: Mapping[str, int], limit: int) -> list[tuple[str, ...]]:
    """The names in at most ``limit`` groups of about the same size, in their order; one each if there are fewer."""
    if len(sizes) <= limit:
        return [(name,) for name in sizes]
    total, before, groups = sum(sizes.values()) + len(sizes), 0, dict[int, list[str]]()
    for name, size in sizes.items():
        groups.setdefault(before * limit // total, []).append(name)
        before += size + 1  # empty files, too, are divided
    return [tuple(names) for names in groups.values()]


def _run(
    ray: Any, function: Callable[..., Any], calls: Mapping[tuple[str, ...], tuple[Any, ...]], workers: int
) -> Generator[tuple[tuple[str, ...], Any], None, None]:
    """The results of the calls as they finish, with their names; raises if one is a message.

    A task whose worker is lost is run again, as often as that happens.
    """
    with closing(run_tasks(ray, function, calls, workers, max_retries=-1)) as finished:
        for names, reference in finished:
            try:
                result = ray.get(reference)
            except ray.exceptions.RayError as error:
                raise AwattError(f"Ray stopped the job ({one_line(error, 300)}). Continue it with --resume.") from error
            if isinstance(result, str):
                raise AwattError(result)
            yield names, result


def check_parts(parts: Sequence[tuple[Part, PartReport]], config: BulkConfig) -> str | None:
    """Read finished parts again; a message if the rows of one have changed since."""
    try:
        for part, report in parts:
            digest = RowDigest()
            with open_part(part, config.format) as opened:
                for batch in _read(part, opened, config, on_error=lambda fault: None):
                    digest.add(batch.content(), len(batch.texts))
            digest.check(report.read, report.rows, part.path)
    except AwattError as error:
        return str(error)
    return None


def detect_parts(parts: Sequence[tuple[str, Part]], task: Task) -> list[PartReport] | str:
    """Detect in each part, write its file, then its report. An error is returned as its message, without a traceback.

    A part that has a report was finished before the worker of this task was lost.
    """
    reports = []
    try:
        for name, part in parts:
            report = read_report(task.out, name) if len(parts) > 1 else None
            if report is None:
                report = _detect(name, part, task)
                write_report(task.out, name, report)
            reports.append(report)
    except AwattError as error:
        return str(error)
    return reports


def _detect(name: str, part: Part, task: Task) -> PartReport:
    detector, config = task.shipped.load(), task.config
    summary = Summary(aspects=dict.fromkeys(detector.aspects, 0), max_errors=task.max_errors)
    report, digest = PartReport(), RowDigest()

    def add_fault(fault: DataError) -> None:
        summary.add_fault(fault)
        if len(report.faults) < task.max_errors:
            report.faults.append((fault.line or 0, str(fault)))

    make_tables = TableMaker(config, detector.aspects, format_of("", task.kind)[0])
    columns: list[str] = []
    with (
        open_part(part, config.format) as opened,
        writable_path(f"{task.out}/{name}.{task.kind}") as path,
        RecordWriter(path, overwrite=True) as writer,
    ):
        for batch in _read(part, opened, config, on_error=add_fault, on_columns=columns.extend):
            digest.add(batch.content(), len(batch.texts))
            tables, counts = make_tables.detect(detector, batch)
            summary.add(counts)
            writer.write_tables(tables)
        if not summary.rows:
            writer.write_header(make_tables.empty(detector, columns))
        if isinstance(opened.stream, Lines):
            report.lines, report.header = opened.stream.count, opened.stream.header
        else:
            report.lines = summary.rows + summary.n_faults
    report.rows, report.none, report.read = summary.rows, summary.none, str(digest)
    report.aspects, report.n_faults, report.several = summary.aspects, summary.n_faults, summary.several
    return report


def _list_faults(parts: dict[str, Part], kept: dict[str, PartLines]) -> list[str]:
    """The faulty rows of all files in order. A part counts its own lines; those of the parts before it are added."""
    found, path, before = [], "", 0
    for name, part in parts.items():
        lines, header, faults = kept[name]
        before = before - header if part.path == path else 0  # the first part has counted the header
        path = part.path
        for line, text in faults:
            found.append(text.replace(f", line {line}", f", line {line + before}", 1))
        before += lines
    return found
