"""The proportion of single-aspect sentences in FewAsp, which is a random sample of all sentences of each category.

A rebuilt split does not get it by itself: FewAsp(single)'s train file, which is part of what we draw from, adds
single-aspect sentences only, and leaving out sentences of other splits removes mostly those with several aspects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from awatt.data.fewasp import Instance, read_fewasp

Sentence = tuple[str, ...]
Labels = dict[Sentence, set[str]]


def shares(groups: Mapping[str, Iterable[Instance]], labels: Labels, single: set[Sentence]) -> dict[str, float | None]:
    """Two shares of a split's rows: single-aspect rows among those with known labels, and rows in FewAsp(single)."""
    rows = [instance.tokens for instance in chain.from_iterable(groups.values())]
    one = [len(labels[tokens]) == 1 for tokens in rows if tokens in labels]
    return {
        "single_aspect_share": round(float(np.mean(one)), 4) if one else None,
        "in_single_file_share": round(float(np.mean([tokens in single for tokens in rows])), 4) if rows else None,
    }


class Mixture:
    """How FewAsp mixes sentences with one and with several aspects.

    The share of single-aspect sentences is the category's own in all of Yelp_aspect. How many of them also stand in
    FewAsp(single) is taken from the official val files, as far as there are enough of either.
    """

    def __init__(self, labels: Labels, mixed_val: Path | None, single_val: Path | None) -> None:
        self.labels = labels
        self.file_share: float | None = None  # of the single-aspect rows; None where it is not known
        if mixed_val and single_val:
            single = {instance.tokens for instances in read_fewasp(single_val).values() for instance in instances}
            found = shares(read_fewasp(mixed_val), labels, single)
            one, in_file = found["single_aspect_share"], found["in_single_file_share"]
            if one and in_file is not None:
                self.file_share = min(1.0, in_file / one)

    def in_proportion(
        self,
        category: str,
        instances: list[Instance],
        pool: Labels,
        single: set[Sentence],
        random: np.random.Generator,
    ) -> list[Instance]:
        """As many of the category's instances as the proportion allows, in their order.

        ``pool`` has all labels of every sentence, ``single`` the sentences of FewAsp(single)'s file.
        """
        counts = [len(found) for found in self.labels.values() if category in found]
        one = counts.count(1) / len(counts) if counts else 1.0
        several, in_file, others = _kinds(instances, pool, single)
        if not several or not (in_file or others):
            return instances  # a proportion of nothing
        total = min(len(several) / max(1 - one, 1e-9), (len(in_file) + len(others)) / max(one, 1e-9))
        n_one = round(total * one)
        n_file = n_one if self.file_share is None else round(n_one * self.file_share)
        n_file = min(max(n_file, n_one - len(others)), len(in_file))
        wanted = ((several, round(total * (1 - one))), (in_file, n_file), (others, n_one - n_file))
        kept = np.concatenate([random.permutation(places)[:size] for places, size in wanted])
        return [instances[place] for place in sorted(kept.astype(int).tolist())]


def _kinds(instances: list[Instance], pool: Labels, single: set[Sentence]) -> tuple[list[int], list[int], list[int]]:
    """Places of those with several aspects, of those with one in FewAsp(single)'s file, and of the others with one."""
    kinds: tuple[list[int], list[int], list[int]] = ([], [], [])
    for place, instance in enumerate(instances):
        one = len(pool[instance.tokens]) == 1
        kinds[0 if not one else 1 if instance.tokens in single else 2].append(place)
    return kinds
