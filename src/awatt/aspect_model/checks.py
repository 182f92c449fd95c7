"""Reject examples from which nothing can be learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from awatt.arrays import Bools
from awatt.errors import AwattError

_SHOWN = 40  # characters of a sentence in a message


def check_examples(
    texts: Sequence[str], labels: Bools, aspects: Sequence[str], knows_name: Callable[[str], bool]
) -> None:
    """Raise if the examples (n_texts, n_aspects) teach nothing, with a line that says what to do.

    A sentence without words, such as an emoji, teaches nothing. It is an error if it is all that there is of an aspect.
    """
    with_words = np.array(list(map(has_words, texts)), dtype=bool)
    for column in np.flatnonzero(labels.any(0) & ~labels[with_words].any(0)).tolist():
        if not knows_name(aspects[column]):
            text = texts[int(labels[:, column].argmax())]
            found = (
                f"the example {text[:_SHOWN]!r} of aspect '{aspects[column]}' has no words, and no other example has"
            )
            raise AwattError(f"{found}. Give it a sentence with words, or a name in words.")
    told = labels[with_words]
    in_all = np.flatnonzero(told.all(0)).tolist() if len(told) else []
    if len(in_all) > 1:
        one, two = (aspects[column] for column in in_all[:2])
        raise AwattError(
            f"every example mentions both '{one}' and '{two}', so nothing tells them apart. "
            "Add a sentence that mentions only one of them, or none."
        )


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit in it."""
    return any(map(str.isalnum, text))
