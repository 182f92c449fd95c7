"""Labels in the forms that ``fit`` takes, as an indicator matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from awatt.arrays import Bools
from awatt.errors import AwattError, plural
from awatt.records.formats import short_repr


def read_targets(y: Any, classes: Sequence[Any] | None, n_texts: int) -> tuple[Bools, list[Any], bool]:
    """``y`` as an indicator matrix (n_texts, n_classes), the classes, and whether ``y`` was such a matrix itself.

    ``y`` is a list of label lists, or an indicator matrix: an array, a sparse matrix, lists of 0 and 1, or a data
    frame, whose column names become the classes. Where the classes are known, its columns are found by their names.
    """
    if isinstance(y, str | bytes | Mapping):  # iterating would give letters or keys
        raise AwattError(f'y is {short_repr(y)}, but needs one row per text: [["food"], ["food", "price"], []].')
    columns = None if getattr(y, "columns", None) is None else list(y.columns)
    for convert in ("toarray", "to_numpy"):
        if hasattr(y, convert):
            y = getattr(y, convert)()
            break
    rows = list(y)
    if len(rows) != n_texts:
        found = f"X has {plural(n_texts, 'text')}, but y has {plural(len(rows), 'row')}"
        raise AwattError(f"{found}. Give one row per text.")
    rows = [[row] if isinstance(row, str) else row for row in rows]
    for number, row in enumerate(rows):
        if not isinstance(row, Iterable):
            advice = 'Give [["food"], ["food", "price"], []] or an indicator matrix. Off-topic is [].'
            raise AwattError(f"row {number} of y is {short_repr(row)}, but a list of labels is needed. {advice}")
    rows = [list(row) for row in rows]
    if getattr(y, "ndim", 1) == 1:
        strings = [isinstance(label, str) for row in rows for label in row]
        if all(strings):
            return _from_label_lists(rows, classes)
        if any(strings):
            raise _not_a_label(rows)
    matrix, classes = _from_matrix(rows, columns if classes is None else classes)
    return matrix if columns is None else matrix[:, _places(columns, classes)], classes, True


def _not_a_label(rows: list[list[Any]]) -> AwattError:
    bad = ((number, label) for number, row in enumerate(rows) for label in row if not isinstance(label, str))
    number, label = next(bad)
    advice = "Leave it out: an off-topic text has an empty list." if label is None else "Give labels as strings."
    return AwattError(f"row {number} of y has the label {short_repr(label)}, but a text is needed. {advice}")


def _from_label_lists(rows: list[list[str]], classes: Sequence[Any] | None) -> tuple[Bools, list[Any], bool]:
    found = list(classes) if classes is not None else sorted({label for row in rows for label in row})
    columns = {label: column for column, label in enumerate(found)}
    matrix = np.zeros((len(rows), len(found)), dtype=bool)
    for number, row in enumerate(rows):
        for label in row:
            if label not in columns:
                raise AwattError(f"y has the label {label!r}, which is not among the classes {short_repr(found)}.")
            matrix[number, columns[label]] = True
    return matrix, found, False


def _from_matrix(rows: list[list[Any]], named: Sequence[Any] | None) -> tuple[Bools, list[Any]]:
    width = len(rows[0]) if rows else 0
    for number, row in enumerate(rows):
        if len(row) != width or any(value not in (0, 1) for value in row):
            needed = f"but an indicator matrix needs {plural(width, 'number')} per row, each 0 or 1"
            raise AwattError(f"row {number} of y is {short_repr(row)}, {needed}. Or give lists of labels as strings.")
    found = list(range(width)) if named is None else list(named)
    if len(found) != width:
        raise AwattError(f"y has {width} columns, but there are {len(found)} classes. Give one name per column.")
    return np.array(rows, dtype=bool).reshape(len(rows), width), found


def _places(columns: list[Any], classes: Sequence[Any]) -> list[int]:
    """The place of each class among the columns of a data frame; in order if those are only numbered."""
    given, wanted = (list(map(str, np.array(list(names)).tolist())) for names in (columns, classes))
    if sorted(given) == sorted(wanted):
        return list(map(given.index, wanted))
    if columns == list(range(len(columns))):
        return columns
    found = f"y has the columns {short_repr(columns)}, but the classes are {short_repr(list(classes))}"
    raise AwattError(f"{found}. Rename the columns, or give y.to_numpy() with one column per class, in this order.")
