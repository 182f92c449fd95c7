"""Results for a sentence or a review: aspects, scores and deciding words, and how to print them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from awatt.detector.html import detection_html

#: terminal colours, one per aspect, reused in turn
COLOURS = (36, 33, 35, 32, 34, 31)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the text, ``text[start:end]``, with its share of the attention for an aspect."""

    text: str
    start: int
    end: int
    weight: float


@dataclass(frozen=True)
class Detection:
    """The aspects found in one sentence.

    ``words`` has the deciding words of each aspect found, in text order: where the model looked, not a proof.
    Offsets refer to the whole text that was given, in which this sentence begins at ``start``.
    """

    text: str
    aspects: list[str]
    scores: dict[str, float]  # of every aspect, found or not
    words: dict[str, list[Word]]
    start: int = 0

    @classmethod
    def lazy(
        cls,
        text: str,
        aspects: list[str],
        names: Sequence[str],
        row: npt.NDArray[np.float64],
        words: dict[str, list[Word]],
        start: int,
    ) -> Self:
        """With ``scores`` that become a dictionary when they are first asked for: with many aspects few ever are.

        ``names`` are those of all aspects, and ``row`` (n_aspects,) has their scores.
        """
        made = cls.__new__(cls)
        made.__dict__.update(text=text, aspects=aspects, words=words, start=start, _scored=(names, row))
        return made

    if not TYPE_CHECKING:  # a type checker would take any attribute for right

        def __getattr__(self, name: str) -> dict[str, float]:
            """``scores`` of a detection that does not have them yet."""
            if name != "scores" or "_scored" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            names, row = self.__dict__["_scored"]
            return self.__dict__.setdefault(name, dict(zip(names, row.tolist(), strict=True)))

    @property
    def end(self) -> int:
        """Where the sentence ends in the whole text."""
        return self.start + len(self.text)

    def __str__(self) -> str:
        """The sentence with its deciding words marked: in colour on a terminal, otherwise in brackets."""
        return self.highlight(colour=on_terminal())

    def highlight(self, colour: bool) -> str:
        """The sentence with its deciding words marked, then the aspects with their scores."""
        order = {aspect: number for number, aspect in enumerate(self.scores)}

        def marked(text: str, aspects: list[str]) -> str:
            return paint(text, order[aspects[0]]) if colour else f"[{text}: {', '.join(aspects)}]"

        sentence = "".join(marked(text, aspects) if aspects else text for text, aspects in self.pieces())
        found = [f"{aspect} {self.scores[aspect]:.2f}" for aspect in self.aspects]
        named = [paint(text, order[a]) for text, a in zip(found, self.aspects, strict=True)] if colour else found
        return f"{sentence}  → {', '.join(named) or 'none'}"

    def pieces(self) -> Iterator[tuple[str, list[str]]]:
        """The sentence in pieces: each deciding word with its aspects, and the text between them with none."""
        marks: dict[tuple[int, int], list[str]] = {}
        for aspect, words in self.words.items():
            for word in words:
                marks.setdefault((word.start - self.start, word.end - self.start), []).append(aspect)
        place = 0
        for (start, end), aspects in sorted(marks.items()):
            yield self.text[place:start], []
            yield self.text[start:end], aspects
            place = end
        yield self.text[place:], []

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return detection_html(self)


@dataclass(frozen=True)
class Review:
    """A text of several sentences. It has the aspects of all its sentences, each with its highest score."""

    text: str
    sentences: list[Detection]

    @cached_property
    def scores(self) -> dict[str, float]:
        """The highest score of each aspect over the sentences."""
        names = self.sentences[0].scores if self.sentences else {}
        return {name: max(sentence.scores[name] for sentence in self.sentences) for name in names}

    @cached_property
    def aspects(self) -> list[str]:
        """The aspects found in any sentence, in the order of the examples."""
        found = {aspect for sentence in self.sentences for aspect in sentence.aspects}
        return [name for name in self.scores if name in found]

    @cached_property
    def words(self) -> dict[str, list[Word]]:
        """The deciding words, with offsets into the whole text."""
        return {
            aspect: [word for sentence in self.sentences for word in sentence.words.get(aspect, [])]
            for aspect in self.aspects
        }

    def __str__(self) -> str:
        """One line per sentence, with its deciding words marked."""
        return "\n".join(map(str, self.sentences))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return "".join(map(detection_html, self.sentences))


def on_terminal() -> bool:
    """Whether to print in colour: stdout is a terminal, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, number: int) -> str:
    """The text in bold and in the colour of aspect ``number``."""
    return f"\x1b[1;{COLOURS[number % len(COLOURS)]}m{text}\x1b[0m"
