"""The file as evidence: a bounded sample of it, which a detector looks at without labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter

import numpy as np

from awatt.aspect_model.learner import SAMPLE
from awatt.detector.words import split_sentences
from awatt.errors import DataError
from awatt.records.reader import read_rows

FIRST_ROWS = 50_000  # of a file, over which the sample is spread
NO_COLUMN = "\0"  # the aspects of the input, if any, are a column like any other


def sample_reviews(texts: Iterable[str], size: int = SAMPLE) -> list[str]:
    """At most ``size`` different texts with words, evenly spaced. The same texts give the same sample."""
    stripped = dict.fromkeys(map(str.strip, texts))
    different = [text for text in stripped if text[:1].isalnum() or any(map(str.isalnum, text))]
    if len(different) <= size:
        return different
    places = np.linspace(0, len(different) - 1, size).round().astype(int)
    return [different[place] for place in places.tolist()]


def sample_texts(texts: Iterable[str], split: bool) -> list[str]:
    """A sample of the first texts; with ``split`` they are whole reviews, and their sentences count."""
    first = islice(_readable(texts), FIRST_ROWS)
    if split:
        return sample_reviews(sentence for text in first for _, sentence in split_sentences(text))
    return sample_reviews(first)


def _readable(texts: Iterable[str]) -> Iterator[str]:
    """Up to where the file cannot be read any further, which is said when the rows are due."""
    with suppress(DataError):
        yield from texts


def sample_files(paths: Sequence[str], text_column: str, format: str | None, split: bool) -> list[str]:
    """A sample of the first rows of these files together. Rows that cannot be read are reported when they are due."""
    return sample_texts(_texts(paths, text_column, format), split)


def _texts(paths: Sequence[str], text_column: str, format: str | None) -> Iterator[str]:
    for path in paths:
        for rows in read_rows(path, text_column=text_column, format=format, on_error=lambda fault: None):
            yield from map(itemgetter(text_column), rows)
