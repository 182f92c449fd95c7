"""Reject examples from which nothing can be learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from awatt.arrays import Bools
from awatt.errors import AwattError

_SHOWN = 40  # characters of a sentence in a message


def check_examples(texts: Sequence[str], labels: Bools, aspects: Sequence[str]) -> None:
    """Raise if the examples (n_texts, n_aspects) teach nothing, with a line that says what to do."""
    for text, row in zip(texts, labels, strict=True):
        if not any(map(str.isalnum, text)):
            place = f" of aspect '{aspects[int(row.argmax())]}'" if row.any() else ""
            raise AwattError(f"the example {text[:_SHOWN]!r}{place} has no words. Give a sentence, or remove it.")
    in_all = np.flatnonzero(labels.all(0)).tolist() if len(labels) else []
    if len(in_all) > 1:
        one, two = (aspects[column] for column in in_all[:2])
        raise AwattError(
            f"every example mentions both '{one}' and '{two}', so nothing tells them apart. "
            "Add a sentence that mentions only one of them, or none."
        )
