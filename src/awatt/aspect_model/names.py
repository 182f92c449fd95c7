"""The name of an aspect, or a description, as its first example."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from awatt.arrays import Bools, Integers, Sentences


class LabelledSentences(NamedTuple):
    """Sentences as token ids, and the aspects that each mentions."""

    sentences: Sentences
    labels: Bools  # (n_sentences, n_aspects)


def put_in_order(given: LabelledSentences) -> tuple[LabelledSentences, Integers]:
    """Distinct sentences in an order that follows from them alone, and the place of each given one. (n_sentences,)

    In whatever order labels come, the same is learned. Sentences with the same tokens are one, with the aspects of all:
    one that differs in capitals only would be predicted from its twin when it is left out.
    """
    keys = given.sentences.keys()
    ordered = sorted(set(keys), key=lambda key: hashlib.blake2b(key, digest_size=8).digest())
    place_of = {key: place for place, key in enumerate(ordered)}
    places = np.array([place_of[key] for key in keys], dtype=np.int64)
    labels = np.zeros((len(ordered), given.labels.shape[1]), dtype=bool)
    np.logical_or.at(labels, places, given.labels)
    first = np.unique(places, return_index=True)[1]
    return LabelledSentences(given.sentences.take(first), labels), places


def name_words(name: str) -> str:
    """A name in plain words: "food#style_options" and "BatteryLife" are words, too; "" if it says nothing, as "2"."""
    words = re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", " ", name).strip()
    return words if any(map(str.isalpha, words)) else ""


def add_names(
    given: LabelledSentences, names: Sequence[str], says: Bools, tokenize: Callable[[list[str]], Sentences]
) -> LabelledSentences:
    """The labelled sentences, and behind them each name that ``says`` something as one more example of its aspect."""
    named = np.flatnonzero(says)
    if not len(named):
        return given
    more = tokenize([name_words(names[column]) for column in named.tolist()])
    return LabelledSentences(
        Sentences(
            np.concatenate([given.sentences.ids, more.ids]), np.concatenate([given.sentences.lengths, more.lengths])
        ),
        np.concatenate([given.labels, np.eye(len(names), dtype=bool)[named]]),
    )
