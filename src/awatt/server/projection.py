"""The map of the sentences: their first two principal components."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MAX_FIT = 5_000  # sentences, about, that the axes are computed from; all are placed
EDGE_QUANTILE = 0.995  # lies at the map's edges, so that a few outliers do not squeeze all other points together


def project(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """The vectors (n, dim) along the two directions in which they vary most. (n, 2), from -1 to 1"""
    count = len(vectors)
    if count < 2:
        return np.zeros((count, 2), dtype=np.float32)
    step = max(1, count // MAX_FIT)
    centre = vectors[::step].mean(0)
    centred = vectors[::step] - centre
    _, axes = np.linalg.eigh(centred.T @ centred)  # ascending eigenvalues
    axes = axes[:, ::-1][:, :2]
    # The sign of an axis is arbitrary: make its largest component positive.
    axes = axes * np.where(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])] < 0, -1, 1)
    placed = (vectors - centre) @ axes
    if placed.shape[1] < 2:
        placed = np.pad(placed, ((0, 0), (0, 1)))
    low, high = np.quantile(placed, [1 - EDGE_QUANTILE, EDGE_QUANTILE], axis=0)
    scale = (high - low) / 2
    return np.clip((placed - (high + low) / 2) / np.where(scale > 0, scale, 1) * 0.95, -1, 1).astype(np.float32)
