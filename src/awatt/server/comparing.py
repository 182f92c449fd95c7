"""The columns of the reviews: their values for filters, and the shares of the aspects by one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from awatt.detector.comparison import Comparison, compare
from awatt.detector.groups import Column, Kind
from awatt.detector.thresholds import Bools
from awatt.server.errors import ServiceError
from awatt.server.responses import Documented
from awatt.server.workbench import Workbench

EQUALS = "="  # between a column and a group of it in a filter; a column's name may contain it, too


@dataclass(frozen=True)
class ColumnName(Documented):
    """A column of the reviews, and what its groups are."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class ColumnValues(Documented):
    """All columns, and for the requested one its groups and the group of each review, -1 where it has no value.

    ``reviews`` is the counter of that name; the first review has the number 1.
    """

    reviews: int
    columns: list[ColumnName]
    values: Column | None


@dataclass(frozen=True)
class ByColumn(Documented):
    """The columns that can be compared, and the shares for one of them; null where there is none."""

    columns: list[str]
    comparison: Comparison | None


def column_values(workbench: Workbench, name: str | None) -> ColumnValues:
    """The columns, and the groups of one of them."""
    version, columns = workbench.columns()
    named = [ColumnName(column.name, column.kind) for column in columns]
    return ColumnValues(version, named, None if name is None else _find(columns, name))


def compare_by_column(workbench: Workbench, name: str | None, where: Sequence[str] = ()) -> ByColumn:
    """Shares of reviews that mention each aspect, at the project's thresholds and with its labels.

    Only the reviews that match ``where`` count: ``column=group``, several groups of a column as alternatives.
    """
    names, mentioned, columns = reviews_with_aspects(workbench)
    comparable = [column for column in columns if column.comparable]
    if name is not None and not any(column.name == name for column in comparable):
        raise ServiceError(f"the column {name[:100]!r} cannot be compared: it has one value, or too many.", "column")
    titles = [column.name for column in comparable]
    if not comparable or not names:
        return ByColumn(titles, None)
    chosen = _find(comparable, titles[0] if name is None else name)
    others = [each for each in where if not each.startswith(chosen.name + EQUALS)]  # the groups are compared anyway
    kept = np.flatnonzero(_matches(columns, others, len(mentioned)))
    places = np.array(chosen.places)[kept].tolist()
    return ByColumn(titles, compare(Column(chosen.name, chosen.kind, chosen.groups, places), mentioned[kept], names))


def reviews_with_aspects(workbench: Workbench) -> tuple[list[str], Bools, list[Column]]:
    """The names of the aspects, which review mentions which (n_reviews, n_aspects), and the reviews' columns."""
    content, reviews, _, found = workbench.results()
    version, columns = workbench.columns()
    if version != reviews.version:
        return reviews_with_aspects(workbench)  # other reviews were loaded meanwhile
    mentioned = np.zeros((content.n_reviews, len(content.aspects)), dtype=bool)
    np.logical_or.at(mentioned, np.array(reviews.reviews, dtype=np.int64) - 1, found)
    return [aspect.name for aspect in content.aspects], mentioned, columns


def _find(columns: Sequence[Column], name: str) -> Column:
    for column in columns:
        if column.name == name:
            return column
    raise ServiceError(f"the reviews have no column {name[:100]!r}. Load the page again.", "column")


def _matches(columns: Sequence[Column], where: Sequence[str], n_reviews: int) -> Bools:
    wanted: dict[str, set[int]] = {}
    for each in where:
        column = next((c for c in columns if each.startswith(c.name + EQUALS)), None)
        if column is None:
            raise ServiceError(f"{each[:100]!r} names no column of the reviews. Write column=group.", "where")
        group = each[len(column.name) + 1 :]
        here = {number for number, found in enumerate(column.groups) if found == group}
        wanted.setdefault(column.name, set()).update(here)
    kept = np.ones(n_reviews, dtype=bool)
    for name, groups in wanted.items():
        kept &= np.isin(_find(columns, name).places, list(groups))
    return kept
