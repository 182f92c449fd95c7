"""By column: the share of reviews that mention each aspect, for every group of a column such as stars or city."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from awatt.arrays import Bools
from awatt.detector.groups import Column, Kind, group_column, is_date, is_number
from awatt.detector.quality import Measure, wilson
from awatt.errors import AwattError
from awatt.records.formats import list_columns, short_repr

NEARLY_NONE = 0.1  # share of the values up to which others stand out in a column of numbers or dates


@dataclass(frozen=True)
class AspectShares:
    """The share of reviews that mention an aspect in each group; null where a group has no review.

    ``strength`` says how much they differ: Cramér's V, from 0 (not at all) to 1.
    """

    name: str
    strength: float
    shares: list[Measure | None]


@dataclass(frozen=True)
class Comparison:
    """The groups of a column, how many reviews each has, and the shares of the aspects; what differs most first."""

    column: str
    kind: Kind
    groups: list[str]
    counts: list[int]
    aspects: list[AspectShares]

    def __str__(self) -> str:
        """A block per aspect, with a line per group."""
        width = max(map(len, self.groups))
        blocks = []
        for aspect in self.aspects:
            lines = [f"{aspect.name} by {self.column}"]
            for group, count, share in zip(self.groups, self.counts, aspect.shares, strict=True):
                shown = f"{share.value:>6.1%} ({share.low:.1%} to {share.high:.1%})" if share else "     -"
                lines.append(f"  {group:<{width}} {count:>9,}  {shown}")
            blocks.append("\n".join(lines))
        return "\n".join(blocks)


def compare(column: Column, found: Bools, names: Sequence[str]) -> Comparison:
    """The shares in each group, with 95 % intervals. ``found`` (n_reviews, n_aspects)"""
    places = np.array(column.places, dtype=np.int64)
    known, n_groups = places >= 0, len(column.groups)
    sizes = np.bincount(places[known], minlength=n_groups)
    hits = np.zeros((n_groups, len(names)), dtype=np.int64)
    np.add.at(hits, places[known], found[known])
    common = hits.sum(0) / max(1, sizes.sum())
    expected = sizes[:, None] * common
    chi_squared = ((hits - expected) ** 2 / np.maximum(expected * (1 - common), 1e-12)).sum(0)
    strength = np.minimum(1.0, np.sqrt(chi_squared / max(1, sizes.sum())))
    shares = [
        AspectShares(
            name,
            round(float(strength[n]), 4),
            [wilson(int(hit), int(size)) for hit, size in zip(hits[:, n], sizes, strict=True)],
        )
        for n, name in enumerate(names)
    ]
    ranked = [shares[n] for n in np.argsort(-strength, kind="stable").tolist()]
    return Comparison(column.name, column.kind, column.groups, sizes.tolist(), ranked)


class Tally:
    """Collects what comparisons need, batch by batch: a few bytes and the values of the columns per row."""

    def __init__(
        self, columns: Sequence[str], aspects: Sequence[str], optional: bool = False, there: Collection[str] = ()
    ) -> None:
        """With ``optional``, a row may lack a column, as in JSONL: only ``check`` raises for one that no row has.

        ``there`` are the columns of the file, for this error; they may be filled in later.
        """
        self.aspects, self._optional, self._there = list(aspects), optional, there
        self._missing = dict.fromkeys(columns)  # that no row had so far
        self._values: dict[str, list[object]] = {name: [] for name in columns}
        self._mentioned = bytearray()  # one byte per row and aspect

    def add(self, values: Mapping[str, list[object]], found: Bools | None) -> None:
        """Add the values of some rows, and the aspects that each mentions. ``found`` (n_rows, n_aspects)"""
        n_rows = 0 if found is None else len(found)
        for name, known in self._values.items():
            if n_rows and name in values:
                self._missing.pop(name, None)
            known += values.get(name, [None] * n_rows)
        self._mentioned += b"" if found is None else found.tobytes()
        if not self._optional:
            self.check()

    def check(self) -> None:
        """Raise if there are rows, but none of them has one of the columns."""
        if self._mentioned and self._missing:
            advice = f"The columns are: {list_columns(self._there)}. Upper and lower case count."
            raise AwattError(f"there is no column '{next(iter(self._missing))}' to compare by. {advice}")

    def comparisons(self) -> list[Comparison]:
        """By each column whose shares say something."""
        found = np.frombuffer(self._mentioned, dtype=bool).reshape(-1, len(self.aspects))
        columns = [group_column(name, values) for name, values in self._values.items()]
        return [compare(column, found, self.aspects) for column in columns if column.comparable]

    def others(self) -> dict[str, str]:
        """The columns that cannot be compared, and what they have instead of groups."""
        columns = [group_column(name, values) for name, values in self._values.items()]
        return {column.name: instead_of_groups(column) for column in columns if not column.comparable}


def instead_of_groups(column: Column) -> str:
    """What a column has that cannot be compared."""
    with_value = [place for place in column.places if place >= 0]
    if len(set(with_value)) < 2:
        return "only one value" if with_value else "no value"
    for kind, is_kind in (("numbers", is_number), ("dates", is_date)):
        others = [place for place in with_value if not is_kind(column.groups[place])]
        if 0 < len(others) <= NEARLY_NONE * len(with_value):
            return f"{kind}, but also {short_repr(column.groups[others[0]])}"
    if len(set(with_value)) < len(with_value):
        return "too many different values"
    return "a different value in every row" + (" that has one" if len(with_value) < len(column.places) else "")
