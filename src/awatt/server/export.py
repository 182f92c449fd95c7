"""Exports of a project: the results as a table or JSONL, the examples, the detector's folder."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from awatt.detector.findings import Sentences, summarise
from awatt.detector.report_page import ReportPage, describe_detector, expectations
from awatt.errors import AwattError
from awatt.records.format_writers import to_cell
from awatt.records.spreadsheet import BOM, escape_formula
from awatt.records.writer import RecordWriter
from awatt.server.measuring import measure_course, measure_sample
from awatt.server.workbench import Workbench

TITLE = "What the reviews say"
MEDIA_TYPES = {
    "results.csv": "text/csv; charset=utf-8",
    "results.jsonl": "application/x-ndjson",
    "results.parquet": "application/vnd.apache.parquet",
    "examples.jsonl": "application/x-ndjson",
    "detector.zip": "application/zip",
    "report.html": "text/html; charset=utf-8",
}


def export(workbench: Workbench, kind: str, bom: bool = False, title: str = "") -> bytes:
    """The content of the file with this name; with ``bom``, a CSV begins with the mark that Excel needs for UTF-8."""
    if kind == "report.html":
        return make_report(workbench, title).html().encode("utf-8", "replace")
    with tempfile.TemporaryDirectory(prefix="awatt-") as folder:
        path = Path(folder) / kind
        if kind == "detector.zip":
            _zip_detector(workbench, path)
        else:
            rows = _example_rows(workbench) if kind == "examples.jsonl" else result_rows(workbench, kind)
            try:
                with RecordWriter(path) as writer:
                    writer.write([escape_formulas(row) for row in rows] if kind.endswith(".csv") else rows)
            except AwattError as error:
                raise AwattError(str(error).replace(str(path), kind)) from None
        return (BOM if bom and kind.endswith(".csv") else b"") + path.read_bytes()


def make_report(workbench: Workbench, title: str) -> ReportPage:
    """The report about the project's reviews, at its thresholds and with its labels."""
    detector, (content, reviews, scores, found) = workbench.detector(), workbench.results()
    version, columns = workbench.columns()
    if version != reviews.version or detector.aspects != tuple(aspect.name for aspect in content.aspects):
        return make_report(workbench, title)  # the project changed meanwhile
    if not content.n_reviews:
        raise AwattError("there are no reviews to report on. Load some.")
    review_of = [number - 1 for number in reviews.reviews]
    sentences = Sentences(reviews.texts, review_of, found, scores.astype(np.float64))
    findings = summarise(detector, sentences, columns, content.n_reviews)
    quality = measure_sample(workbench).quality
    course = measure_course(workbench, quality).points if quality else ()
    expected = () if quality else expectations(detector)
    return ReportPage(title.strip() or TITLE, findings, quality, course, expected, describe_detector(detector))


def result_rows(workbench: Workbench, kind: str) -> list[dict[str, object]]:
    """One row per sentence: its review's number and columns, the text, its aspects, and every score."""
    content, reviews, scores, found = workbench.results()
    fields, names = workbench.store.fields(), [aspect.name for aspect in content.aspects]
    if workbench.store.version().reviews != reviews.version:
        return result_rows(workbench, kind)  # other reviews were loaded meanwhile
    labelled = {example.text for example in content.examples}
    table = not kind.endswith(".jsonl")
    scored = [f"score_{name}" for name in names] if table else ["scores"]
    renamed = _free_names(fields.values(), {"review", "text", "aspects", "by_person", *scored})
    rows = []
    for number, (review, text) in enumerate(zip(reviews.reviews, reviews.texts, strict=True)):
        values = scores[number].astype(float).round(4).tolist()
        mentioned = [name for name, is_found in zip(names, found[number], strict=True) if is_found]
        row: dict[str, object] = {"review": review, "text": text, "aspects": mentioned, "by_person": text in labelled}
        row |= zip(scored, values if table else [dict(zip(names, values, strict=True))], strict=True)
        rows.append(row | {renamed[name]: value for name, value in fields[review].items()})
    return rows


def _free_names(fields: Iterable[Mapping[str, object]], taken: set[str]) -> dict[str, str]:
    """The name under which each column of the reviews is exported: ``input_review`` if ``review`` is taken."""
    columns = dict.fromkeys(name for each in fields for name in each)
    names, used = {}, taken.union(columns)
    for column in columns:
        name = column
        while column in taken and name in used:
            name = f"input_{name}"
        names[column] = name
        used.add(name)
    return names


def escape_formulas(row: Mapping[str, object]) -> dict[str, object]:
    """The row with a quote before everything in cells and names that a spreadsheet would evaluate as a formula."""
    return {
        _escape_name(name): value if isinstance(value, float) else escape_formula(_cell(value))
        for name, value in row.items()
    }


@lru_cache(1000)
def _escape_name(name: str) -> str:
    return str(escape_formula(name))


def _cell(value: object) -> object:
    """A list of names as one cell, before it is escaped; the writer turns other lists and objects into JSON."""
    is_names = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return to_cell(value) if is_names else value


def _example_rows(workbench: Workbench) -> list[dict[str, object]]:
    content = workbench.content()
    names = {aspect.id: aspect.name for aspect in content.aspects}
    return [{"text": each.text, "aspects": [names[key] for key in each.aspects]} for each in content.examples]


def _zip_detector(workbench: Workbench, path: Path) -> None:
    folder = workbench.detector().save_pretrained(path.with_name("detector"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"detector/{file.name}")
