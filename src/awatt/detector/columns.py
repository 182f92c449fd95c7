"""What was found in many rows at once, and the columns that are written of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import Bools, starts
from awatt.detector.examples import check_texts
from awatt.detector.marks import Marks
from awatt.detector.words import find_sentences
from awatt.errors import AwattError
from awatt.records.format_writers import around_values, to_cell, to_json_lines
from awatt.records.formats import InvalidValueError, to_json
from awatt.records.tables import JsonLines, JsonTexts, Table, to_tables

if TYPE_CHECKING:
    from awatt.detector.bulk import BulkConfig
    from awatt.detector.detector import AspectDetector


STEPS = 10_000  # scores are written with four digits
_SCORES: npt.NDArray[Any] = np.array([repr(step / STEPS) for step in range(STEPS + 1)], dtype=object)
_END = "\udfff"  # half a character, which no text contains
MOST_REMEMBERED = 10_000  # sets of aspects
#: an end of a sentence with another one after it: a quick look, right in most cases
SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s+[\"'“‘(\[]*[A-Z]")
SECOND_LINE = re.compile(r"\n\s*\w")


class Batch(NamedTuple):
    """Rows: their texts, and their other columns in order."""

    texts: list[str]
    fields: list[dict[str, object]]

    @classmethod
    def of(cls, rows: list[dict[str, object]], text_column: str) -> Batch:
        """The text is taken out of each row."""
        return cls([row.pop(text_column) for row in rows], rows)  # type: ignore[misc]  # the reader gives text

    def part(self, rows: slice) -> Batch:
        """Some of the rows."""
        return Batch(self.texts[rows], self.fields[rows])

    def content(self) -> bytes:
        """Bytes to hash, to see whether rows changed; the bytes of the parts joined are those of the whole."""
        if any(self.fields):
            rows = zip(self.texts, self.fields, strict=True)
            joined = "".join([f"{text}{_END}{fields or ''}{_END}" for text, fields in rows])
        else:
            joined = f"{_END}{_END}".join([*self.texts, ""])
        return joined.encode(errors="surrogatepass")


class FoundRows(NamedTuple):
    """The detections of some rows; what is nested is JSON."""

    scores: npt.NDArray[np.float64]  # (n_rows, n_aspects)
    accepted: Bools  # (n_rows, n_aspects)
    words: JsonTexts | None = None  # if wanted
    sentences: JsonTexts | None = None  # if rows were split


def find(detector: AspectDetector, texts: list[str], config: BulkConfig) -> FoundRows:
    """Detect in each text, as a sentence or as a review."""
    texts = check_texts(texts)
    if not config.reviews:
        scores, accepted, marks = detector.find(texts, words=config.words)
        words = _words_as_json(texts, detector.aspects, marks) if config.words else None
        return FoundRows(scores, accepted, words)
    sentences = [find_sentences(text) for text in texts]
    counts = np.array(list(map(len, sentences)))
    found = detector.find([text for each in sentences for _, text in each], words=config.words)
    first = starts(counts)
    marks, words = found.marks, None
    if config.words:
        if marks is not None:
            shifts = np.array([start for each in sentences for start, _ in each])
            marks = marks.merge(np.repeat(np.arange(len(texts)), counts), shifts)
        words = _words_as_json(texts, detector.aspects, marks)
    return FoundRows(
        np.maximum.reduceat(found.scores, first),
        np.logical_or.reduceat(found.accepted, first),
        words,
        _sentences_as_json(sentences, detector.aspects, found.accepted),
    )


def _words_as_json(texts: Sequence[str], aspects: Sequence[str], marks: Marks | None) -> JsonTexts:
    if marks is None:
        return JsonTexts(["[]"] * len(texts))
    names = list(map(to_json, aspects))
    numbers, aspect, begin, end = (column.tolist() for column in marks[:4])
    words = [texts[number][first:last] for number, first, last in zip(numbers, begin, end, strict=True)]
    pieces = map(
        '{"aspect": %s, "word": %s, "start": %d, "end": %d, "weight": %r}'.__mod__,
        zip(map(names.__getitem__, aspect), map(encode_basestring, words), begin, end, marks.weights, strict=True),
    )
    counts = np.bincount(marks.texts, minlength=len(texts)).tolist()
    return JsonTexts(f"[{', '.join(islice(pieces, count))}]" for count in counts)


def _sentences_as_json(sentences: list[list[tuple[int, str]]], aspects: Sequence[str], accepted: Bools) -> JsonTexts:
    hits = iter(accepted.tolist())
    return JsonTexts(
        to_json(
            [
                {"start": start, "end": start + len(text), "aspects": list(compress(aspects, next(hits)))}
                for start, text in each
            ]
        )
        for each in sentences
    )


def scores_as_json(aspects: Sequence[str], scores: npt.NDArray[np.float64]) -> JsonTexts:
    """An object per row, with four digits of each score. ``scores`` is (n_rows, n_aspects)."""
    pieces = np.empty((len(scores), 2 * len(aspects) + 1), dtype=object)
    pieces[:, ::2], pieces[:, 1::2] = around_values(aspects), _SCORES[_steps(scores)]
    return JsonTexts(map("".join, pieces.tolist()))


def _steps(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.rint(scores * STEPS).astype(np.int64)


class AspectSets:
    """The aspects of each row, as they are written. Few sets of aspects are frequent: each is written once."""

    def __init__(self, aspects: Sequence[str], write: Callable[[list[str]], Any]) -> None:
        self.aspects, self.write = aspects, write
        self._known: dict[bytes, Any] = {}

    def __call__(self, accepted: Bools) -> Iterator[Any]:
        """``accepted`` is (n_rows, n_aspects)."""
        known, width = self._known, len(self.aspects)
        flat = accepted.tobytes()
        keys = [flat[first : first + width] for first in range(0, len(flat), width)]
        if len(known) > MOST_REMEMBERED:
            known = self._known = {}
        for key in set(keys).difference(known):
            known[key] = self.write(list(compress(self.aspects, key)))
        return map(known.__getitem__, keys)


class Counts(NamedTuple):
    """Of some rows."""

    rows: int
    none: int  # rows without an aspect
    several: int  # rows that seem to have several sentences, unless they are split
    aspects: list[int]  # rows with each aspect
    values: dict[str, list[object]]  # of the columns to compare by
    accepted: Bools | None = None  # (n_rows, n_aspects), if there are such columns


def _count(found: FoundRows, batch: Batch, by: Sequence[str]) -> Counts:
    texts = batch.texts
    none = int((~found.accepted.any(1)).sum())
    several = _count_several(texts) if found.sentences is None else 0
    values = {
        name: [row.get(name) for row in batch.fields]
        for name in by
        if not batch.fields or any(name in row for row in batch.fields)
    }
    return Counts(len(texts), none, several, found.accepted.sum(0).tolist(), values, found.accepted if by else None)


def _count_several(texts: Sequence[str]) -> int:
    joined = "\0".join(texts)  # one search for all; no match contains this character
    ends = [match.start() for match in SENTENCE_END.finditer(joined)]
    several = np.zeros(len(texts), dtype=bool)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    several[np.searchsorted(np.cumsum(lengths + 1), ends, side="right")] = True
    if "\n" in joined:
        several |= ["\n" in text and bool(SECOND_LINE.search(text.strip())) for text in texts]
    return int(several.sum())


class DetectedBatch(NamedTuple):
    """Rows to write."""

    tables: list[Table] | list[JsonLines]
    counts: Counts


@dataclass
class TableMaker:
    """Makes tables to write: the input's columns, then the detection. CSV and Parquet have a column per score."""

    config: BulkConfig
    aspects: tuple[str, ...]
    kind: str  # format of the output

    def __post_init__(self) -> None:
        prefix = self.config.prefix
        self.new = [f"{prefix}{name}" for name in ("aspects", "scores", "words", "sentences")]
        self.score_columns = [f"{prefix}score_{aspect}" for aspect in self.aspects]
        of_scores = self.new[1:2] if self.kind == "jsonl" else self.score_columns
        asked = compress(self.new[2:], (self.config.words, self.config.reviews))
        self.taken = {self.new[0], *of_scores, *asked}
        write = to_json if self.kind == "jsonl" else list if self.kind == "parquet" else to_cell
        self._aspect_sets = AspectSets(self.aspects, write)

    def detect(self, detector: AspectDetector, batch: Batch) -> DetectedBatch:
        """Detect in each row."""
        found = find(detector, batch.texts, self.config)
        tables, counts = self(batch, found), _count(found, batch, self.config.by)
        if self.kind != "jsonl":
            return DetectedBatch(tables, counts)
        try:
            return DetectedBatch([to_json_lines(tables)], counts)
        except InvalidValueError as error:
            raise AwattError(str(error)) from None

    def __call__(self, batch: Batch, found: FoundRows) -> list[Table]:
        given, first = to_tables(batch.fields), 0
        new, tables = self._new_columns(found), []
        for table in given:
            rows = slice(first, first + table.n_rows)
            columns = {self.config.text_column: batch.texts[rows], **table.columns}
            for name in sorted(self.taken & columns.keys()):
                raise AwattError(
                    f"the input already has a column '{name}'. Rename the new ones, for example with --prefix found_."
                )
            part = new if len(given) == 1 else {name: type(values)(values[rows]) for name, values in new.items()}
            tables.append(Table(table.n_rows, {**columns, **part}))
            first += table.n_rows
        return tables

    def empty(self, detector: AspectDetector, columns: Sequence[str]) -> dict[str, object]:
        """An example row for an input that has ``columns`` but no rows."""
        found = find(detector, [""], self.config)
        fields = dict.fromkeys(name for name in columns if name != self.config.text_column)
        return next(self(Batch([""], [fields]), found)[0].rows())

    def _new_columns(self, found: FoundRows) -> dict[str, list[Any]]:
        aspects, scores, words, sentences = self.new
        as_json = self.kind == "jsonl"
        columns = {aspects: (JsonTexts if as_json else list)(self._aspect_sets(found.accepted))}
        if as_json:
            columns[scores] = scores_as_json(self.aspects, found.scores)
        else:
            steps = _steps(found.scores)
            values = steps / STEPS if self.kind == "parquet" else _SCORES[steps]
            columns.update(zip(self.score_columns, values.T.tolist(), strict=True))
        if found.words is not None:
            columns[words] = found.words
        if found.sentences is not None:
            columns[sentences] = found.sentences
        return columns
