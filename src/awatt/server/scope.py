"""Filters: which sentences match by review column, text and map area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from awatt.arrays import Bools
from awatt.detector.groups import Column
from awatt.server.errors import ServiceError
from awatt.server.workbench import Reviews, Workbench

EQUALS = "="  # between a column and a value; a column's name may contain it, too
MAX_CORNERS = 200  # of an area


@dataclass(frozen=True)
class Scope:
    """Filters that combine: a sentence must match all of them; several groups of one column are alternatives.

    ``where`` has column=group, ``contains`` column=part of the value, ``text`` is part of the sentence, and ``area``
    has the corners of a polygon on the map: x and y, from -1 to 1, with spaces between them. The page decides in the
    same way (``makeScope`` in ``static/scope.js``).
    """

    where: Sequence[str] = ()
    contains: Sequence[str] = ()
    text: str = ""
    area: str = ""

    def without(self, column: str) -> Scope:
        """Without the groups of this column."""
        others = [each for each in self.where if not each.startswith(column + EQUALS)]
        return Scope(others, self.contains, self.text, self.area)

    def match(self, workbench: Workbench, reviews: Reviews, columns: Sequence[Column], n_reviews: int) -> Bools | None:
        """Which sentences match (n_sentences,); None if these reviews are no longer those of the map."""
        of_review = self._match_reviews(columns, n_reviews)
        kept = of_review[np.array(reviews.reviews, dtype=np.int64) - 1]
        if wanted := self.text.strip().lower():
            kept &= np.fromiter((wanted in text.lower() for text in reviews.texts), bool, len(reviews.texts))
        if self.area:
            version, positions = workbench.sentence_map()
            if version != reviews.version:
                return None
            kept &= _inside(_corners(self.area), positions.astype(np.float64))
        return kept

    def _match_reviews(self, columns: Sequence[Column], n_reviews: int) -> Bools:
        kept, chosen = np.ones(n_reviews, dtype=bool), dict[str, Bools]()
        for each in self.where:
            column, value = _split(each, columns, "where")
            here = _in_groups(column, [group == value for group in column.groups])
            chosen[column.name] = here | chosen.get(column.name, False)
        for each in self.contains:
            column, value = _split(each, columns, "contains")
            kept &= _in_groups(column, [_contains(group, value) for group in column.groups])
        for here in chosen.values():
            kept &= here
        return kept


def _split(condition: str, columns: Sequence[Column], field: str) -> tuple[Column, str]:
    """The column and the value of column=value."""
    column = next((each for each in columns if condition.startswith(each.name + EQUALS)), None)
    if column is None:
        raise ServiceError(f"{condition[:100]!r} names no column of the reviews. Write column=value.", field)
    return column, condition[len(column.name) + 1 :]


def _in_groups(column: Column, wanted: Sequence[bool]) -> Bools:
    """Which reviews are in one of the wanted groups; those without a value are in none. (n_reviews,)"""
    return np.array([*wanted, False])[np.array(column.places, dtype=np.int64)]  # -1 means no value


def _contains(group: str, part: str) -> bool:
    return part.strip().lower() in group.lower()


def _corners(area: str) -> npt.NDArray[np.float64]:
    try:
        numbers = np.array([float(each) for each in area.split()])
    except ValueError:
        numbers = np.zeros(0)
    if not 6 <= len(numbers) <= 2 * MAX_CORNERS or len(numbers) % 2 or not np.isfinite(numbers).all():
        raise ServiceError("an area needs three corners or more: x and y of each, with spaces between them.", "area")
    return numbers.reshape(-1, 2)


def _inside(corners: npt.NDArray[np.float64], points: npt.NDArray[np.float64]) -> Bools:
    """Which points lie within a polygon: a line from each crosses the edges an odd number of times."""
    inside, (x, y) = np.zeros(len(points), dtype=bool), points.T
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, 1, axis=0), strict=True):
        crosses = (ay > y) != (by > y)
        inside ^= crosses & (x < (bx - ax) * (y - ay) / np.where(crosses, by - ay, 1) + ax)
    return inside
