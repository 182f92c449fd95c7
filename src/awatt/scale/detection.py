"""Detection in many files by many workers: a file out for each part in, under a name that depends on the part alone.

A part is done when its file and then its note are written. A part that is done again, after a worker or a machine was
lost, writes the same file again; a job that is resumed leaves out the parts that have a note. Only notes come back to
the driver, so its memory grows with the number of parts, never with the rows.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from awatt.detector.bulk import (
    BATCH,
    LISTED,
    AlreadyCompleteError,
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
from awatt.scale.connection import LOCAL, connected, n_workers
from awatt.scale.parts import Lines, Part, open_part, split_file
from awatt.scale.shipping import Shipped, ship
from awatt.scale.storage import (
    find_files,
    is_address,
    list_folder,
    make_folder,
    read_bytes,
    remove_files,
    upload,
    write_bytes,
)

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

LARGEST = 2**25  # bytes of a part: some ten seconds of work, which is what a lost worker costs
SMALLEST = 2**20  # below this a part costs more to start than to do
PARTS_A_WORKER = 4  # so that all end at about the same time
NOTES = "_awatt"  # readers of folders pass over names with _
JOB, DONE = "job.json", "summary.json"

_log = logging.getLogger(__name__)


class Work(NamedTuple):
    """What all parts share."""

    shipped: Shipped
    out: str
    kind: str  # the suffix of what is written
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
    max_errors: int = LISTED,
    also_read: Sequence[str] = (),
    learn_from_input: bool = False,
    on_batch: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Detect in every row of all files that match, and write a folder of files. Rows keep their order within a file.

    ``out`` and the files must be reachable by all machines under the same path. With ``learn_from_input`` the detector
    takes a sample of the first rows of the files, in their order, for the file.
    """
    if out == STANDARD_STREAM:
        raise AwattError("--engine ray writes a folder. Give one: --out found, say.")
    for read in also_read:
        check_apart(out, read)
    files = find_files(pattern)
    for path, _ in files:
        format_of(path, config.format)
    kind = _kind(config, files[0][0])
    if learn_from_input and detector.loaded_model.learns_from_reviews:
        detector = copy(detector).use_reviews(sample_records(_first_rows(files, config), config.reviews))
    settings = {"set of input files": [list(each) for each in files], **describe(detector, config), "format": kind}
    job = _Job(out, json.loads(json.dumps(settings)), overwrite, resume)
    with connected(address, workers) as ray, _quiet_data(ray):
        workers = n_workers(ray, workers)
        most = job.begun or min(LARGEST, max(SMALLEST, sum(size for _, size in files) // (PARTS_A_WORKER * workers)))
        job.begin(most)
        parts = _plan(files, most, config)
        notes = {name: note for name, note in job.notes() if name in parts}
        summary = Summary(aspects=dict.fromkeys(detector.aspects, 0), max_errors=max_errors)
        for note in notes.values():
            _add(summary, note)
        on_batch(summary)
        work = Work(ship(detector), os.path.abspath(out) if not is_address(out) else out, kind, config, max_errors)
        todo = {name: part for name, part in parts.items() if name not in notes}
        for name, note in _run(ray, todo, work, workers):
            if "error" in note:
                raise AwattError(note["error"])
            notes[name] = note
            _add(summary, note)
            on_batch(summary)
    summary.faults = _faults(parts, notes)[:max_errors]
    job.end(summary)
    return summary


def _first_rows(files: list[tuple[str, int]], config: BulkConfig) -> Iterator[Record]:
    """The rows of all files, one after the other. Those that cannot be read are reported when they are due."""
    for path, _ in files:
        with _opened(Part(path), config) as opened:
            batches = read_records(
                path,
                text_column=config.text_column,
                aspects_column=NO_COLUMN,
                format=config.format,
                on_error=lambda fault: None,
                part=opened,
            )
            yield from chain.from_iterable(batches)


def _kind(config: BulkConfig, first: str) -> str:
    """The suffix to write: as asked for, else that of the first file."""
    if config.out_format is None:
        kind, compressed = format_of(first, config.format)
        kind = "jsonl" if kind == "txt" else kind
        return f"{kind}.gz" if compressed else kind
    kind = format_of("", config.out_format)[0]
    if kind == "txt":
        raise AwattError(f"plain text has no room for aspects. Write one of {', '.join(FORMATS[:-1])}.")
    return config.out_format


def _plan(files: list[tuple[str, int]], most: int, config: BulkConfig) -> dict[str, Part]:
    """The parts of all files by name: the number of the file among all, and that of the part in it."""
    return {
        f"part-{number:05d}-{place:05d}": replace(part, path=_everywhere(part.path))
        for number, (path, size) in enumerate(files)
        for place, part in enumerate(split_file(path, size, most, config.format))
    }


def _everywhere(path: str) -> str:
    return path if is_address(path) else os.path.abspath(path)


def _run(ray: Any, todo: dict[str, Part], work: Work, workers: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and notes, as parts are done."""
    if not todo:
        return
    items = [{"name": name, "part": json.dumps(asdict(part))} for name, part in todo.items()]
    # Tasks, not actors: an actor that a lost machine held waits for another machine, a task goes to any free core.
    dataset = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        detect_part,
        fn_args=(work,),
        compute=ray.data.TaskPoolStrategy(size=min(workers, len(items))),
        num_cpus=1,
    )
    try:
        for row in dataset.iter_rows():
            yield row["name"], json.loads(row["note"])
    except ray.exceptions.RayError as error:
        found = " ".join(str(error).split())[:300]
        raise AwattError(f"the job was stopped by Ray ({found}). Go on with --resume.") from error


def detect_part(batch: dict[str, Any], work: Work) -> dict[str, list[str]]:
    """Detect in one part, write its file, then its note. A fault of the whole file is noted, not written."""
    names, notes = [], []
    for name, part in zip(batch["name"], batch["part"], strict=True):
        try:
            note = _detect(str(name), Part(**json.loads(part)), work)
        except AwattError as error:
            note = {"error": str(error)}
        else:
            write_bytes(f"{work.out}/{NOTES}/{name}.json", json.dumps(note).encode())
        names.append(str(name))
        notes.append(json.dumps(note))
    return {"name": names, "note": notes}


def _detect(name: str, part: Part, work: Work) -> dict[str, Any]:
    detector, config = work.shipped.load(), work.config
    summary = Summary(aspects=dict.fromkeys(detector.aspects, 0), max_errors=work.max_errors)
    faults: list[tuple[int, str]] = []

    def add_fault(fault: DataError) -> None:
        summary.add_fault(fault)
        if len(faults) < work.max_errors:
            faults.append((fault.line or 0, str(fault)))

    make_rows = RowMaker(config, detector.aspects, table=not work.kind.startswith("jsonl"))
    columns: list[str] = []
    lines = header = 0
    with _opened(part, config) as opened, _writer(f"{work.out}/{name}.{work.kind}") as writer:
        batches: Iterator[list[Record]] = read_records(
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
            lines, header = opened.stream.count, opened.stream.header
        else:
            lines = summary.rows + summary.n_faults
    counts = {key: value for key, value in asdict(summary).items() if key in ("rows", "none", "aspects", "n_faults")}
    return {**counts, "lines": lines, "header": header, "faults": faults}


@contextmanager
def _opened(part: Part, config: BulkConfig) -> Iterator[Any]:
    try:
        with open_part(part, config.format) as opened:
            yield opened
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error}). Check its permissions.", part.path) from error


@contextmanager
def _writer(path: str) -> Iterator[RecordWriter]:
    """Writes to a path, or by way of a temporary file to an address."""
    if not is_address(path):
        with RecordWriter(path, overwrite=True) as writer:
            yield writer
        return
    with tempfile.TemporaryDirectory() as folder:
        local = str(Path(folder) / path.rpartition("/")[2])
        with RecordWriter(local) as writer:
            yield writer
        upload(local, path)


def _add(summary: Summary, note: dict[str, Any]) -> None:
    summary.rows += note["rows"]
    summary.none += note["none"]
    summary.n_faults += note["n_faults"]
    for aspect, count in note["aspects"].items():
        summary.aspects[aspect] += count


def _faults(parts: dict[str, Part], notes: dict[str, dict[str, Any]]) -> list[str]:
    """What was wrong, in the order of the files. A part counts the lines that it reads; those before it are added."""
    found, path, before = [], "", 0
    for name, part in parts.items():
        note = notes[name]
        before = before - note["header"] if part.path == path else 0  # the header has been counted with the first part
        path = part.path
        for line, text in note["faults"]:
            found.append(text.replace(f", line {line}", f", line {line + before}", 1))
        before += note["lines"]
    return found


class _Job:
    """The folder of a job: what it was begun with, what is done."""

    def __init__(self, out: str, settings: dict[str, object], overwrite: bool, resume: bool) -> None:
        self.out, self.folder, self.settings = out, f"{out}/{NOTES}", settings
        if not is_address(out) and os.path.exists(out) and not os.path.isdir(out):
            raise AwattError(f"{out}: this is a file, but --engine ray writes a folder. Name a folder.")
        found, names = read_bytes(f"{self.folder}/{JOB}"), list_folder(out)
        self.begun: int = 0  # the size of parts
        complete = read_bytes(f"{self.folder}/{DONE}") is not None
        if found is not None and resume and not (complete and overwrite):
            job = json.loads(found)
            for name, value in job["settings"].items():
                if settings.get(name) != value:
                    advice = "Give the same again, or begin anew with --overwrite."
                    raise AwattError(f"{out}: this job was begun with another {name}. {advice}")
            self.begun = job["part_bytes"]
            if complete:
                raise AlreadyCompleteError(f"{out}: already complete, there is nothing to resume.")
        elif found is not None and not overwrite:
            advice = "Use --resume to go on with it, --overwrite to begin anew, or another folder."
            raise AwattError(f"{out}: holds a job already. {advice}")
        elif found is None and names:
            raise AwattError(f"{out}: there is something in this folder, but no job. Name a new folder.")
        elif found is not None:
            remove_files(self.folder, list_folder(self.folder))
            remove_files(out, [name for name in names if name.startswith("part-")])

    def begin(self, part_bytes: int) -> None:
        """Note what the rows depend on."""
        make_folder(self.folder)
        if not self.begun:
            job = {"settings": self.settings, "part_bytes": part_bytes}
            write_bytes(f"{self.folder}/{JOB}", json.dumps(job, indent=1).encode())

    def notes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Of the parts that are done."""
        for name in list_folder(self.folder) if self.begun else ():
            if name.startswith("part-") and name.endswith(".json"):
                yield name.removesuffix(".json"), json.loads(read_bytes(f"{self.folder}/{name}") or b"")

    def end(self, summary: Summary) -> None:
        """All parts are there."""
        write_bytes(f"{self.folder}/{DONE}", json.dumps(asdict(summary), indent=1, ensure_ascii=False).encode())


@contextmanager
def _quiet_data(ray: Any) -> Iterator[None]:
    """Ray Data's own progress and plans would go to the terminal."""
    logger, context = logging.getLogger("ray.data"), ray.data.DataContext.get_current()
    before = logger.level, context.enable_progress_bars
    logger.setLevel(logging.ERROR)
    context.enable_progress_bars = False
    try:
        yield
    finally:
        logger.setLevel(before[0])
        context.enable_progress_bars = before[1]
