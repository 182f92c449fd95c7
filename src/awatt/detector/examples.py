"""What a detector learns from: sentences, aspects, and which sentence mentions which."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from awatt.errors import AwattError, DataError
from awatt.records.formats import reason, shown
from awatt.records.reader import Record, read_records

MOST_ASPECTS = 200  # more are a taxonomy; every score is computed for every sentence

Bools: TypeAlias = npt.NDArray[np.bool_]
Pairs: TypeAlias = Iterable[tuple[str, Iterable[str]]]


@dataclass(frozen=True)
class Examples:
    """Different sentences, different aspects; a sentence may mention several aspects, or none."""

    texts: tuple[str, ...]
    aspects: tuple[str, ...]
    labels: Bools  # (n_examples, n_aspects)

    @classmethod
    def of(cls, given: Given) -> Examples:
        """From ``{aspect: sentences}``, records, or a file of them. Under the key None are off-topic sentences."""
        if isinstance(given, Examples):
            return given
        if isinstance(given, Mapping):
            examples = cls.from_mapping(cast("Mapping[str | None, Sequence[str]]", given))
        elif isinstance(given, str | Path):
            examples = cls.read(given)
        else:
            examples = cls.from_pairs(map(_pair, given))
        return examples.checked()

    def checked(self) -> Examples:
        """Itself, if there is an aspect."""
        if not self.aspects:
            raise AwattError('there is no aspect. Give at least one with an example: {"food": ["Great pizza."]}.')
        return self

    @classmethod
    def from_mapping(cls, given: Mapping[str | None, Sequence[str]]) -> Examples:
        """From ``{aspect: sentences}``. A sentence under two aspects mentions both; a repeated one counts once.

        Sentences under the key None are off-topic: they mention no aspect. An aspect may have no sentences.
        """
        for aspect, texts in given.items():
            if isinstance(texts, str) or not isinstance(texts, Iterable):
                raise AwattError(
                    f"aspect {aspect!r} has {shown(texts)}, but needs a list of sentences. Put it in brackets."
                )
        pairs = ((text, () if aspect is None else (aspect,)) for aspect, texts in given.items() for text in texts)
        return cls.from_pairs(pairs, (aspect for aspect in given if aspect is not None))

    @classmethod
    def read(cls, path: str | Path, text_column: str = "text", aspects_column: str = "aspects") -> Examples:
        """From a file with a column of text and one of aspects; a row without an aspect is an example of none.

        A ``.json`` file holds one object, ``{aspect: [sentences]}``.
        """
        if str(path).lower().endswith(".json"):
            return cls.from_mapping(cast("Mapping[str | None, Sequence[str]]", _read_object(Path(path))))
        batches = read_records(path, text_column=text_column, aspects_column=aspects_column)
        examples = cls.from_pairs((record.text, record.aspects) for record in chain.from_iterable(batches))
        if not examples.aspects:
            advice = f"Fill in the column '{aspects_column}', or name another one with --aspects-column."
            raise AwattError(f"{path}: {len(examples.texts)} sentences, but none has an aspect. {advice}")
        return examples

    @classmethod
    def from_pairs(cls, pairs: Pairs, aspects: Iterable[str] = ()) -> Examples:
        """From sentences with their aspects. ``aspects`` come first, in their order."""
        columns: dict[str, int] = {}
        rows: dict[str, set[int]] = {}

        def column(aspect: object) -> int:
            if not isinstance(aspect, str) or not aspect.strip():
                raise AwattError(f"an aspect is named {shown(aspect)}, but a name is needed, such as 'food'.")
            return columns.setdefault(aspect.strip(), len(columns))

        for aspect in aspects:
            column(aspect)
        for text, mentioned in pairs:
            mentioned = tuple(mentioned)
            if not isinstance(text, str) or not text.strip():
                place = f" of aspect '{mentioned[0]}'" if mentioned else ""
                raise AwattError(
                    f"an example{place} is {shown(text)}, but a sentence is needed. Fill it in or remove it."
                )
            check_characters(text, "an example")
            rows.setdefault(text.strip(), set()).update(map(column, mentioned))
        check_count(len(columns))
        labels = np.zeros((len(rows), len(columns)), dtype=bool)
        for row, mentions in zip(labels, rows.values(), strict=True):
            row[list(mentions)] = True
        return cls(tuple(rows), tuple(columns), labels)

    @classmethod
    def from_indicators(cls, texts: Sequence[str], labels: Bools, aspects: Sequence[str]) -> Examples:
        """From a matrix (n_texts, n_aspects). Blank texts teach nothing and are left out; repeated ones are joined."""
        check_count(len(aspects))
        aspects = [aspect.strip() for aspect in aspects]
        if len(set(aspects)) < len(aspects):
            raise AwattError(f"the {len(aspects)} classes are not different. Give each column a name of its own.")
        joined: dict[str, Bools] = {}
        for text, row in zip(texts, labels, strict=True):
            if text.strip():
                joined[text.strip()] = joined.get(text.strip(), False) | row
        matrix = np.array(list(joined.values()), dtype=bool).reshape(len(joined), len(aspects))
        return cls(tuple(joined), tuple(aspects), matrix)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many examples each aspect has. (n_aspects,)"""
        return self.labels.sum(0)

    def pairs(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each sentence with its aspects."""
        return [
            (text, tuple(self.aspects[column] for column in np.flatnonzero(row)))
            for text, row in zip(self.texts, self.labels, strict=True)
        ]

    def extended(self, aspect: str, texts: Sequence[str]) -> Examples:
        """With more examples of an aspect, old or new."""
        more = Examples.of({aspect: texts})
        return Examples.from_pairs([*self.pairs(), *more.pairs()], [*self.aspects, aspect])

    def without(self, aspect: str) -> Examples:
        """Without an aspect, and without the sentences that mentioned only this one."""
        kept = [
            (text, [name for name in names if name != aspect]) for text, names in self.pairs() if names != (aspect,)
        ]
        return Examples.from_pairs(kept, [name for name in self.aspects if name != aspect])

    def take(self, rows: npt.NDArray[Any]) -> Examples:
        """Some of the sentences, by a mask or by their numbers."""
        numbers = np.arange(len(self.texts))[rows]
        return Examples(tuple(self.texts[number] for number in numbers), self.aspects, self.labels[numbers])


Given: TypeAlias = (
    Examples
    | Mapping[str, Sequence[str]]
    | Mapping[str | None, Sequence[str]]
    | Iterable[Record | Mapping[str, Any]]
    | str
    | Path
)


def _pair(record: Record | Mapping[str, Any]) -> tuple[str, Iterable[str]]:
    if isinstance(record, Record):
        return record.text, record.aspects
    aspects = record.get("aspects", ()) if isinstance(record, Mapping) and "text" in record else None
    if isinstance(aspects, str) or not isinstance(aspects, Iterable):
        raise AwattError(
            f'an example is {shown(record)}, but {{"text": "Great pizza.", "aspects": ["food"]}}, say, is needed.'
        )
    return record["text"], aspects


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataError("there is no such file. Check the path.", path) from None
    except OSError as error:
        raise DataError(f"cannot be read ({reason(error)}). Name a file that can be.", path) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"broken JSON ({error}). Check it, or give one object a line as .jsonl.", path) from None
    if not isinstance(value, dict) or not value:
        raise DataError(f'found {shown(value)}, but {{"food": ["Great pizza."]}}, say, is needed.', path)
    return value


def check_count(n_aspects: int) -> None:
    """Raise if there are too many aspects."""
    if n_aspects > MOST_ASPECTS:
        advice = "Leave some out, or detect with several detectors."
        raise AwattError(f"there are {n_aspects:,} aspects, but at most {MOST_ASPECTS} are possible. {advice}")


def check_texts(texts: Iterable[object]) -> list[str]:
    """A list of texts; what is not text is named with its place."""
    if isinstance(texts, str):
        raise AwattError(f"found the single text {shown(texts)}, but a list of texts is needed. Put it in brackets.")
    checked: list[str] = []
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            advice = "Fill it in or leave it out."
            raise AwattError(f"text number {number} is {shown(text)}, but a string is needed. {advice}")
        check_characters(text, f"text number {number}")
        checked.append(text)
    return checked


def check_characters(text: str, what: str) -> None:
    """Raise if there is half a character in it, as Python makes of bytes that are no text."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            found = f"{what} is no text: its character {error.start + 1} is half of one ({text[error.start]!a})"
            raise AwattError(f"{found}. Was it read as UTF-8?") from None


def read_targets(y: Any, classes: Sequence[Any] | None, n_texts: int) -> tuple[Bools, list[Any], bool]:
    """What ``y`` says: a matrix (n_texts, n_classes), the classes, and whether ``y`` was such a matrix itself.

    ``y`` is a list of label lists, or an indicator matrix: an array, a sparse matrix, lists of 0 and 1, or a data
    frame, whose column names are then the classes.
    """
    named = getattr(y, "columns", None) if classes is None else classes
    for convert in ("toarray", "to_numpy"):
        if hasattr(y, convert):
            y = getattr(y, convert)()
            break
    rows = list(y)
    if len(rows) != n_texts:
        raise AwattError(f"X has {n_texts} texts, but y has {len(rows)} rows. Give one row a text.")
    if all(isinstance(row, str) for row in rows):
        rows = [[row] for row in rows]
    try:
        rows = [list(row) for row in rows]
    except TypeError:
        advice = 'Give [["food"], ["food", "price"], []] or an indicator matrix.'
        raise AwattError(f"y holds {shown(rows[0])}, but a list of labels a text is needed. {advice}") from None
    if all(isinstance(label, str) for row in rows for label in row) and getattr(y, "ndim", 1) == 1:
        return _from_label_lists(rows, classes)
    return _from_matrix(rows, named)


def _from_label_lists(rows: list[list[str]], classes: Sequence[Any] | None) -> tuple[Bools, list[Any], bool]:
    found = list(classes) if classes is not None else sorted({label for row in rows for label in row})
    columns = {label: column for column, label in enumerate(found)}
    matrix = np.zeros((len(rows), len(found)), dtype=bool)
    for number, row in enumerate(rows):
        for label in row:
            if label not in columns:
                raise AwattError(f"y has the label {label!r}, which is not among the classes {shown(found)}.")
            matrix[number, columns[label]] = True
    return matrix, found, False


def _from_matrix(rows: list[list[Any]], named: Sequence[Any] | None) -> tuple[Bools, list[Any], bool]:
    width = len(rows[0]) if rows else 0
    for number, row in enumerate(rows):
        if len(row) != width or any(value not in (0, 1) for value in row):
            needed = f"but an indicator matrix needs {width} numbers a row, each 0 or 1"
            raise AwattError(f"row {number} of y is {shown(row)}, {needed}; or give lists of labels, which are text.")
    found = list(range(width)) if named is None else list(named)
    if len(found) != width:
        raise AwattError(f"y has {width} columns, but there are {len(found)} classes. Give one name a column.")
    return np.array(rows, dtype=bool).reshape(len(rows), width), found, True
