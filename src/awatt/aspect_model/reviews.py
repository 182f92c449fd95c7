"""A bounded sample of a file: what the detector looks at, without labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from awatt.aspect_model.learner import SAMPLE


def sample_reviews(texts: Sequence[str], size: int = SAMPLE) -> list[str]:
    """At most ``size`` different texts with words, evenly spaced over the file. The same file gives the same sample."""
    different = list(dict.fromkeys(text.strip() for text in texts if any(map(str.isalnum, text))))
    if len(different) <= size:
        return different
    places = np.linspace(0, len(different) - 1, size).round().astype(int)
    return [different[place] for place in places]
