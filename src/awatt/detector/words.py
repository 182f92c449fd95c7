"""Splits texts into sentences, or into parts that a model can read, and merges tokens into words, with offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, takewhile
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from awatt.arrays import starts
from awatt.detector.results import Word

#: letters and digits with joining characters ("didn't", "check-in", "3.5"), or one symbol such as an emoji
WORD = re.compile(r"\w+(?:['’.@/-]\w+)*|[^\w\s]")
MAX_WORDS = 5  # per aspect
SHARE = 0.5  # of the attention that the deciding words carry together
LANGUAGE = "en"
_WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")  # blanks of several bytes, such as the no-break space


def split_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text with their start offsets. A line break ends a sentence; blank sentences are skipped."""
    from sentencex import segment

    place = 0
    for line in text.splitlines(keepends=True):
        # sentencex can fail at a blank of several bytes: it gets a plain one in its place.
        for part in segment(LANGUAGE, _WIDE_BLANK.sub(" ", line)) if line.strip() else [line]:
            own = text[place : place + len(part)]
            sentence = own.strip()
            if sentence:
                yield place + own.index(sentence), sentence
            place += len(part)


def find_sentences(text: str) -> list[tuple[int, str]]:
    """The sentences of a review. A blank one has none: one empty sentence gives it scores like any other."""
    return list(split_sentences(text)) or [(0, text)]


def split_windows(text: str, tokenizer: Tokenizer, max_length: int) -> list[tuple[int, str]]:
    """A text in parts of at most ``max_length`` tokens, with their start offsets; cut between words where possible."""
    if len(text) - text.count(" ") <= max_length:  # a token has at least one character
        return [(0, text)]
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    parts, first = [], 0
    while len(offsets) - first > max_length:
        cut = first + max_length
        between = (place for place in range(cut, first, -1) if offsets[place][0] > offsets[place - 1][1])
        cut = next(between, cut)
        parts.append((offsets[first][0], text[offsets[first][0] : offsets[cut - 1][1]]))
        first = cut
    return [*parts, (offsets[first][0], text[offsets[first][0] :])] if parts else [(0, text)]


@dataclass(frozen=True)
class Windows:
    """Texts in the parts that a model can read. Almost every text is one part; a blank one is, too."""

    parts: list[str]
    firsts: npt.NDArray[np.int64]  # the number of each text's first part

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: Tokenizer, max_length: int) -> Self:
        """Split each text that is too long."""
        split = [[part for _, part in split_windows(text, tokenizer, max_length)] for text in texts]
        return cls(list(chain.from_iterable(split)), starts(np.array(list(map(len, split)), dtype=np.int64)))

    def highest(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The highest value of all parts of a text: (n_parts, n) -> (n_texts, n)."""
        return rows if len(rows) == len(self.firsts) else np.maximum.reduceat(rows, self.firsts)

    def mean(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The mean of all parts of a text: (n_parts, n) -> (n_texts, n)."""
        if len(rows) == len(self.firsts):
            return rows
        return np.add.reduceat(rows, self.firsts) / np.diff(self.firsts, append=len(rows))[:, None]


def deciding_words(text: str, offsets: Sequence[tuple[int, int]], weights: npt.NDArray[np.floating]) -> list[Word]:
    """The fewest words that carry half of the attention, at most five, in text order.

    ``offsets`` and ``weights`` (n_tokens,) are those of the tokens; the weights of a word's tokens are summed.
    """
    end = offsets[-1][1] if offsets else 0  # long texts are truncated: the model reads up to here
    spans = [span for match in WORD.finditer(text) if (span := match.span())[0] < end]
    if not spans:
        return []
    totals, place, last = [0.0] * len(spans), 0, len(spans) - 1
    for (start, _), weight in zip(offsets, weights.tolist(), strict=True):
        while place < last and spans[place + 1][0] <= start:
            place += 1
        totals[place] += weight
    totals = [
        0.0 if is_punctuation(text[start:end]) else total for total, (start, end) in zip(totals, spans, strict=True)
    ]
    if (whole := sum(totals)) <= 0:
        return []
    heaviest = sorted(range(len(spans)), key=totals.__getitem__, reverse=True)[:MAX_WORDS]
    carried = accumulate(totals[number] / whole for number in heaviest)
    count = 1 + sum(1 for _ in takewhile(lambda share: share < SHARE - 1e-9, carried))
    return [
        Word(text[start:end], start, end, round(totals[number] / whole, 4))
        for number in sorted(heaviest[:count])
        for start, end in [spans[number]]
    ]


def is_punctuation(word: str) -> bool:
    """Whether it is a punctuation mark, which decides nothing."""
    return len(word) == 1 and not word.isalnum() and ord(word) < 0x2190  # symbols from the arrows block on may be emoji
