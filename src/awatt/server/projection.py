"""Sentences as points of a plane: principal components, in numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FITTED = 5_000  # sentences from which the axes are found; all are placed
EDGE = 0.995  # quantile at the picture's edges, so that a few far points do not press all others together


def project(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """The two directions in which the vectors (n, dim) differ most. (n, 2), from -1 to 1"""
    count = len(vectors)
    if count < 2:
        return np.zeros((count, 2), dtype=np.float32)
    step = max(1, count // FITTED)
    centre = vectors[::step].mean(0)
    spread = vectors[::step] - centre
    _, axes = np.linalg.eigh(spread.T @ spread)  # ascending
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(
        axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])] < 0, -1, 1
    )  # the sign is free: fix it
    placed = (vectors - centre) @ axes
    if placed.shape[1] < 2:
        placed = np.pad(placed, ((0, 0), (0, 1)))
    low, high = np.quantile(placed, [1 - EDGE, EDGE], axis=0)
    scale = (high - low) / 2
    return np.clip((placed - (high + low) / 2) / np.where(scale > 0, scale, 1) * 0.95, -1, 1).astype(np.float32)
