"""Detection in many files by many workers: each part of the input becomes one output file.

Why not Ray Data's readers and writers: they convert cells, do not keep the order of rows, cannot skip a faulty row and
name its line, and cannot resume. Here the output has the same bytes as that of the local engine.

A part is finished when its file and then its report are written. If a worker or a machine is lost, its part is
processed again and writes the same file; a resumed job skips the parts that have a report. Only reports return to the
driver, so its memory grows with the number of parts, not with the rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from awatt.detector.bulk import (
    BATCH,
    MAX_LISTED_ERRORS,
    BulkConfig,
    RowMaker,
    Summary,
    check_apart,
    describe,
    find,
)
from awatt.detector.reviews import NO_COLUMN, sample_records
from awatt.errors import AwattError, DataError
from awatt.records.formats import FORMATS, STANDARD_STREAM, format_of
from awatt.records.reader import Record, read_records
from awatt.records.writer import RecordWriter
from awatt.scale.connection import LOCAL, connected, count_workers, one_line, run_tasks
from awatt.scale.job import REPORTS, Job, PartReport
from awatt.scale.parts import Lines, Part, open_part, split_file
from awatt.scale.shipping import Shipped, ship
from awatt.scale.storage import FileSize, find_files, writable_path, write_bytes

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

MAX_PART = 2**25  # bytes: about ten seconds of work, which is what a lost worker costs
MIN_PART = 2**20  # bytes: starting a smaller part takes longer than processing it
PARTS_PER_WORKER = 4  # so that all workers finish at about the same time


class Task(NamedTuple):
    """What all parts share."""

    shipped: Shipped
    out: str  # folder
    kind: str  # suffix of the files to write
    config: BulkConfig
    max_errors: int


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
        detector = copy(detector).use_reviews(sample_records(_first_rows(files, config), config.reviews))
    settings = {"set of input files": files, **describe(detector, config), "format": kind}
    job = Job(out, settings, overwrite, resume)
    with connected(address, workers) as ray:
        workers = count_workers(ray, workers)
        total = sum(size for _, size in files)
        job.start(min(MAX_PART, max(MIN_PART, total // (PARTS_PER_WORKER * workers))))
        parts = _split_files(files, job.part_bytes, config)
        reports = {name: report for name, report in job.reports() if name in parts}
        summary = Summary(aspects=dict.fromkeys(detector.aspects, 0), max_errors=max_errors)
        for report in reports.values():
            report.add_to(summary)
        on_batch(summary)
        task = Task(ship(detector), job.out, kind, config, max_errors)
        calls = {name: (name, part, task) for name, part in parts.items() if name not in reports}
        # A part whose worker is lost is processed again, as often as that happens.
        with closing(run_tasks(ray, detect_part, calls, workers, max_retries=-1)) as finished:
            for name, reference in finished:
                reports[name] = _get_report(ray, reference)
                reports[name].add_to(summary)
                on_batch(summary)
    summary.faults = _list_faults(parts, reports)[:max_errors]
    job.finish(summary)
    return summary


def _first_rows(files: list[FileSize], config: BulkConfig) -> Iterator[Record]:
    """The rows of all files, in order. Unreadable ones are reported when their part is processed."""
    for path, _ in files:
        with open_part(Part(path), config.format) as opened:
            batches = read_records(
                path,
                text_column=config.text_column,
                aspects_column=NO_COLUMN,
                format=config.format,
                on_error=lambda fault: None,
                part=opened,
            )
            yield from chain.from_iterable(batches)


def _output_kind(config: BulkConfig, first: str) -> str:
    """The suffix of the files to write: as configured, or that of the first input file."""
    if config.out_format is None:
        kind, compressed = format_of(first, config.format)
        kind = "jsonl" if kind == "txt" else kind
        return f"{kind}.gz" if compressed else kind
    kind = format_of("", config.out_format)[0]
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


def _get_report(ray: Any, reference: Any) -> PartReport:
    try:
        report = ray.get(reference)
    except ray.exceptions.RayError as error:
        raise AwattError(f"Ray stopped the job ({one_line(error, 300)}). Continue it with --resume.") from error
    if isinstance(report, str):
        raise AwattError(report)
    return cast("PartReport", report)


def detect_part(name: str, part: Part, task: Task) -> PartReport | str:
    """Detect in one part, write its file, then its report. An error is returned as its message, without a traceback."""
    try:
        report = _detect(name, part, task)
        write_bytes(f"{task.out}/{REPORTS}/{name}.json", json.dumps(asdict(report)).encode())
    except AwattError as error:
        return str(error)
    return report


def _detect(name: str, part: Part, task: Task) -> PartReport:
    detector, config = task.shipped.load(), task.config
    summary = Summary(aspects=dict.fromkeys(detector.aspects, 0), max_errors=task.max_errors)
    report = PartReport()

    def add_fault(fault: DataError) -> None:
        summary.add_fault(fault)
        if len(report.faults) < task.max_errors:
            report.faults.append((fault.line or 0, str(fault)))

    make_rows = RowMaker(config, detector.aspects, table=not task.kind.startswith("jsonl"))
    columns: list[str] = []
    with (
        open_part(part, config.format) as opened,
        writable_path(f"{task.out}/{name}.{task.kind}") as path,
        RecordWriter(path, overwrite=True) as writer,
    ):
        batches = read_records(
            part.path,
            text_column=config.text_column,
            aspects_column=NO_COLUMN,
            batch_size=BATCH,
            format=config.format,
            on_error=add_fault,
            on_columns=columns.extend,
            part=opened,
        )
        for batch in batches:
            found = find(detector, [record.text for record in batch], config)
            summary.add(found)
            writer.write(make_rows(batch, found))
        if not summary.rows:
            writer.write_header(make_rows.empty(columns, find(detector, [""], config)))
        if isinstance(opened.stream, Lines):
            report.lines, report.header = opened.stream.count, opened.stream.header
        else:
            report.lines = summary.rows + summary.n_faults
    report.rows, report.none = summary.rows, summary.none
    report.aspects, report.n_faults = summary.aspects, summary.n_faults
    return report


def _list_faults(parts: dict[str, Part], reports: dict[str, PartReport]) -> list[str]:
    """The faulty rows of all files in order. A part counts its own lines; those of the parts before it are added."""
    found, path, before = [], "", 0
    for name, part in parts.items():
        report = reports[name]
        before = before - report.header if part.path == path else 0  # the first part has counted the header
        path = part.path
        for line, text in report.faults:
            found.append(text.replace(f", line {line}", f", line {line + before}", 1))
        before += report.lines
    return found
