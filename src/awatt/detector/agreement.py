"""How far two people agree on which aspects sentences mention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from awatt.arrays import Bools
from awatt.detector.quality import Measure, wilson


@dataclass(frozen=True)
class AspectAgreement:
    """How often two people agree on an aspect.

    ``kappa`` (Cohen) is the agreement beyond chance: 1 is complete, 0 is chance; None if both always gave the
    same answer, since chance agreement is then 1.
    """

    name: str
    agreed: Measure | None
    kappa: float | None


@dataclass(frozen=True)
class Agreement:
    """Two people on the sentences that both have labelled."""

    people: tuple[str, str]
    n_sentences: int
    aspects: list[AspectAgreement]
    overall: AspectAgreement


def compare_people(people: tuple[str, str], one: Bools, two: Bools, names: Sequence[str]) -> Agreement:
    """What two people said of the same sentences, (n_sentences, n_aspects) each, at least one of both."""
    counts = np.array([(one == two).sum(0), one.sum(0), two.sum(0)])  # (3, n_aspects)
    each = [_agreement(name, len(one), *row) for name, row in zip(names, counts.T.tolist(), strict=True)]
    return Agreement(people, len(one), each, _agreement("all aspects", one.size, *counts.sum(1).tolist()))


def _agreement(name: str, total: int, same: int, one: int, two: int) -> AspectAgreement:
    """Of ``total`` decisions: how many are the same, and how often each person found the aspect."""
    chance = (one * two + (total - one) * (total - two)) / total**2
    kappa = None if chance == 1 else round((same / total - chance) / (1 - chance), 4)
    return AspectAgreement(name, wilson(same, total), kappa)
