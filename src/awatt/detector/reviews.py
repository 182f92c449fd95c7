"""Files of reviews: their sentences, and the bounded sample of them that a detector learns from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from awatt.aspect_model.file import SAMPLE
from awatt.detector.words import split_sentences
from awatt.errors import DataError
from awatt.records.reader import read_rows
from awatt.records.source import OnError, raise_error

if TYPE_CHECKING:
    from awatt.detector.columns import Batch

FIRST_ROWS = 50_000  # of a file, over which the sample is spread
FIRST_BYTES = 2**25  # of these rows, other columns included


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
    first = islice(texts, FIRST_ROWS)
    if split:
        return sample_reviews(sentence for text in first for _, sentence in split_sentences(text))
    return sample_reviews(first)


class ReviewsFile(NamedTuple):
    """All rows of a file."""

    texts: list[str]
    fields: list[dict[str, object]]  # the other columns
    sample: list[str]  # what ``awatt detect`` learns from in this file

    def sentences(self, split: bool) -> list[tuple[str, int]]:
        """Each sentence with the number of its row; unless the texts are ``split``, each is a sentence."""
        if not split:
            return list(zip(self.texts, range(len(self.texts)), strict=True))
        return [(part, number) for number, text in enumerate(self.texts) for _, part in split_sentences(text)]


def read_reviews(
    path: str, text_column: str, format: str | None, split: bool, on_error: OnError = raise_error
) -> ReviewsFile:
    """The whole file; with ``split`` the sample is of the sentences of whole reviews."""
    read = _read_ahead(path, text_column, format, on_error)
    sample = sample_texts(read.texts(), split)
    batches = [batch for batch, _ in read]
    texts, fields = ([each for batch in batches for each in getattr(batch, name)] for name in ("texts", "fields"))
    return ReviewsFile(texts, fields, sample)


def read_sample(path: str, text_column: str, split: bool, on_error: OnError) -> list[str]:
    """The sample that detection in this file learns from; unreadable rows are reported and skipped."""
    read = _read_ahead(path, text_column, None, on_error)
    found = sample_texts(read.texts(), split)
    if read.error is not None:
        raise read.error
    return found


def _read_ahead(path: str, text_column: str, format: str | None, on_error: OnError) -> ReadAhead:
    from awatt.detector.columns import Batch

    rows = read_rows(path, text_column=text_column, format=format, on_error=on_error)
    return ReadAhead(Batch.of(batch, text_column) for batch in rows)


class ReadAhead:
    """Batches of rows, with a way to peek at the first ones. Nothing is read twice."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches
        self._ahead: deque[tuple[Batch, bytes]] = deque()
        self.error: DataError | None = None  # read error, raised when iteration reaches it

    def texts(self, most_batches: int | None = None) -> Iterator[str]:
        """The texts of the first batches; of fewer if they are large, because they are held in memory."""
        size = 0
        while size < FIRST_BYTES and (most_batches is None or len(self._ahead) < most_batches):
            try:
                batch = next(self._batches, None)
            except DataError as error:
                self.error = error
                return
            if batch is None:
                return
            content = batch.content()
            self._ahead.append((batch, content))
            size += len(content)
            yield from batch.texts

    def __iter__(self) -> Iterator[tuple[Batch, bytes]]:
        """All batches."""
        while self._ahead:
            yield self._ahead.popleft()
        if self.error is not None:
            raise self.error
        for batch in self._batches:
            yield batch, batch.content()
