"""Suggests aspects: what do these sentences talk about? Nouns that occur often, grouped by their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from awatt.arrays import Integers
from awatt.detector.examples import check_texts
from awatt.detector.models import FAST, Model, load_model
from awatt.detector.nouns import FUNCTION_WORDS, SHORTEST, CountedWords, count_words, distinct, find_nouns
from awatt.detector.reviews import read_reviews
from awatt.detector.suggest import check_number
from awatt.records.source import OnError, raise_error

Floats = npt.NDArray[np.float64]

MOST_WORDS = 250  # that are grouped
ALIKE = 0.35  # groups are joined while their mean cosine, less what most reviews share, is at least this
PAIRED = 0.5  # share of a word's sentences from which its neighbour is part of the name: "front desk"
N_SENTENCES = 3  # typical ones
LOOKED_AT = 60  # sentences per group, among which these are chosen
DIFFERENT = 0.2  # penalty per unit of similarity to a chosen sentence
BEST_LENGTH = (4, 25)  # words of a sentence that is easy to read


@dataclass(frozen=True)
class SuggestedAspect:
    """A group of words that may be an aspect."""

    name: str
    words: list[str]  # the most frequent first
    count: int  # sentences with at least one of the words
    sentences: list[int]  # positions of three typical ones in the given list


def suggest_aspects(texts: Iterable[str], count: int = 12, model: str | Path = FAST) -> list[SuggestedAspect]:
    """What these sentences talk about, the most frequent first. Works best on English; needs no examples."""
    check_number(count, "the number of aspects")
    checked, loaded = check_texts(texts), load_model(model)
    return Topics.of(checked, loaded).suggest(loaded, count)


def suggest_aspects_of_file(
    path: str,
    count: int,
    model: str,
    text_column: str,
    format: str | None,
    split: bool,
    on_error: OnError = raise_error,
) -> tuple[list[SuggestedAspect], list[str]]:
    """The same for a file, and its sentences; ``split`` whole reviews into sentences."""
    texts = [text for text, _ in read_reviews(path, text_column, format, split, on_error).sentences(split)]
    return suggest_aspects(texts, count, model), texts


@dataclass(frozen=True)
class Topics:
    """Groups of nouns that mean similar things, and the sentences that have them. Does not depend on any aspect.

    A sentence that occurs again, as in copied reviews, adds to the counts only.
    """

    different: list[str]  # the sentences, each once
    positions: Integers  # (n_different,) where each occurs first
    repeats: Integers  # (n_different,) how often each occurs
    counted: CountedWords
    nouns: Integers  # (n_nouns,)
    vectors: Floats  # (n_nouns, size)
    groups: list[tuple[list[int], Integers]]  # the nouns of each and its sentences; the one with most sentences first

    @classmethod
    def of(cls, texts: Sequence[str], model: Model) -> Topics:
        """The groups of all sentences."""
        first: dict[str, int] = {}
        repeats = np.bincount(np.array([first.setdefault(text, n) for n, text in enumerate(texts)], dtype=np.int64))
        different, positions = list(first), np.fromiter(first.values(), np.int64, len(first))
        counted = count_words(different)
        nouns = find_nouns(counted, len(different))[:MOST_WORDS] if different else np.zeros(0, dtype=np.int64)
        if not len(nouns):
            return cls(different, positions, repeats[positions], counted, nouns, np.zeros((0, 0)), [])
        vectors = _vectors(model, [counted.words[number] for number in nouns])
        centred = _centred(vectors, np.sqrt(counted.counts[nouns]))
        groups = [
            _most_central_first(group, centred, counted.counts[nouns]) for group in _join_alike(centred @ centred.T)
        ]
        with_members = _with_members(groups, nouns, counted, len(different))
        return cls(different, positions, repeats[positions], counted, nouns, vectors, with_members)

    def suggest(
        self, model: Model, count: int, skip: Callable[[str, Integers], bool] = lambda name, members: False
    ) -> list[SuggestedAspect]:
        """The first ``count`` groups for which ``skip(name, positions)`` is false."""
        found: list[SuggestedAspect] = []
        for group, members in self.groups:
            words = self.nouns[group].tolist()
            name = _with_neighbour(self.counted, words[0])
            if skip(name, self.positions[members]):
                continue
            typical = _typical(members, self.vectors[group].mean(0), self.different, model)
            named = [self.counted.words[number] for number in words]
            sentences = self.positions[typical].tolist()
            found.append(SuggestedAspect(name, named, int(self.repeats[members].sum()), sentences))
            if len(found) == count:
                break
        return found


def _most_central_first(group: list[int], centred: Floats, counts: Integers) -> list[int]:
    """The words of a group, frequent ones near its middle first."""
    central = np.maximum((centred[group] @ centred[group].T).mean(1), 0.01)
    return [group[place] for place in np.argsort(-counts[group] * central, kind="stable")]


def _with_members(
    groups: list[list[int]], nouns: Integers, counted: CountedWords, n_sentences: int
) -> list[tuple[list[int], Integers]]:
    """Each group with the numbers of the sentences that have one of its words; the one with most sentences first."""
    group_of = np.full(len(counted.words), -1)
    for number, group in enumerate(groups):
        group_of[nouns[group]] = number
    of_token = group_of[counted.ids]
    inside = of_token >= 0
    pairs = distinct(of_token[inside] * n_sentences + counted.sentences[inside])
    members = np.split(pairs % n_sentences, np.searchsorted(pairs // n_sentences, np.arange(1, len(groups))))
    return sorted(zip(groups, members, strict=True), key=lambda each: -len(each[1]))


def _with_neighbour(counted: CountedWords, number: int) -> str:
    """The word, with the one that stands before or after it most of the time: "front desk", "battery life"."""
    word, ids = counted.words[number], counted.ids
    places = np.flatnonzero(ids == number)
    for shift in (-1, 1):
        near = ids[(places + shift) % len(ids)]
        neighbour = int(np.bincount(near).argmax())
        found = counted.words[neighbour]
        names = found.isalpha() and len(found) >= SHORTEST and found not in FUNCTION_WORDS
        if names and len(places) > 2 and (near == neighbour).sum() >= PAIRED * len(places):
            return f"{found} {word}" if shift < 0 else f"{word} {found}"
    return word


def _typical(members: Integers, middle: Floats, texts: Sequence[str], model: Model) -> list[int]:
    """Three different sentences near the middle of the group's words, of a length that is easy to read."""
    spread = members[np.linspace(0, len(members) - 1, min(len(members), LOOKED_AT)).round().astype(int)]
    places = list({texts[place].strip().lower(): place for place in spread.tolist()}.values())
    vectors = _vectors(model, [texts[place] for place in places])
    lengths = np.array([len(texts[place].split()) for place in places])
    worth = vectors @ middle - 1.0 * ((lengths < BEST_LENGTH[0]) | (lengths > BEST_LENGTH[1]))
    chosen: list[int] = []
    while len(chosen) < min(N_SENTENCES, len(places)):
        best = int(worth.argmax())
        chosen.append(best)
        worth = worth - DIFFERENT * np.maximum(vectors @ vectors[best], 0)
        worth[chosen] = -np.inf
    return [places[place] for place in chosen]


def _vectors(model: Model, texts: list[str]) -> Floats:
    return model.mean_vectors(model.tokenize(texts)).astype(np.float64)


def _centred(vectors: Floats, weights: Floats) -> Floats:
    """Unit vectors without what all of them share: within a file, this tells the topics apart."""
    shifted = vectors - weights @ vectors / weights.sum()
    norms = np.linalg.norm(shifted, axis=1, keepdims=True)
    return np.asarray(shifted / np.maximum(norms, 1e-9))


def _join_alike(similarity: Floats) -> list[list[int]]:
    """Groups by average linkage: the two most similar are joined until none are alike. (n, n) -> groups of 0 to n-1"""
    similarity = similarity.copy()
    np.fill_diagonal(similarity, -np.inf)
    groups, sizes = [[number] for number in range(len(similarity))], np.ones(len(similarity))
    while True:
        one, two = divmod(int(similarity.argmax()), len(similarity))
        if similarity[one, two] < ALIKE:
            return [group for group in groups if group]
        mean = (sizes[one] * similarity[one] + sizes[two] * similarity[two]) / (sizes[one] + sizes[two])
        similarity[one] = similarity[:, one] = mean
        similarity[two] = similarity[:, two] = -np.inf
        similarity[one, one] = -np.inf
        groups[one] += groups[two]
        groups[two] = []
        sizes[one] += sizes[two]
