"""The deciding words of many texts at once: the same words as `deciding_words`, found with arrays.

What a stretch between spaces consists of (tokens, words, punctuation) is the same in every text, and is looked at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from awatt.arrays import Bools, Integers, Sentences, differences, ranges, starts
from awatt.aspect_model.word_cache import END, MOST_CHARACTERS, Numbers, reads_words_separately
from awatt.detector.words import MAX_WORDS, SHARE, WORD, deciding_words, is_punctuation

Floats = npt.NDArray[np.floating]


class Marks(NamedTuple):
    """Deciding words, by text, then by aspect, then by place. (n_words,) each"""

    texts: Integers  # number of the text
    aspects: Integers  # number of the aspect
    begin: Integers  # offsets in the text
    end: Integers
    weights: list[float]

    def merge(self, owners: Integers, shifts: Integers) -> Marks:
        """Map marks of parts to whole texts: part n belongs to text ``owners[n]`` at offset ``shifts[n]``."""
        moved = Marks(
            owners[self.texts],
            self.aspects,
            self.begin + shifts[self.texts],
            self.end + shifts[self.texts],
            self.weights,
        )
        return moved.sort()

    @classmethod
    def join(cls, parts: Sequence[Marks]) -> Marks:
        """One after the other."""
        return cls(
            np.concatenate([part.texts for part in parts]),
            np.concatenate([part.aspects for part in parts]),
            np.concatenate([part.begin for part in parts]),
            np.concatenate([part.end for part in parts]),
            [weight for part in parts for weight in part.weights],
        )

    def sort(self) -> Marks:
        """By text and aspect; those of one text and aspect keep their order."""
        order = np.lexsort((self.aspects, self.texts))
        weights = [self.weights[number] for number in order.tolist()]
        return Marks(self.texts[order], self.aspects[order], self.begin[order], self.end[order], weights)


class Found(NamedTuple):
    """The detections in many texts."""

    scores: npt.NDArray[np.float64]  # (n_texts, n_aspects)
    accepted: Bools  # (n_texts, n_aspects)
    marks: Marks | None  # None if not wanted, or if the model has no attention


class _Stretches(NamedTuple):
    """What stretches between spaces consist of, one after the other."""

    n_characters: Integers
    n_tokens: Integers
    n_words: Integers
    first_token: Integers  # of each stretch
    first_word: Integers
    word_of_token: Integers  # (n_all_tokens,) the number of the word in its stretch
    begin: Integers  # (n_all_words,) offsets of words in their stretch
    end: Integers
    punctuation: Bools  # (n_all_words,)


class Marker:
    """Finds deciding words, with a memory of stretches."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.usable = tokenizer, reads_words_separately(tokenizer)
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        none = np.zeros(0, dtype=np.int64)
        nothing = np.zeros(1, dtype=np.int64)
        self._numbers = Numbers({END: 0})
        self._known = _Stretches(nothing, nothing, nothing, nothing, nothing, none, none, none, none.astype(bool))
        self._size = 0  # in characters

    def mark(self, texts: Sequence[str], sentences: Sentences, weights: Floats, accepted: Bools) -> Marks:
        """Weights are (n_tokens, n_aspects), accepted (n_texts, n_aspects); ``sentences`` are the texts' tokens."""
        plain = np.zeros(len(texts), dtype=bool)
        if self.usable:
            plain[:] = [text.isprintable() for text in texts]
        numbers, known = self._look_up([text if fits else "" for text, fits in zip(texts, plain.tolist(), strict=True)])
        # Texts with several spaces in a row, or cut for their length, are looked at one by one.
        ends = np.flatnonzero(numbers == 0)
        characters = _per_text(known.n_characters[numbers] + 1, ends)  # the end of a text counts as one, too
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        plain &= (characters == lengths + 2) & (_per_text(known.n_tokens[numbers], ends) == sentences.lengths)
        chosen, others = np.flatnonzero(plain), np.flatnonzero(~plain)
        tokens = starts(sentences.lengths)
        found = []
        if len(chosen):
            first = np.append(0, ends + 1)
            parts = numbers[ranges(first[chosen], ends[chosen] + 1 - first[chosen])]
            kept = weights[ranges(tokens[chosen], sentences.lengths[chosen])]
            marks = _mark_known(known, parts, kept, accepted[chosen])
            found.append(marks._replace(texts=chosen[marks.texts]))
        for number in others.tolist():
            part = weights[tokens[number] : tokens[number] + sentences.lengths[number]]
            found.append(self._mark_one(texts[number], part, accepted[number], number))
        return Marks.join(found).sort() if len(others) else found[0]

    def _mark_one(self, text: str, weights: Floats, accepted: Bools, number: int) -> Marks:
        offsets = self.tokenizer.encode(text).offsets[: len(weights)]
        words = [
            (aspect, word)
            for aspect in np.flatnonzero(accepted).tolist()
            for word in deciding_words(text, offsets, weights[: len(offsets), aspect])
        ]
        columns = [(number, aspect, word.start, word.end) for aspect, word in words]
        texts, aspects, begin, end = np.array(columns, dtype=np.int64).reshape(-1, 4).T
        return Marks(texts, aspects, begin, end, [word.weight for _, word in words])

    def _look_up(self, texts: Sequence[str]) -> tuple[Integers, _Stretches]:
        """The numbers of all stretches, 0 after each text, and what they consist of."""
        words = f" {END} ".join([*texts, ""]).split()
        with self._lock:
            numbers = np.fromiter(map(self._numbers.__getitem__, words), dtype=np.int64, count=len(words))
            count = len(self._numbers) - len(self._known.n_tokens)
            if count:
                new = self._read(list(islice(reversed(self._numbers), count))[::-1])
                both: list[Any] = [np.concatenate(pair) for pair in zip(self._known, new, strict=True)]
                self._known = _Stretches(*both)
                self._size += int(new.n_characters.sum())
            known = self._known
            if self._size > MOST_CHARACTERS:
                self._forget()  # frequent ones are soon back
        return numbers, known

    def _read(self, stretches: list[str]) -> _Stretches:
        spans = [[match.span() for match in WORD.finditer(text)] for text in stretches]
        offsets = [encoding.offsets for encoding in self.tokenizer.encode_batch(stretches)]
        word_of_token = [
            max(bisect_right(words, (begin, len(text) + 1)) - 1, 0)
            for text, words, of_text in zip(stretches, spans, offsets, strict=True)
            for begin, _ in of_text
        ]
        punctuation = [
            is_punctuation(text[begin:end])
            for text, words in zip(stretches, spans, strict=True)
            for begin, end in words
        ]
        flat = np.array([span for words in spans for span in words], dtype=np.int64).reshape(-1, 2)
        characters, tokens, words = (
            np.array(list(map(len, each)), dtype=np.int64) for each in (stretches, offsets, spans)
        )
        flags = np.array(punctuation, dtype=bool)
        numbers = np.array(word_of_token, dtype=np.int64)
        first_token, first_word = (
            len(self._known.word_of_token) + starts(tokens),
            len(self._known.begin) + starts(words),
        )
        return _Stretches(characters, tokens, words, first_token, first_word, numbers, flat[:, 0], flat[:, 1], flags)


@lru_cache(maxsize=4)
def marker(tokenizer: Tokenizer) -> Marker:
    """The one for a tokenizer; few are kept."""
    return Marker(tokenizer)


def _per_text(values: Integers, ends: Integers) -> Integers:
    """Sums of numbers per stretch over each text."""
    return differences(values.cumsum()[ends])


def _mark_known(known: _Stretches, numbers: Integers, weights: Floats, accepted: Bools) -> Marks:
    """From the numbers of the stretches of all texts, 0 after each, and the weights of all their tokens."""
    ends = np.flatnonzero(numbers == 0)
    characters, n_tokens, n_words = (column[numbers] for column in known[:3])
    n_tokens_of, n_words_of = _per_text(n_tokens, ends), _per_text(n_words, ends)
    # every word of the texts: its offsets, and the word of every token
    words = ranges(known.first_word[numbers], n_words)
    first_character = starts(characters + 1)
    at = first_character - first_character[np.append(0, ends[:-1] + 1)].repeat(differences(ends + 1))
    begin, end = known.begin[words] + np.repeat(at, n_words), known.end[words] + np.repeat(at, n_words)
    tokens = ranges(known.first_token[numbers], n_tokens)
    word_of_token = known.word_of_token[tokens] + np.repeat(starts(n_words), n_tokens)
    # every pair of a text and one of its aspects: the totals of all words
    texts, aspects = np.nonzero(accepted)
    first_word, counts = starts(n_words_of)[texts], n_words_of[texts]
    pair_of_token = np.repeat(np.arange(len(texts)), n_tokens_of[texts])
    token = ranges(starts(n_tokens_of)[texts], n_tokens_of[texts])
    pair_of_word, word = np.repeat(np.arange(len(texts)), counts), ranges(first_word, counts)
    place = word_of_token[token] + (starts(counts) - first_word)[pair_of_token]
    totals = np.bincount(place, weights[token, aspects[pair_of_token]].astype(np.float64), minlength=len(word))
    totals[known.punctuation[words][word]] = 0
    whole = np.bincount(pair_of_word, totals, minlength=len(texts))
    shares = totals / np.where(whole > 0, whole, 1)[pair_of_word]
    # the heaviest words, until they carry half of the attention
    order = np.lexsort((-totals, pair_of_word))
    rank = np.arange(len(word)) - starts(counts)[pair_of_word]  # of the word ``order[i]``, which has the same pair as i
    heaviest = order[rank < MAX_WORDS]
    ranked = np.zeros((len(texts), MAX_WORDS))
    ranked[pair_of_word[heaviest], rank[rank < MAX_WORDS]] = shares[heaviest]
    needed = 1 + (np.cumsum(ranked, 1) < SHARE - 1e-9).sum(1)
    chosen = order[(rank < np.minimum(needed, MAX_WORDS)[pair_of_word]) & (whole > 0)[pair_of_word]]
    chosen.sort()
    pairs, spans = pair_of_word[chosen], word[chosen]
    rounded = [round(share, 4) for share in shares[chosen].tolist()]
    return Marks(texts[pairs], aspects[pairs], begin[spans], end[spans], rounded)
