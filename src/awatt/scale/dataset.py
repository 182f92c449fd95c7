"""A Ray dataset in, a Ray dataset out, for existing pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from awatt.errors import AwattError, require
from awatt.scale.shipping import Shipped, ship

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

BATCH = 4096  # rows


def annotate(detector: AspectDetector, dataset: Any, text_column: str = "text", prefix: str = "") -> Any:
    """Add a column ``aspects`` (lists) and a column ``score_ASPECT`` for each aspect; lazy, as the dataset is."""
    data = require("ray.data", "ray")
    if not isinstance(dataset, data.Dataset):
        kind = type(dataset).__name__
        advice = "For a data frame use detector.annotate, for a list of texts detect_many."
        raise AwattError(f"annotate takes a ray.data.Dataset, found {kind}. {advice}")
    arguments = (ship(detector), text_column, prefix)
    return dataset.map_batches(_annotate, batch_format="pyarrow", batch_size=BATCH, fn_args=arguments)


def _annotate(table: Any, shipped: Shipped, text_column: str, prefix: str) -> Any:
    return shipped.load().annotate(table, text_column, prefix=prefix)
