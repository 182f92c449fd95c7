"""One static vector per token from several encoders, and a student that reads it in the place of the former one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from awatt.arrays import unit
from awatt.aspect_model.student.encoder import quantise

Floats = npt.NDArray[np.float32]
_REST = 0.05  # how much a token counts that stands nowhere in the text, in occurrences


def join_tables(tables: Sequence[Floats], norms: Floats, dim: int) -> Floats:
    """Unit vectors of all tables, laid side by side and projected on their principal directions. (n_tokens, dim)

    Every table counts the same. A token counts by its ``norms`` (n_tokens, 1), as in a mean vector.
    """
    joined = np.concatenate([unit(table) for table in tables], 1).astype(np.float64)
    weighted = joined * norms
    _, directions = np.linalg.eigh(weighted.T @ weighted)
    return unit((joined @ directions[:, ::-1][:, :dim]).astype(np.float32))


def read_other_vectors(
    student: Mapping[str, npt.NDArray[Any]], old: Floats, new: Floats, counts: npt.NDArray[np.int64], n_extra: int
) -> dict[str, npt.NDArray[Any]]:
    """The tensors of a student that reads ``new`` static vectors, at their full norm, where it was taught on ``old``.

    What it read is predicted from the new vectors by least squares. Of what is missing, the first ``n_extra`` principal
    directions are its new table. Errors count relative to a token's norm, by the square root of its ``counts`` in some
    text, and the same for both parts of what the student read.
    """
    extra = student["extra"] * student["extra_scale"]
    size = np.sqrt((old**2).sum() / (extra**2).sum())
    needed = np.concatenate([old, size * extra], 1).astype(np.float64)
    weights = (counts[:, None] + _REST) ** 0.25 / np.maximum(np.linalg.norm(needed, axis=1, keepdims=True), 1e-6)
    predict = np.linalg.lstsq(new * weights, needed * weights, rcond=None)[0]
    missing = needed - new @ predict
    _, directions = np.linalg.eigh((missing * weights).T @ (missing * weights))
    directions = directions[:, ::-1][:, :n_extra]
    extra = missing @ directions
    scale = np.maximum(np.abs(extra).max(1, keepdims=True), 1e-12) / 127
    found = {**student, "extra": np.round(extra / scale).astype(np.int8), "extra_scale": scale.astype(np.float32)}
    turned = np.concatenate([predict, directions.T])
    turned[:, old.shape[1] :] /= size
    for name in ("stem", "stem_in"):
        matrix = student[f"{name}.weight"] * student[f"{name}.scale"]
        found[f"{name}.weight"], found[f"{name}.scale"] = quantise((turned @ matrix).astype(np.float32))
    return found
