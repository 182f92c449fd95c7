"""Chooses which sentences to label next."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from awatt.aspect_model.suggestions import CANDIDATES, choose, uncertainty
from awatt.detector.examples import quote
from awatt.detector.reviews import read_reviews
from awatt.detector.thresholds import Floats, without_nan
from awatt.errors import AwattError
from awatt.records.source import OnError, raise_error

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector


@dataclass(frozen=True)
class Suggestion:
    """A sentence worth labelling, with the aspect the detector is least sure of and its score."""

    text: str
    index: int  # position in the given list
    aspect: str
    score: float


def make_suggestions(
    detector: AspectDetector, texts: list[str], k: int, scores: Floats | None = None
) -> list[Suggestion]:
    """``k`` sentences of which the aspects, in turn, are least sure; no two alike and none an example already.

    ``scores`` (n_texts, n_aspects) are the scores of the texts, if already computed.
    """
    check_number(k, "k")
    scores = detector.predict_proba(texts) if scores is None else scores
    known, model = np.flatnonzero(detector._known), detector.loaded_model
    if not len(known):
        return []
    doubt = uncertainty(scores, without_nan(detector.thresholds()))[:, known]  # (n_texts, n_known)
    numbers = _different(texts, set(detector.examples_.texts) if detector.examples_ else set())
    if not numbers:
        return []
    unsure = np.argsort(-doubt[numbers].max(1), kind="stable")[:CANDIDATES].tolist()
    numbers = [numbers[place] for place in unsure]
    vectors = model.mean_vectors(model.tokenize([texts[number] for number in numbers])).astype(np.float64)
    chosen = choose(doubt[numbers], vectors, k)
    return [
        Suggestion(
            texts[number],
            number,
            detector.aspects[known[doubt[number].argmax()]],
            round(float(scores[number, known[doubt[number].argmax()]]), 4),
        )
        for number in (numbers[place] for place in chosen.tolist())
    ]


def check_number(number: object, what: str) -> None:
    """Raise if it is no number of suggestions."""
    if not isinstance(number, Integral) or isinstance(number, bool) or int(number) < 1:
        raise AwattError(f"{what} is {quote(number)}, but needs a whole number, at least 1.")


def suggest_from_file(
    detector: AspectDetector,
    path: str,
    k: int,
    text_column: str,
    format: str | None,
    split: bool,
    learn: bool,
    on_error: OnError = raise_error,
) -> tuple[list[Suggestion], list[str]]:
    """Suggestions from a file, and its sentences, which ``index`` counts; ``split`` whole reviews into sentences.

    With ``learn`` the detector learns from a sample of the file first, as ``awatt detect`` does.
    """
    reviews = read_reviews(path, text_column, format, split, on_error)
    texts = [text for text, _ in reviews.sentences(split)]
    if learn:
        detector = copy(detector).use_reviews(reviews.sample)
    return make_suggestions(detector, texts, k), texts


def _different(texts: list[str], labelled: set[str]) -> list[int]:
    """The numbers of texts with words, the first of those that have the same words, without the labelled ones."""
    first: dict[frozenset[str], int] = {}
    for number, text in enumerate(texts):
        if text.strip() and text.strip() not in labelled:
            first.setdefault(frozenset(text.lower().split()), number)
    return sorted(first.values())
