"""The sentences that the filters of a view leave: by columns of their reviews, by their text, by an area of the map."""

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
    """Filters that combine: a sentence must match all of them; several values of one column are alternatives.

    ``where`` has column=group, ``contains`` column=part of the value, ``text`` is part of the sentence, and ``area``
    has the corners of a polygon on the map: x and y, from -1 to 1, with spaces between them.
    """

    where: Sequence[str] = ()
    contains: Sequence[str] = ()
    text: str = ""
    area: str = ""

    def without(self, column: str) -> Scope:
        """Without the groups of this column."""
        others = [each for each in self.where if not each.startswith(column + EQUALS)]
        return Scope(others, self.contains, self.text, self.area)

    def match(self, workbench: Workbench, reviews: Reviews, columns: Sequence[Column], n_reviews: int) -> Bools:
        """Which sentences match. (n_sentences,)"""
        of_review = self._match_reviews(columns, n_reviews)
        kept = of_review[np.array(reviews.reviews, dtype=np.int64) - 1]
        if wanted := self.text.strip().lower():
            kept &= np.fromiter((wanted in text.lower() for text in reviews.texts), bool, len(reviews.texts))
        if self.area:
            version, positions = workbench.sentence_map()
            if version == reviews.version:
                kept &= _inside(_corners(self.area), positions.astype(np.float64))
        return kept

    def _match_reviews(self, columns: Sequence[Column], n_reviews: int) -> Bools:
        wanted: dict[str, set[int]] = {}
        for conditions, fits in ((self.where, str.__eq__), (self.contains, _contains)):
            for each in conditions:
                column = next((c for c in columns if each.startswith(c.name + EQUALS)), None)
                if column is None:
                    raise ServiceError(f"{each[:100]!r} names no column of the reviews. Write column=value.", "where")
                value = each[len(column.name) + 1 :]
                here = {number for number, group in enumerate(column.groups) if fits(group, value)}
                wanted.setdefault(column.name, set()).update(here)
        kept = np.ones(n_reviews, dtype=bool)
        for column in columns:
            if column.name in wanted:
                kept &= np.isin(column.places, list(wanted[column.name]))
        return kept


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
