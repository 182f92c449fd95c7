"""Finds aspects in many texts with a fitted model: scores, decisions and deciding words, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from awatt.arrays import Bools, Sentences, starts
from awatt.data.episode import Prediction
from awatt.detector.marks import Found, Marks, marker
from awatt.detector.models import Model
from awatt.detector.results import Detection, Word
from awatt.detector.thresholds import Floats
from awatt.detector.words import split_windows
from awatt.errors import AwattError

CHUNK = 1024  # sentences per batch: few calls, and memory stays small
PAIRS = 25_600  # of a sentence and an aspect per batch: what is computed for them fits into the CPU's cache


class Finder(NamedTuple):
    """A fitted model, and which of the detector's aspects it knows."""

    model: Model
    fitted: Any  # None if it knows no aspect
    known: Bools  # (n_aspects,)
    mode: str
    name: str | Path | None  # of the model, for messages

    def find(self, texts: list[str], cut: Floats, words: bool) -> Found:
        """The aspects of checked texts. ``cut`` (n_aspects,) is NaN where the model decides itself.

        A text that is too long for the model is read in parts, and has the aspects of all of them.
        """
        windows = split_long(self.model, texts)
        parts = [part for each in windows for _, part in each] if windows else texts
        found, marks = [], list[Marks]()
        size = max(1, min(CHUNK, PAIRS // len(self.known)))
        for first in range(0, max(len(parts), 1), size):
            part = parts[first : first + size]
            sentences = self.model.tokenize(part)
            scores, accepted = self.predict(part, sentences)
            found.append((scores, np.where(np.isnan(cut), accepted, scores >= cut)))
            if words:
                marks += self._mark(part, sentences, found[-1][1], first)
        scores, accepted = (np.concatenate(column) for column in zip(*found, strict=True))
        marked = Marks.join(marks) if words and marks else None
        if windows:
            counts = np.array(list(map(len, windows)))
            scores = np.maximum.reduceat(scores, starts(counts))
            accepted = np.logical_or.reduceat(accepted, starts(counts))
            shifts = np.array([shift for each in windows for shift, _ in each])
            marked = None if marked is None else marked.merge(np.repeat(np.arange(len(texts)), counts), shifts)
        return Found(scores, accepted, marked)

    def predict(self, texts: Sequence[str], sentences: Sentences) -> Prediction:
        """Predict all aspects. Blank texts and aspects unknown to the model have score 0 and are never accepted."""
        scores = np.zeros((len(texts), len(self.known)))
        accepted = np.zeros(scores.shape, dtype=bool)
        if self.fitted is not None and len(texts):
            scores[:, self.known], accepted[:, self.known] = self.model.predict(self.fitted, sentences, self.mode)
            blank = [not text or text.isspace() for text in texts]
            scores[blank], accepted[blank] = 0, False
            if not np.isfinite(scores).all():
                advice = "Copy or train it again, or leave out the model."
                raise AwattError(f"{self.name or 'the model'} gives scores that are not numbers. {advice}")
        return Prediction(scores, accepted)

    def _mark(self, texts: Sequence[str], sentences: Sentences, accepted: Bools, first: int) -> list[Marks]:
        """The deciding words of texts, the first of which has the number ``first``; empty if the model has none."""
        wanted = np.flatnonzero(accepted.any(1))
        if not len(wanted) or self.fitted is None:
            return []
        taken = sentences.take(wanted)
        weights = self.model.word_weights(self.fitted, taken)
        if weights is None:
            return []
        known = np.zeros((len(weights), len(self.known)), dtype=weights.dtype)
        known[:, self.known] = weights
        chosen = [texts[number] for number in wanted.tolist()]
        marks = marker(self.model.tokenizer).mark(chosen, taken, known, accepted[wanted])
        return [marks._replace(texts=wanted[marks.texts] + first)]


def make_detections(
    aspects: Sequence[str], texts: Sequence[str], offsets: Sequence[int], found: Found
) -> list[Detection]:
    """One per text; ``offsets`` is where each begins in its review, and word offsets are shifted by it."""
    accepted: list[list[str]] = [[] for _ in texts]
    for number, aspect in zip(*(axis.tolist() for axis in np.nonzero(found.accepted)), strict=True):
        accepted[number].append(aspects[aspect])
    deciding: list[dict[str, list[Word]]] = [{} for _ in texts]
    if found.marks is not None:
        deciding = [{name: [] for name in names} for names in accepted]
        *columns, weights = found.marks
        for number, aspect, begin, end, weight in zip(*(column.tolist() for column in columns), weights, strict=True):
            shift, word = offsets[number], texts[number][begin:end]
            deciding[number][aspects[aspect]].append(Word(word, begin + shift, end + shift, weight))
    rows = zip(texts, accepted, found.scores.round(4), deciding, offsets, strict=True)
    # Each with a row of its own, so that one detection does not keep those of all others in memory.
    return [Detection.lazy(text, names, aspects, row.copy(), words, start) for text, names, row, words, start in rows]


def split_long(model: Model, texts: Sequence[str]) -> list[list[tuple[int, str]]]:
    """The parts of each text that the model can read, with their start offsets; empty if it can read all texts."""
    most = model.max_length
    long = [number for number, text in enumerate(texts) if len(text) > most]  # a token has a character at least
    if long:
        cut = model.tokenize([texts[number] for number in long]).lengths >= most  # or it just fits
        long = list(compress(long, cut.tolist()))
    split = {number: split_windows(texts[number], model.tokenizer, most) for number in long}
    if all(len(parts) == 1 for parts in split.values()):
        return []
    return [split.get(number, [(0, text)]) for number, text in enumerate(texts)]
