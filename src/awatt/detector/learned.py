"""What a detector knows of its aspects, and what the model makes of it: scores and words of many texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from awatt.arrays import Sentences
from awatt.aspect_model.model import BUNDLED, Adapted, Matcher
from awatt.detector.examples import Examples
from awatt.detector.results import Detection, Word
from awatt.detector.thresholds import Bools, Floats, shares
from awatt.detector.words import deciding_words
from awatt.errors import AwattError


@dataclass(frozen=True)
class Learned:
    """The aspects, how many examples each had, and what the model kept of them."""

    aspects: tuple[str, ...]
    counts: npt.NDArray[np.int64]  # (n_aspects,)
    adapted: Adapted | None  # of the aspects with examples; None if there is none

    @classmethod
    def of(cls, examples: Examples, matcher: Matcher) -> Learned:
        """Learn. Of an aspect without examples the model never hears: its score is always 0."""
        known = examples.counts > 0
        adapted = None
        if known.any():
            names = list(compress(examples.aspects, known))
            adapted = matcher.adapt(matcher.tokenize(examples.texts), examples.labels[:, known], names)
        return cls(examples.aspects, examples.counts, adapted)

    @property
    def known(self) -> Bools:
        """Which aspects have examples. (n_aspects,)"""
        return self.counts > 0

    def scores(self, matcher: Matcher, texts: Sequence[str], mode: str, sentences: Sentences | None = None) -> Floats:
        """(n_texts, n_aspects); a blank text mentions nothing."""
        scores = np.zeros((len(texts), len(self.aspects)))
        if self.adapted is not None and len(texts):
            found = matcher.probabilities(self.adapted, sentences or matcher.tokenize(texts))
            scores[:, self.known] = shares(found) if mode == "paper" else found
            scores[[not text or text.isspace() for text in texts]] = 0
        return scores

    def detections(
        self, matcher: Matcher, texts: Sequence[str], begins: Sequence[int], mode: str, cut: Floats, words: bool
    ) -> list[Detection]:
        """What each text mentions, with scores from ``cut`` on (n_aspects,); ``begins`` shift the words' offsets."""
        sentences = matcher.tokenize(texts)
        scores = self.scores(matcher, texts, mode, sentences)
        accepted = scores >= cut
        decided = self.words(matcher, texts, begins, sentences, accepted) if words else {}
        return [
            Detection(
                text,
                list(compress(self.aspects, hits)),
                dict(zip(self.aspects, row, strict=True)),
                decided.get(number, {}),
                begin,
            )
            for number, (text, begin, row, hits) in enumerate(
                zip(texts, begins, scores.round(4).tolist(), accepted.tolist(), strict=True)
            )
        ]

    def words(
        self, matcher: Matcher, texts: Sequence[str], begins: Sequence[int], sentences: Sentences, accepted: Bools
    ) -> dict[int, dict[str, list[Word]]]:
        """For each text in which something was found, the words that decided, by aspect."""
        wanted = np.flatnonzero(accepted.any(1))
        if not len(wanted) or self.adapted is None:
            return {}
        taken = sentences.take(wanted)
        weights = np.split(matcher.weights(self.adapted, taken), np.cumsum(taken.lengths)[:-1])
        encodings = matcher.tokenizer.encode_batch([texts[number] for number in wanted.tolist()])
        column_of = np.cumsum(self.known) - 1  # in the model, which knows of these only
        found = {}
        for number, weight, encoding in zip(wanted.tolist(), weights, encodings, strict=True):
            offsets = encoding.offsets[: len(weight)]
            found[number] = {
                self.aspects[aspect]: deciding_words(
                    texts[number], offsets, weight[: len(offsets), column_of[aspect]], begins[number]
                )
                for aspect in np.flatnonzero(accepted[number])
            }
        return found


def load_matcher(folder: str | Path | None) -> Matcher:
    """A model, read once a process, and again if its file has changed; the bundled one by default."""
    folder = BUNDLED if folder is None else Path(folder)
    try:
        return _load(folder, (folder / "model.safetensors").stat().st_mtime_ns)
    except FileNotFoundError:
        raise AwattError(f"{folder} holds no model (model.safetensors is missing). Check the path.") from None


@lru_cache(maxsize=4)
def _load(folder: Path, changed: int) -> Matcher:
    return Matcher.load(folder)
