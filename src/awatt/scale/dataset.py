"""A Ray dataset in, a Ray dataset out, for existing pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from awatt.errors import AwattError, require
from awatt.scale.shipping import Shipped, ship

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

BATCH = 4096  # rows


def transform(detector: AspectDetector, dataset: Any, text_column: str = "text", prefix: str = "") -> Any:
    """Add a column ``aspects`` (lists) and a column ``score_ASPECT`` for each aspect; lazy, as the dataset is."""
    data = require("ray.data", "ray")
    if not isinstance(dataset, data.Dataset):
        kind = type(dataset).__name__
        raise AwattError(f"transform takes a ray.data.Dataset, found {kind}. For a list of texts use predict_proba.")
    arguments = (ship(detector), text_column, prefix)
    return dataset.map_batches(_detect, batch_format="pyarrow", batch_size=BATCH, fn_args=arguments)


def _detect(table: Any, shipped: Shipped, text_column: str, prefix: str) -> Any:
    import pyarrow

    if text_column not in table.column_names:
        known = ", ".join(map(repr, table.column_names)) or "none"
        raise AwattError(f"there is no column '{text_column}'; the columns are: {known}. Name it: text_column=...")
    detector = shipped.load()
    texts = [text or "" for text in table.column(text_column).to_pylist()]  # null has no aspects
    found = detector.detect_many(texts, words=False)
    columns = {f"{prefix}aspects": pyarrow.array([each.aspects for each in found], pyarrow.list_(pyarrow.string()))}
    for aspect in detector.aspects:
        scores = [each.scores[aspect] for each in found]
        columns[f"{prefix}score_{aspect}"] = pyarrow.array(scores, pyarrow.float64())
    for name, values in columns.items():
        if name in table.column_names:
            raise AwattError(f"the dataset already has a column '{name}'. Rename the new ones: prefix='found_'.")
        table = table.append_column(name, values)
    return table
