"""Who labelled what, and how far people agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from awatt.arrays import Bools
from awatt.detector.agreement import Agreement, compare_people
from awatt.server.content import Content, Example
from awatt.server.responses import Documented


@dataclass(frozen=True)
class Person:
    """How many sentences someone has labelled; the name is "" for those who gave none."""

    name: str
    labelled: int


@dataclass(frozen=True)
class People(Documented):
    """Everyone who has labelled, those with most labels first, and of these each two who share sentences.

    ``differing`` has the ids of the examples on which people disagree.
    """

    people: list[Person]
    agreements: list[Agreement]
    differing: list[int]


def compare_labels(content: Content, limit: int) -> People:
    """Compare the votes of each pair of people, of those with most labels: an earlier awatt let more of them label."""
    examples = [example for example in content.examples if example.votes]
    counts = Counter(chain.from_iterable(example.votes for example in examples))
    people = [Person(name, counts[name]) for name in sorted(counts, key=lambda name: (-counts[name], name))]
    names = [aspect.name for aspect in content.aspects]
    columns = {aspect.id: column for column, aspect in enumerate(content.aspects)}
    labels = {person.name: _labels_of(person.name, examples, columns) for person in people[:limit]}
    agreements = []
    for (one, (by_one, first)), (two, (by_two, second)) in combinations(labels.items(), 2):
        shared = by_one & by_two
        if shared.any() and names:
            agreements.append(compare_people((one, two), first[shared], second[shared], names))
    differing = [each.id for each in examples if len({tuple(sorted(ids)) for ids in each.votes.values()}) > 1]
    return People(people, agreements, differing)


def _labels_of(person: str, examples: Sequence[Example], columns: Mapping[int, int]) -> tuple[Bools, Bools]:
    """Which examples someone has labelled (n_examples,), and with which aspects (n_examples, n_aspects)."""
    labelled = np.array([person in each.votes for each in examples])
    labels = np.zeros((len(examples), len(columns)), dtype=bool)
    for row in np.flatnonzero(labelled).tolist():
        labels[row, [columns[key] for key in examples[row].votes[person]]] = True
    return labelled, labels
