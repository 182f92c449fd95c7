"""What was found in a set of reviews: shares of the aspects, comparisons by column, and typical sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from awatt.arrays import Bools
from awatt.detector.comparison import Comparison, compare
from awatt.detector.groups import Column, group_columns
from awatt.detector.quality import Measure, wilson
from awatt.detector.results import Detection
from awatt.detector.reviews import read_reviews
from awatt.detector.thresholds import Floats
from awatt.errors import AwattError
from awatt.records.source import OnError, raise_error

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

TYPICAL = 4  # sentences per aspect
LENGTHS = (20, 220)  # characters of a typical sentence, where there are such
USED = 0.1  # weight left to a word that a chosen sentence already contains
SURE = 0.01  # what each point of a score adds
WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class Sentences:
    """Sentences, the number of the review of each (from 0), and what was found in them."""

    texts: list[str]
    review_of: list[int]
    found: Bools  # (n_sentences, n_aspects)
    scores: Floats


@dataclass(frozen=True)
class AspectFindings:
    """How often an aspect is mentioned, and sentences that show how."""

    name: str
    sentences: int
    reviews: Measure  # the share of the reviews that mention it
    typical: list[Detection]


@dataclass(frozen=True)
class Findings:
    """Everything that a report says about the reviews; the most frequent aspects first."""

    n_reviews: int
    n_sentences: int
    none: int  # sentences in which nothing was found
    aspects: list[AspectFindings]
    names: list[str]  # in the detector's order, that of ``together``
    together: list[list[int]]  # sentences that mention both aspects
    comparisons: list[Comparison]  # by every column that can be compared; what differs most first


def summarise(detector: AspectDetector, sentences: Sentences, columns: Sequence[Column], n_reviews: int) -> Findings:
    """Count, compare by every column, and choose typical sentences."""
    names, found = list(detector.aspects), sentences.found
    mentioned = np.zeros((n_reviews, len(names)), dtype=bool)  # a review has the aspects of its sentences
    np.logical_or.at(mentioned, np.array(sentences.review_of, dtype=np.int64), found)
    rows = typical_rows(sentences.texts, found, sentences.scores)
    shown = dict(
        zip(wanted := sorted({row for each in rows for row in each}), _shown(detector, sentences, wanted), strict=True)
    )
    aspects = [
        AspectFindings(name, int(found[:, n].sum()), share, [shown[row] for row in rows[n]])
        for n, name in enumerate(names)
        if (share := wilson(int(mentioned[:, n].sum()), n_reviews)) is not None
    ]
    comparisons = [compare(column, mentioned, names) for column in columns if column.comparable]
    return Findings(
        n_reviews,
        len(sentences.texts),
        int((~found.any(1)).sum()),
        sorted(aspects, key=lambda each: -each.reviews.value),
        names,
        (found.T.astype(np.int64) @ found).tolist(),
        sorted(comparisons, key=lambda each: -max((a.strength for a in each.aspects), default=0.0)),
    )


def _shown(detector: AspectDetector, sentences: Sentences, rows: Sequence[int]) -> list[Detection]:
    """These sentences with what was found in them, or assigned by a person, and its deciding words."""
    scored = detector.detect_many([sentences.texts[row] for row in rows], threshold=0.0) if rows else []
    found = [list(compress(detector.aspects, sentences.found[row])) for row in rows]
    return [
        replace(each, aspects=names, words={name: words for name, words in each.words.items() if name in names})
        for each, names in zip(scored, found, strict=True)
    ]


def typical_rows(texts: Sequence[str], found: Bools, scores: Floats, count: int = TYPICAL) -> list[list[int]]:
    """For each aspect the rows whose words are the most characteristic of its sentences, no two alike.

    The weight of a word is its part of the divergence between the aspect's sentences and all of them.
    """
    words = [frozenset(WORD.findall(text.lower())) for text in texts]
    overall = Counter(word for each in words for word in each)
    chosen = []
    for column in range(found.shape[1]):
        rows = np.flatnonzero(found[:, column]).tolist()
        own = Counter(word for row in rows for word in words[row])
        weight = {word: n / len(rows) * np.log(n * len(texts) / (len(rows) * overall[word])) for word, n in own.items()}
        fitting = [row for row in rows if LENGTHS[0] <= len(texts[row]) <= LENGTHS[1]] or rows
        chosen.append(_pick(fitting, words, weight, scores[:, column], count))
    return chosen


def _pick(
    rows: Sequence[int], words: Sequence[frozenset[str]], weight: dict[str, float], scores: Floats, count: int
) -> list[int]:
    picked: list[int] = []
    left = list({words[row]: row for row in reversed(rows)}.values())  # the first of those with the same words
    while left and len(picked) < count:
        values = [sum(sorted((weight[word] for word in words[row]), reverse=True)[:3]) for row in left]
        best = left[int(np.argmax([value + SURE * scores[row] for value, row in zip(values, left, strict=True)]))]
        picked.append(best)
        left.remove(best)
        for word in words[best]:
            weight[word] *= USED
    return picked


def read_findings(
    detector: AspectDetector,
    path: str,
    text_column: str,
    format: str | None,
    split: bool,
    learn: bool,
    on_error: OnError = raise_error,
) -> tuple[AspectDetector, Findings]:
    """Detect in all rows of a file and summarise; ``split`` whole reviews into sentences.

    With ``learn`` the detector learns from a sample of the file first, as ``awatt detect`` does, and is returned.
    """
    reviews = read_reviews(path, text_column, format, split, on_error)
    if not reviews.texts:
        raise AwattError(f"{path} has no reviews. A report needs at least one.")
    parts = reviews.sentences(split)
    texts, review_of = [text for text, _ in parts], [number for _, number in parts]
    if learn:
        detector = copy(detector).use_reviews(reviews.sample)
    scores, found = detector.predictions(texts)
    columns = group_columns(reviews.fields)
    return detector, summarise(detector, Sentences(texts, review_of, found, scores), columns, len(reviews.texts))
