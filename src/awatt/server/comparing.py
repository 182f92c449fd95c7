"""The columns of the reviews: their values for filters, and the shares of the aspects by one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from awatt.detector.comparison import Comparison, compare, instead_of_groups
from awatt.detector.groups import Column, Kind
from awatt.records.formats import list_columns
from awatt.server.errors import ServiceError
from awatt.server.responses import Documented
from awatt.server.scope import Scope
from awatt.server.workbench import Workbench


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


def compare_by_column(workbench: Workbench, name: str | None, scope: Scope) -> ByColumn:
    """Shares of reviews that mention each aspect, at the project's thresholds and with its labels.

    Only the sentences in the scope count, and the reviews that have one; the groups of the column itself are compared
    anyway.
    """
    content, reviews, _, found = workbench.results()
    version, columns = workbench.columns()
    if version != reviews.version:
        return compare_by_column(workbench, name, scope)  # other reviews were loaded meanwhile
    names = [aspect.name for aspect in content.aspects]
    comparable = [column for column in columns if column.comparable]
    if name is not None and not (named := _find(columns, name)).comparable:
        message = f"the column {name[:100]!r} has {instead_of_groups(named)}, so it cannot be compared."
        raise ServiceError(message, "column")
    titles = [column.name for column in comparable]
    if not comparable or not names:
        return ByColumn(titles, None)
    chosen = _find(comparable, titles[0] if name is None else name)
    kept = scope.without(chosen.name).match(workbench, reviews, columns, content.n_reviews)
    if kept is None:
        return compare_by_column(workbench, name, scope)  # other reviews were loaded meanwhile
    numbers = np.array(reviews.reviews, dtype=np.int64)[kept] - 1
    mentioned = np.zeros((content.n_reviews, len(names)), dtype=bool)
    np.logical_or.at(mentioned, numbers, found[kept])
    counts = np.unique(numbers)
    places = np.array(chosen.places)[counts].tolist()
    return ByColumn(titles, compare(Column(chosen.name, chosen.kind, chosen.groups, places), mentioned[counts], names))


def _find(columns: Sequence[Column], name: str) -> Column:
    for column in columns:
        if column.name == name:
            return column
    there = list_columns([column.name for column in columns])
    raise ServiceError(f"the reviews have no column {name[:100]!r} with a value. The columns are: {there}.", "column")
