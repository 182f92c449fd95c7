"""Splits texts into sentences and merges tokens into words, with offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from awatt.detector.results import Word

#: letters and digits with joining characters ("didn't", "check-in", "3.5"), or one symbol such as an emoji
WORD = re.compile(r"\w+(?:['’.@/-]\w+)*|[^\w\s]")
MAX_WORDS = 5  # per aspect
SHARE = 0.5  # of the attention that the deciding words carry together
LANGUAGE = "en"


def split_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text with their start offsets. A line break ends a sentence; blank sentences are skipped."""
    from sentencex import segment

    place = 0
    for line in text.splitlines(keepends=True):
        for part in segment(LANGUAGE, line) if line.strip() else [line]:
            sentence = part.strip()
            if sentence:
                yield place + part.index(sentence), sentence
            place += len(part)


def deciding_words(
    text: str, offsets: Sequence[tuple[int, int]], weights: npt.NDArray[np.floating], shift: int = 0
) -> list[Word]:
    """The fewest words that carry half of the attention, at most five, in text order.

    ``offsets`` and ``weights`` (n_tokens,) are those of the tokens; the weights of a word's tokens are summed.
    """
    end = offsets[-1][1] if offsets else 0  # long texts are truncated: the model reads up to here
    spans = [match.span() for match in takewhile(lambda match: match.start() < end, WORD.finditer(text))]
    if not spans:
        return []
    starts = np.array([start for start, _ in spans])
    word_of = np.searchsorted(starts, [start for start, _ in offsets], side="right") - 1  # of each token
    totals = np.bincount(np.maximum(word_of, 0), weights=weights, minlength=len(spans)).astype(np.float64)
    totals[[_is_punctuation(text[start:end]) for start, end in spans]] = 0
    if totals.sum() <= 0:
        return []
    totals = totals / totals.sum()
    heaviest = np.argsort(-totals, kind="stable")
    count = min(int(np.searchsorted(np.cumsum(totals[heaviest]), SHARE - 1e-9)) + 1, MAX_WORDS)
    return [
        Word(text[start:end], start + shift, end + shift, round(float(totals[number]), 4))
        for number in sorted(heaviest[:count])
        for start, end in [spans[number]]
    ]


def _is_punctuation(word: str) -> bool:
    return len(word) == 1 and not word.isalnum() and ord(word) < 0x2190  # symbols from the arrows block on may be emoji
