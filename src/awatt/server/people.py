"""Who labelled what, and how far people agree."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from awatt.detector.agreement import Agreement, compare_people
from awatt.server.content import Content
from awatt.server.responses import Documented


@dataclass(frozen=True)
class Person:
    """How many sentences someone has labelled; the name is "" for those who gave none."""

    name: str
    labelled: int


@dataclass(frozen=True)
class People(Documented):
    """Everyone who has labelled, those with most labels first, and each two of them who share sentences.

    ``differing`` has the ids of the examples on which people disagree.
    """

    people: list[Person]
    agreements: list[Agreement]
    differing: list[int]


def compare_labels(content: Content) -> People:
    """Compare the votes of each pair of people."""
    votes = {example.id: example.votes for example in content.examples if example.votes}
    counts: dict[str, int] = {}
    for said in votes.values():
        for name in said:
            counts[name] = counts.get(name, 0) + 1
    people = [Person(name, counts[name]) for name in sorted(counts, key=lambda name: (-counts[name], name))]
    names, keys = [aspect.name for aspect in content.aspects], [aspect.id for aspect in content.aspects]
    agreements = []
    for one, two in combinations([person.name for person in people], 2):
        shared = [said for said in votes.values() if one in said and two in said]
        if shared and keys:
            first, second = (np.array([[key in said[who] for key in keys] for said in shared]) for who in (one, two))
            agreements.append(compare_people((one, two), first, second, names))
    differing = [key for key, said in votes.items() if len({tuple(sorted(ids)) for ids in said.values()}) > 1]
    return People(people, agreements, differing)
