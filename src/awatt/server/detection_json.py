"""Detections as JSON, straight from arrays: making an object of each, and JSON of that, takes longer than detecting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from awatt.detector.columns import AspectSets, scores_as_json
from awatt.detector.detector import AspectDetector
from awatt.detector.examples import check_texts
from awatt.detector.marks import Found
from awatt.records.formats import to_json


class JsonDetector:
    """Gives each text's `Detection` as JSON."""

    def __init__(self, detector: AspectDetector) -> None:
        self.detector = detector
        self._aspect_sets = AspectSets(detector.aspects, to_json)

    def __call__(self, texts: Sequence[str], threshold: Any, words: bool) -> list[str]:
        """One object per text."""
        checked = check_texts(texts)
        found, aspects = self.detector.find(checked, threshold, words), self.detector.aspects
        columns = zip(
            map(encode_basestring, checked),
            self._aspect_sets(found.accepted),
            scores_as_json(aspects, found.scores),
            _words_as_json(checked, aspects, found),
            strict=True,
        )
        return list(map('{"text": %s, "aspects": %s, "scores": %s, "words": %s, "start": 0}'.__mod__, columns))


def join_detections(detections: Sequence[str]) -> bytes:
    """The body of a response: `Detections` as JSON."""
    return f'{{"detections": [{", ".join(detections)}]}}'.encode()


def _words_as_json(texts: Sequence[str], aspects: Sequence[str], found: Found) -> list[str]:
    """Per text an object: the deciding words of each aspect found, maybe none."""
    if found.marks is None:
        return ["{}"] * len(texts)
    marks, names = found.marks, [f"{to_json(name)}: " for name in aspects]
    numbers, begin, end = marks.texts.tolist(), marks.begin.tolist(), marks.end.tolist()
    words = [texts[number][first:last] for number, first, last in zip(numbers, begin, end, strict=True)]
    pieces = map(
        '{"text": %s, "start": %d, "end": %d, "weight": %r}'.__mod__,
        zip(map(encode_basestring, words), begin, end, marks.weights, strict=True),
    )
    # Marks are sorted by text and aspect, as the pairs of a text and an aspect found in it are.
    of_texts, of_aspects = np.nonzero(found.accepted)
    pairs, of_marks = (each[0] * len(aspects) + each[1] for each in ((of_texts, of_aspects), marks[:2]))
    counts = np.diff(np.searchsorted(of_marks, pairs), append=len(of_marks)).tolist()
    lists = (
        f"{names[aspect]}[{', '.join(islice(pieces, count))}]"
        for aspect, count in zip(of_aspects.tolist(), counts, strict=True)
    )
    return [f"{{{', '.join(islice(lists, count))}}}" for count in found.accepted.sum(1).tolist()]
