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
    each = [_agreement(name, one[:, column], two[:, column]) for column, name in enumerate(names)]
    return Agreement(people, len(one), each, _agreement("all aspects", one.ravel(), two.ravel()))


def _agreement(name: str, one: Bools, two: Bools) -> AspectAgreement:
    same = int((one == two).sum())
    first, second = float(one.mean()), float(two.mean())
    chance = first * second + (1 - first) * (1 - second)
    kappa = None if np.isclose(chance, 1) else round((same / len(one) - chance) / (1 - chance), 4)
    return AspectAgreement(name, wilson(same, len(one)), kappa)
