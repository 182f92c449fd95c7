"""The name of an aspect, or a description, as its first example."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from awatt.arrays import Bools, Sentences


class LabelledSentences(NamedTuple):
    """Sentences as token ids, and the aspects that each mentions."""

    sentences: Sentences
    labels: Bools  # (n_sentences, n_aspects)


def name_words(name: str) -> str:
    """A name in plain words: "food#style_options" and "BatteryLife" are words, too; "" if it says nothing, as "2"."""
    words = re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", " ", name).strip()
    return words if any(map(str.isalpha, words)) else ""


def add_names(
    given: LabelledSentences, names: Sequence[str], tokenize: Callable[[list[str]], Sentences]
) -> LabelledSentences:
    """The labelled sentences, and behind them each name that says something as one more example of its aspect."""
    words = [name_words(name) for name in names]
    named = np.flatnonzero([bool(text) for text in words])
    if not len(named):
        return given
    more = tokenize([words[column] for column in named])
    return LabelledSentences(
        Sentences(
            np.concatenate([given.sentences.ids, more.ids]), np.concatenate([given.sentences.lengths, more.lengths])
        ),
        np.concatenate([given.labels, np.eye(len(names), dtype=bool)[named]]),
    )
