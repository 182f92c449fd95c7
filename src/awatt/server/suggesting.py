"""Aspects that the project's sentences suggest, beyond those that it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from awatt.arrays import Integers
from awatt.detector.new_aspects import SuggestedAspect
from awatt.detector.nouns import TOKEN
from awatt.server.responses import Documented
from awatt.server.workbench import Workbench

SUGGESTED = 12  # at a time
COVERED = 0.6  # share of a group's sentences from which an aspect covers it,
LIFT = 2.0  # if it is found that much more often there than elsewhere


@dataclass(frozen=True)
class SuggestedAspects(Documented):
    """Groups of words that may be aspects; ``sentences`` has the ids of typical ones, ``reviews`` is the counter."""

    reviews: int
    suggestions: list[SuggestedAspect]


def suggest_new_aspects(workbench: Workbench) -> SuggestedAspects:
    """Without those that the user has dismissed, and those that an aspect of the project covers already."""
    content, reviews, _, found = workbench.results()
    dismissed = workbench.store.dismissed()
    guessed = workbench.without_examples(content)[0]
    found = found[:, [aspect.id not in guessed for aspect in content.aspects]]  # guesses cover nothing
    named = {word for aspect in content.aspects for word in _stems(aspect.name)}

    def skip(name: str, members: Integers) -> bool:
        if name in dismissed or named.intersection(_stems(name)):
            return True
        inside, overall = found[members].mean(0), found.mean(0)
        return bool(((inside >= COVERED) & (inside >= np.minimum(LIFT * overall, 1))).any())

    made = reviews.topics.suggest(workbench.model, SUGGESTED, skip)
    ids = np.array(reviews.ids)
    return SuggestedAspects(
        reviews.version,
        [SuggestedAspect(each.name, each.words, each.count, ids[each.sentences].tolist()) for each in made],
    )


def _stems(name: str) -> set[str]:
    """The words of a name, without the ending of a plural."""
    return {word.removesuffix("s") for word in TOKEN.findall(name.lower())}
