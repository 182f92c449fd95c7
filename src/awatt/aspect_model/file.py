"""The file as evidence: the sentences whose scores tell how high scores are in the user's reviews.

Where there is no file, labelled sentences that came as a file's do stand for one, or the examples and the reviews that
come with the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import Bools, Sentences
from awatt.aspect_model.calibration import drawn_weights
from awatt.aspect_model.vectors import ReadSentences, TokenVectors

Floats = npt.NDArray[np.float64]

SAMPLE = 500  # sentences of a file that are looked at
FEWEST_REVIEWS = 10  # sentences of a file, below which it says nothing
ENOUGH_REVIEWS = 50  # unlabelled ones, below which its labelled sentences are looked at as well


class Read(NamedTuple):
    """Sentences, read once."""

    sentences: Sentences
    embedded: ReadSentences


class File(NamedTuple):
    """The user's reviews, or a sample of them."""

    unlabelled: Read
    standing: Floats  # (n_labelled,) how often each labelled sentence stands in it

    def part(self, labelled: npt.NDArray[np.int64]) -> File:
        """The same where only these labelled sentences are known."""
        return self._replace(standing=self.standing[labelled])


def read(vectors: TokenVectors, sentences: Sentences) -> Read:
    """Read the sentences, to score them."""
    return Read(sentences, vectors.read(sentences))


def find_file(vectors: TokenVectors, reviews: Sentences | None, labelled: Sentences) -> File | None:
    """The file, its labelled sentences apart, whose scores are better than those of new ones; None if it is small."""
    if reviews is None or len(reviews.lengths) < FEWEST_REVIEWS:
        return None
    numbers = {key: number for number, key in enumerate(labelled.keys())}
    keys = reviews.keys()
    found = np.array([numbers.get(key, -1) for key in keys])
    standing = np.bincount(found[found >= 0], minlength=len(labelled.lengths)).astype(np.float64)
    return File(read(vectors, reviews.take(np.flatnonzero(found < 0))), standing)


def look_at(
    vectors: TokenVectors, own: Sentences, file: File | None, labelled: Sentences, labels: Bools, names: Sequence[str]
) -> Read | None:
    """The sentences whose scores tell how high scores are in the file, or in what stands for it where there is none.

    What stands for it are labelled sentences alone, or with the model's ``own`` reviews: the decision rests on all
    ``labels`` and names, also where some of the labelled sentences are left out.
    """
    if file is not None:
        if len(file.unlabelled.sentences.lengths) >= ENOUGH_REVIEWS:
            return file.unlabelled
        return read(vectors, _join(file.unlabelled.sentences, labelled.take(np.flatnonzero(file.standing))))
    if drawn_weights(labels).any():
        return read(vectors, _evenly(labelled, SAMPLE))
    if not vectors.read_names(names).any():
        return None
    return read(vectors, _join(_evenly(labelled, SAMPLE - len(own.lengths)), own))


def _join(*parts: Sentences) -> Sentences:
    return Sentences(*(np.concatenate([getattr(each, name) for each in parts]) for name in ("ids", "lengths")))


def _evenly(sentences: Sentences, most: int) -> Sentences:
    """At most so many of the sentences, evenly from all of them: of every aspect where they are in its order."""
    count = len(sentences.lengths)
    return sentences.take(np.linspace(0, count - 1, max(0, min(most, count))).round().astype(np.int64))
