"""Measured quality: precision, recall and F1 on sentences that a person has labelled, with intervals."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from awatt.arrays import Bools
from awatt.detector.examples import is_labelled, normal_form
from awatt.errors import AwattError, DataError, plural
from awatt.records.formats import STANDARD_STREAM, list_columns
from awatt.records.reader import Record, read_records, read_rows
from awatt.records.source import OnError, raise_error

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True)
class Measure:
    """A measured share and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class AspectQuality:
    """How well an aspect was found; a measure is None where nothing was found or mentioned."""

    name: str
    mentioned: int  # labelled sentences that mention it
    found: int  # labelled sentences in which it was found
    right: int  # both
    precision: Measure | None
    recall: Measure | None
    f1: Measure | None


@dataclass(frozen=True)
class Quality:
    """Each aspect, and all of them together: every sentence and aspect is one decision."""

    n_sentences: int
    aspects: list[AspectQuality]
    overall: AspectQuality

    def __str__(self) -> str:
        rows = [*self.aspects, self.overall]
        width = max(len(row.name) for row in rows)
        lines = [f"{'aspect':<{width}}  mentioned  found  {'precision':<20}  {'recall':<20}  F1"]
        for row in rows:
            shown = [str(measure) if measure else "-" for measure in (row.precision, row.recall, row.f1)]
            counts = f"{row.mentioned:>9}  {row.found:>5}"
            lines.append(f"{row.name:<{width}}  {counts}  {shown[0]:<20}  {shown[1]:<20}  {shown[2]}")
        lines.append(f"Measured on {plural(self.n_sentences, 'labelled sentence')}; in brackets the 95 % intervals.")
        return "\n".join(lines)


@dataclass(frozen=True)
class CoursePoint:
    """The quality on one sample after a number of examples had been learned.

    ``when`` the last of them was added, in seconds since 1970; None where that is not known.
    """

    n_examples: int
    when: int | None
    quality: Quality


def wilson(hits: int, total: int) -> Measure | None:
    """The share of hits with Wilson's interval, which holds for few and for extreme counts; None without any."""
    if not total:
        return None
    share, spread = hits / total, Z * Z / total
    middle = (share + spread / 2) / (1 + spread)
    half = Z * np.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return Measure(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def measure(truth: Bools, found: Bools, names: Sequence[str]) -> Quality:
    """The quality of what was found, compared with the labels. (n_sentences, n_aspects) each

    F1 is 2 J / (1 + J), where J is the share of the right ones among all that were found or mentioned, so its interval
    follows from that of J. The overall intervals take the decisions on one sentence as independent.
    """
    if not truth.shape[0]:
        raise AwattError("there is no labelled sentence. Label some, off-topic ones included.")
    each = [_quality(name, truth[:, column], found[:, column]) for column, name in enumerate(names)]
    return Quality(len(truth), each, _quality("all aspects", truth, found))


def _quality(name: str, truth: Bools, found: Bools) -> AspectQuality:
    mentioned, hits, right = int(truth.sum()), int(found.sum()), int((truth & found).sum())
    overlap = wilson(right, mentioned + hits - right)
    f1 = None if overlap is None else Measure(*(2 * j / (1 + j) for j in (overlap.value, overlap.low, overlap.high)))
    return AspectQuality(name, mentioned, hits, right, wilson(right, hits), wilson(right, mentioned), f1)


def measure_file(
    detector: AspectDetector,
    path: str,
    text_column: str,
    aspects_column: str,
    format: str | None = None,
    on_error: OnError = raise_error,
) -> Quality:
    """The quality on a labelled file, without the sentences that the detector learned from."""
    batches = read_records(
        path, text_column=text_column, aspects_column=aspects_column, format=format, on_error=on_error
    )
    records = [record for batch in batches for record in batch if record.text.strip() and is_labelled(record)]
    if not records:
        advice = "Label some, off-topic ones included. Rows with 'by_person' false were detected, not labelled."
        raise AwattError(f"{path}: there is no labelled sentence. {advice}")
    known = {name for record in records for name in record.aspects}
    if not known and not _has_column(path, text_column, aspects_column, format):
        raise _no_labels(path, text_column, aspects_column, records)
    unknown = sorted(known.difference(detector.aspects))
    if unknown:
        named = "label " if len(unknown) == 1 else "labels "
        named += ", ".join(f"'{name}'" for name in unknown[:5])
        advice = "Use the same names in both, or add examples of them."
        raise AwattError(f"{path} has the {named}, which the detector does not know. {advice}")
    learned = set(map(normal_form, detector.examples_.texts)) if detector.examples_ else set()
    kept = [record for record in records if normal_form(record.text) not in learned]
    if not kept:
        raise AwattError(f"every sentence of {path} is an example of the detector. Label others to measure it.")
    truth = np.array([[aspect in record.aspects for aspect in detector.aspects] for record in kept], dtype=bool)
    found = detector.predictions([record.text for record in kept]).accepted
    return measure(truth, found, detector.aspects)


def _has_column(path: str, text_column: str, column: str, format: str | None) -> bool:
    """Whether a row has this column, even if it is blank; what is not a regular file cannot be read twice."""
    if not os.path.isfile(path):
        return False
    rows = read_rows(path, text_column=text_column, format=format, on_error=lambda error: None)  # they are known
    return any(column in row for batch in rows for row in batch)


def _no_labels(path: str, text_column: str, aspects_column: str, records: Sequence[Record]) -> DataError:
    names = dict.fromkeys([text_column, *(name for record in records for name in record.fields)])
    found = f"no row has a label in the column '{aspects_column}'; the columns are: {list_columns(names)}"
    advice = f"Rename the one with the labels to '{aspects_column}', or name it with --aspects-column."
    return DataError(f"{found}. {advice}", "stdin" if path == STANDARD_STREAM else path)


def random_order(texts: Iterable[str]) -> list[str]:
    """The different texts in an order that is random but fixed: any first part of it is a random sample.

    It depends on the texts alone, so a sample stays the same when the project is opened again or reviews are added.
    """
    different = {text for text in texts if text.strip()}
    return sorted(different, key=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
