"""From texts to sentences and from tokens to words, with offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from awatt.detector.results import Word

#: letters and digits with what joins them ("didn't", "check-in", "3.5"), or one sign such as an emoji
WORD = re.compile(r"\w+(?:['’.@/-]\w+)*|[^\w\s]")
MOST_WORDS = 5  # of an aspect, that are shown
SHARE = 0.5  # of the attention, that the shown words carry
LANGUAGE = "en"


def split_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text and where each begins; a line break ends a sentence. Blank ones are left out."""
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
    """The fewest words that carry half of the attention, at most five, in the order of the text.

    ``offsets`` are those of the tokens, ``weights`` their attention (n_tokens,). Tokens of one word are added up.
    """
    end = offsets[-1][1] if offsets else 0  # a long text is read up to here
    spans = [match.span() for match in takewhile(lambda match: match.start() < end, WORD.finditer(text))]
    if not spans:
        return []
    begins = np.array([start for start, _ in spans])
    word_of = np.searchsorted(begins, [start for start, _ in offsets], side="right") - 1  # of each token
    totals = np.bincount(np.maximum(word_of, 0), weights=weights, minlength=len(spans)).astype(np.float64)
    totals[[_is_punctuation(text[start:end]) for start, end in spans]] = 0
    if totals.sum() <= 0:
        return []
    totals = totals / totals.sum()
    heaviest = np.argsort(-totals, kind="stable")
    count = min(int(np.searchsorted(np.cumsum(totals[heaviest]), SHARE - 1e-9)) + 1, MOST_WORDS)
    return [
        Word(text[start:end], start + shift, end + shift, round(float(totals[number]), 4))
        for number in sorted(heaviest[:count])
        for start, end in [spans[number]]
    ]


def _is_punctuation(word: str) -> bool:
    return len(word) == 1 and not word.isalnum() and ord(word) < 0x2190  # signs from the arrows on may be emoji
