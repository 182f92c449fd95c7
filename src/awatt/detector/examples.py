"""The examples a detector learns from: sentences, aspects, and which sentence mentions which aspects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from awatt.arrays import Bools
from awatt.errors import AwattError, DataError, plural
from awatt.files import parse_json
from awatt.records.formats import STANDARD_STREAM, reason, short_repr
from awatt.records.reader import Record, read_records

MAX_ASPECTS = 200  # every score is computed for every sentence; a larger set is a taxonomy, a different task

Pairs: TypeAlias = Iterable[tuple[str, Iterable[str]]]


@dataclass(frozen=True)
class Examples:
    """Distinct sentences and distinct aspects; a sentence may mention several aspects, or none."""

    texts: tuple[str, ...]
    aspects: tuple[str, ...]
    labels: Bools  # (n_examples, n_aspects)

    @classmethod
    def from_any(cls, given: ExamplesInput) -> Examples:
        """From ``{aspect: sentences}``, records, or a file of them. Under the key None are off-topic sentences."""
        if isinstance(given, Examples):
            return given
        if isinstance(given, Mapping):
            examples = cls.from_mapping(cast("Mapping[str | None, Sequence[str]]", given))
        elif isinstance(given, str | Path):
            examples = cls.read(given)
        elif _is_table(given) or isinstance(given, bytes) or not isinstance(given, Iterable):
            advice = 'Give it in such a form, or as the path of a file, such as "examples.csv".'
            if _is_table(given):
                advice = 'Give its rows: table.to_dict("records"), or in polars table.to_dicts().'
            raise AwattError(f'found {quote(given)}, but needs a form such as {{"food": ["Great pizza."]}}. {advice}')
        else:
            examples = cls.from_pairs(map(_pair, given))
        return examples.validated()

    def validated(self) -> Examples:
        """Return itself; raise if there is no aspect."""
        if not self.aspects:
            raise AwattError('there are no aspects. Give at least one with an example: {"food": ["Great pizza."]}.')
        return self

    @classmethod
    def from_mapping(cls, given: Mapping[str | None, Sequence[str]]) -> Examples:
        """From ``{aspect: sentences}``. A sentence under two aspects mentions both; duplicates count once.

        Sentences under the key None are off-topic: they mention no aspect. An aspect may have no sentences.
        """
        for aspect, texts in given.items():
            if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
                needed = 'needs a list of sentences, such as ["Great pizza."]'
                raise AwattError(f"aspect {aspect!r} has {short_repr(texts)}, but {needed}.")
        pairs = ((text, () if aspect is None else (aspect,)) for aspect, texts in given.items() for text in texts)
        return cls.from_pairs(pairs, (aspect for aspect in given if aspect is not None))

    @classmethod
    def from_json(cls, found: Mapping[str, Sequence[str]]) -> Examples:
        """From ``{aspect: sentences}`` as JSON has it: it writes the key None, for off-topic sentences, as "null"."""
        return cls.from_mapping({None if aspect == "null" else aspect: texts for aspect, texts in found.items()})

    @classmethod
    def read(cls, path: str | Path, text_column: str = "text", aspects_column: str = "aspects") -> Examples:
        """From a file with a text and an aspects column; a row without aspects is an off-topic example.

        A row without text and aspects is skipped. A ``.json`` file holds one object, ``{aspect: [sentences]}``. Of
        results that the page exported only those count that a person has labelled.
        """
        if str(path).lower().endswith(".json"):
            return cls.from_json(_read_object(Path(path)))
        batches = read_records(path, text_column=text_column, aspects_column=aspects_column)
        examples = cls.from_pairs(_filled(chain.from_iterable(batches), str(path), text_column))
        if not examples.aspects:
            found = f"{plural(len(examples.texts), 'sentence')}, but no aspects"
            advice = f"Fill in the column '{aspects_column}', or choose another one with --aspects-column."
            if not examples.texts:
                found = "no labelled sentence"
                advice += " Rows with 'by_person' false were detected, not labelled."
            raise AwattError(f"{path}: {found}. {advice}")
        return examples

    @classmethod
    def from_pairs(cls, pairs: Pairs, aspects: Iterable[str] = ()) -> Examples:
        """From (sentence, aspects) pairs. ``aspects`` come first, in this order.

        A sentence that occurs again mentions the aspects of all its places; it cannot be off-topic in one of them.
        """
        columns: dict[str, int] = {}
        rows: dict[str, set[int]] = {}

        def column(aspect: object) -> int:
            if not isinstance(aspect, str) or not aspect.strip():
                raise AwattError(f"an aspect is named {short_repr(aspect)}, but needs a name such as 'food'.")
            check_characters(aspect, "the name of an aspect")
            return columns.setdefault(aspect.strip(), len(columns))

        for aspect in aspects:
            column(aspect)
        for text, mentioned in pairs:
            mentioned = (mentioned,) if isinstance(mentioned, str) else tuple(mentioned)
            if not isinstance(text, str) or not text.strip():
                raise _no_sentence(text, mentioned)
            check_characters(text, "an example")
            found = set(map(column, mentioned))
            known = rows.setdefault(text.strip(), found)
            if bool(known) != bool(found):
                places = f"off-topic in one place and mentions '{list(columns)[min(known | found)]}' in another"
                raise AwattError(f"the example {short_repr(text.strip())} is {places}. Remove it in one of them.")
            known |= found
        check_count(len(columns))
        labels = np.zeros((len(rows), len(columns)), dtype=bool)
        for row, mentions in zip(labels, rows.values(), strict=True):
            row[list(mentions)] = True
        return cls(tuple(rows), tuple(columns), labels)

    @classmethod
    def from_indicators(cls, texts: Sequence[str], labels: Bools, aspects: Sequence[str]) -> Examples:
        """From an indicator matrix (n_texts, n_aspects). Labels of duplicates are merged.

        Blank texts without labels are dropped.
        """
        check_count(len(aspects))
        aspects = [aspect.strip() for aspect in aspects]
        if "" in aspects:
            raise AwattError("a class has a blank name. Give each column a name such as 'food'.")
        if len(set(aspects)) < len(aspects):
            twice = next(aspect for aspect in aspects if aspects.count(aspect) > 1)
            found = f"the names of the {len(aspects)} classes are not unique: '{twice}' occurs more than once"
            raise AwattError(f"{found}, apart from white space around it. Give each class one name of its own.")
        merged: dict[str, Bools] = {}
        for text, row in zip(texts, labels, strict=True):
            if text.strip():
                merged[text.strip()] = merged.get(text.strip(), False) | row
            elif row.any():
                raise _no_sentence(text, list(compress(aspects, row)))
        matrix = np.array(list(merged.values()), dtype=bool).reshape(len(merged), len(aspects))
        return cls(tuple(merged), tuple(aspects), matrix)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of examples per aspect. (n_aspects,)"""
        return self.labels.sum(0)

    def pairs(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each sentence with its aspects."""
        return [
            (text, tuple(self.aspects[column] for column in np.flatnonzero(row)))
            for text, row in zip(self.texts, self.labels, strict=True)
        ]

    def extended(self, aspect: str | None, texts: Sequence[str]) -> Examples:
        """With more examples of an existing or new aspect; with None, with sentences that are off-topic from now on."""
        more = Examples.from_mapping({aspect: texts})
        kept = self.pairs()
        corrected = set(more.texts)  # if they were taken for something else
        kept = [(text, names) for text, names in kept if text not in corrected or (names and aspect is not None)]
        return Examples.from_pairs([*kept, *more.pairs()], [*self.aspects, *more.aspects])

    def without(self, aspect: str) -> Examples:
        """Without an aspect and the sentences that mention only this aspect."""
        kept = [
            (text, [name for name in names if name != aspect]) for text, names in self.pairs() if names != (aspect,)
        ]
        return Examples.from_pairs(kept, [name for name in self.aspects if name != aspect])

    def take(self, rows: npt.NDArray[Any]) -> Examples:
        """The sentences selected by a mask or by their row numbers."""
        numbers = np.arange(len(self.texts))[rows]
        return Examples(tuple(self.texts[number] for number in numbers), self.aspects, self.labels[numbers])


ExamplesInput: TypeAlias = (
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
            f"an example is {short_repr(record)}, but needs a form such as "
            '{"text": "Great pizza.", "aspects": ["food"]}.'
        )
    return record["text"], aspects


def _no_sentence(text: object, mentioned: Sequence[str]) -> AwattError:
    place = f" of aspect '{mentioned[0]}'" if mentioned else ""
    return AwattError(f"an example{place} is {short_repr(text)}, but a sentence is needed. Fill it in or remove it.")


def is_labelled(record: Record) -> bool:
    """Whether its aspects are labels: in results that the page exported, others are what was detected."""
    return str(record.fields.get("by_person", True)).lower() not in ("false", "0", "0.0")


def _filled(records: Iterable[Record], path: str, text_column: str) -> Pairs:
    """The records with text; raise for one that has aspects alone. Spreadsheets write blank rows at the end."""
    for record in filter(is_labelled, records):
        if record.text.strip():
            yield record.text, record.aspects
        elif record.aspects:
            message = f"found {short_repr(record.text)}, but a sentence is needed. Fill it in or remove the row."
            raise DataError(message, "stdin" if path == STANDARD_STREAM else path, record.line, text_column)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError("there is no such file. Check the path.", path) from None
    except OSError as error:
        raise DataError(f"cannot be read ({reason(error)}). Check the path and its permissions.", path) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not valid JSON ({error}). Fix it, or give one object per line as .jsonl.", path) from None
    if not isinstance(value, dict) or not value:
        raise DataError(f'found {short_repr(value)}, but needs a form such as {{"food": ["Great pizza."]}}.', path)
    return value


def normal_form(text: str) -> str:
    """The same for texts that differ only in case or white space."""
    return " ".join(text.split()).casefold()


def alike_names(names: Iterable[str]) -> list[tuple[str, str]]:
    """Each name that differs only in case or white space from an earlier one, behind that one."""
    first: dict[str, str] = {}
    pairs = [(first.setdefault(normal_form(name), name), name) for name in names]
    return [(known, name) for known, name in pairs if known != name]


def check_count(n_aspects: int) -> None:
    """Raise if there are too many aspects."""
    if n_aspects > MAX_ASPECTS:
        advice = "Leave some out, or use several detectors."
        raise AwattError(f"there are {n_aspects:,} aspects, but at most {MAX_ASPECTS} are possible. {advice}")


def check_listed(given: object, what: str = "texts") -> Iterable[Any]:
    """Itself; raise for what is no list of texts, although iterating may give strings: a table gives its headers."""
    found, advice = quote(given), f"Give the {what} themselves."
    if _is_table(given):
        advice = "Give one of its columns."
    elif isinstance(given, Mapping):
        found, advice = "a dictionary", "Give one of its values."
    elif isinstance(given, str):
        found, advice = f"the single text {found}", f"Put it in brackets; of a file, give the {what}."
    elif isinstance(given, Iterable) and not isinstance(given, bytes):
        return given
    raise AwattError(f"found {found}, but a list of {what} is needed. {advice}")


def check_text(text: object, several: str) -> list[str]:
    """A single text as a list of one; raise for anything else. ``several`` is the method that reads several texts."""
    if isinstance(text, list | tuple):
        raise AwattError(f"found {plural(len(text), 'text')}, but one is needed. Use {several}.")
    if not isinstance(text, str):
        raise AwattError(f"the text is {quote(text)}, but a string is needed. Give one text; for many use {several}.")
    check_characters(text, "the text")
    return [text]


def check_texts(texts: Iterable[object]) -> list[str]:
    """The texts as a list; raise for anything that is not a string, with its position."""
    checked: list[str] = list(check_listed(texts))  # what is in it is checked here
    if set(map(type, checked)) <= {str}:
        with suppress(UnicodeEncodeError):
            "".join(checked).encode()
            return checked
    for number, text in enumerate(checked):
        if not isinstance(text, str):
            advice = "Fill it in or leave it out."
            raise AwattError(f"text number {number} is {quote(text)}, but a string is needed. {advice}")
        if not text.isascii():
            check_characters(text, f"text number {number}")
    return checked


def quote(value: object) -> str:
    """A value of Python as an error message quotes it, in one line."""
    if _is_table(value):
        return "a table"
    return "None" if value is None else short_repr(value).replace("\n", " ")


def _is_table(value: object) -> bool:
    """Whether it is a data frame, of pandas or polars, or a table of pyarrow."""
    return hasattr(value, "columns")


def check_characters(text: str, what: str) -> None:
    """Raise if the text has an unpaired surrogate, which Python makes of bytes that are not valid text."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            found = f"{what} contains an unpaired surrogate ({text[error.start]!a}) at character {error.start + 1}"
            raise AwattError(f"{found}. Read the text as UTF-8.") from None
