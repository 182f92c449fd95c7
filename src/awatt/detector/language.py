"""Whether texts are English, the only language that the bundled models have learned."""

from __future__ import annotations

import re
from collections.abc import Iterable

from awatt.detector.reviews import sample_reviews

#: frequent in English, rare or unknown in the languages that share its letters
COMMON = re.compile(r"\b(the|and|with|this|that|for|they|were|have|my|very|but|not|are|you|it|to|i)\b")
LONG = 5  # words; shorter sentences often have no common word
MIN_SENTENCES = 10  # long ones; with fewer nothing is said
LOOKED_AT = 500  # sentences
#: said of other texts
NOT_ENGLISH = (
    "most sentences do not seem to be English, the only language that the bundled models know. "
    "What is found in other languages is not reliable."
)
WORD = re.compile(r"[^\W\d_]+")


def seems_english(texts: Iterable[str]) -> bool:
    """Whether at least half of the long sentences have a common English word; True if there are too few to tell."""
    long = [text for text in sample_reviews(texts, LOOKED_AT) if len(WORD.findall(text)) >= LONG]
    english = sum(COMMON.search(text.lower()) is not None for text in long)
    return len(long) < MIN_SENTENCES or 2 * english >= len(long)
