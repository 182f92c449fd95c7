"""Data frames in and out: pandas, polars, pyarrow and whatever else narwhals knows, none of which is required."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from awatt.arrays import starts
from awatt.data.episode import Prediction
from awatt.detector.thresholds import Threshold
from awatt.detector.words import find_sentences
from awatt.errors import AwattError, require
from awatt.records.formats import list_columns, reason, short_repr

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector


def annotate(
    detector: AspectDetector,
    frame: Any,
    text_column: str,
    threshold: Threshold | None,
    whole_reviews: bool,
    prefix: str,
) -> Any:
    """See `AspectDetector.annotate`."""
    narwhals = require("narwhals", "frames")
    try:
        table = narwhals.from_native(frame, eager_only=True)
    except TypeError:
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        advice = "Give a pandas or polars DataFrame or a pyarrow Table; of a lazy frame, what collect() gives."
        raise AwattError(f"annotate takes a data frame, found {kind}. {advice}") from None
    except narwhals.exceptions.DuplicateError as error:
        raise AwattError(f"a column name of the frame occurs more than once ({reason(error)}). Rename one.") from None
    found = _predict(detector, _texts(table, text_column), threshold, whole_reviews)
    names = np.array(detector.aspects, dtype=object)
    # pandas has no type for lists of its own; everywhere else the column has one, even if nothing is found.
    lists = None if table.implementation.is_pandas_like() else narwhals.List(narwhals.String())
    columns = {f"{prefix}aspects": ([names[row].tolist() for row in found.accepted], lists)}
    for aspect, scores in zip(detector.aspects, found.scores.T.round(4), strict=True):
        columns[f"{prefix}score_{aspect}"] = (scores.tolist(), narwhals.Float64())
    for name in columns:
        if name in table.columns:
            raise AwattError(f"the frame already has a column '{name}'. Rename the new ones: prefix='found_'.")
    backend = table.implementation
    series = [narwhals.new_series(name, values, dtype, backend=backend) for name, (values, dtype) in columns.items()]
    return table.with_columns(*series).to_native()


def _texts(table: Any, text_column: str) -> list[str]:
    """The texts of a column; a missing one is empty, so that no aspect is found in it."""
    if text_column not in table.columns:
        found = f"there is no column '{text_column}'; the columns are: {list_columns(table.columns)}"
        raise AwattError(f"{found}. Name it: text_column=...")
    column = table.get_column(text_column)  # not [...], where a number is a row
    texts = ["" if gone else text for text, gone in zip(column.to_list(), column.is_null().to_list(), strict=True)]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            found = f"row {row} of column '{text_column}' is {short_repr(text)}, but a text is needed"
            raise AwattError(f"{found}. Name the column with the texts: text_column=...")
    return texts


def _predict(
    detector: AspectDetector, texts: list[str], threshold: Threshold | None, whole_reviews: bool
) -> Prediction:
    """Scores and decisions per text, (n_texts, n_aspects); those of a review are the highest of its sentences."""
    if not whole_reviews or not texts:
        return detector.predictions(texts, threshold)
    parts = [[sentence for _, sentence in find_sentences(text)] for text in texts]
    found = detector.predictions([sentence for part in parts for sentence in part], threshold)
    first = starts(np.array(list(map(len, parts))))
    return Prediction(*(np.maximum.reduceat(column, first, axis=0) for column in found))
