"""Weighted ridge regressions in closed form, and what each would predict for a row that it was fitted without.

There is one regression per aspect. The smaller of the two closed forms is solved. With more rows than dimensions, sums
over rows are in single precision, which is twice as fast; one step of iterative refinement in double precision corrects
the solution. Rows with a high leverage, where rounding errors would grow, are left out in double precision, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from awatt.arrays import cut

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

_HIGH_LEVERAGE = 0.05
_BLOCK = 64  # rows of a triangular matrix that are inverted as any other matrix
_MANY = 4  # regressions with the same weights of negatives, for which an inverse pays
_ROWS = 4096  # that are multiplied at once; bounds the memory with many rows
_STEPS = 6  # of conjugate gradients; with more, rounding grows until they have converged (results/LOG.md)
_TINY = 1e-300  # no division by zero


def ridge(rows: Floats, targets: Floats, weights: Floats, penalty: float, n_left_out: int = 0) -> tuple[Floats, Floats]:
    """Regressions, and for the first rows also what the fit without that row predicts for it.

    rows (n, n_rows, dim), targets and weights (n, n_rows) -> (n, dim), (n, n_left_out)
    """
    fit = _fit_by_rows if rows.shape[1] < rows.shape[2] else _fit_by_columns
    fits = [fit(*each, penalty, n_left_out) for each in zip(rows, targets, weights, strict=True)]
    found, left_out = (np.array(column).astype(rows.dtype) for column in zip(*fits, strict=True))
    return found, left_out


def approach_ridge(rows: Floats, targets: Floats, weights: Floats, penalty: float, start: Floats) -> Floats:
    """The same regressions to one to three digits, by conjugate gradients from a solution of similar ones. (n, dim)

    In double precision: a few steps make more of rounding, which differs from machine to machine.
    """
    fits = [_approach(*each, penalty) for each in zip(rows, targets, weights, start, strict=True)]
    return np.array(fits).astype(rows.dtype)


def _approach(x: Floats, y: Floats, w: Floats, start: Floats, penalty: float) -> Doubles:
    rows, found = _wide(x), start.astype(np.float64)
    residual = _weighted_sum(rows, w * y) - _curve(rows, w, found) - penalty * found
    direction, size = residual, float(residual @ residual)
    for _ in range(_STEPS):
        curved = _curve(rows, w, direction) + penalty * direction
        step = size / max(float(direction @ curved), _TINY)
        found += step * direction
        residual = residual - step * curved
        before, size = size, float(residual @ residual)
        direction = residual + size / max(before, _TINY) * direction
    return found


def shared_ridge(
    groups: Sequence[Floats], targets: Sequence[Floats], weights: Sequence[Floats], penalty: float
) -> Floats:
    """Regressions on the same rows, which come in groups.

    groups (n_rows, dim) each, targets and weights (n_rows, n) each -> (n, dim). Most rows of a group, the negatives,
    have the same weight: what they give is computed only once for all regressions in which they have it.
    """
    dim, n = groups[0].shape[1], targets[0].shape[1]
    if sum(map(len, groups)) < dim:
        rows = np.concatenate(groups)
        joined = zip(np.concatenate(targets).T, np.concatenate(weights).T, strict=True)
        return np.array([_fit_by_rows(rows, *each, penalty, 0)[0] for each in joined]).astype(rows.dtype)
    products, right = [np.zeros((dim, dim)) for _ in groups], np.zeros((n, dim))
    for found, rows, y, w in zip(products, groups, targets, weights, strict=True):
        for part in cut(len(rows), _ROWS):
            wide = rows[part].astype(np.float64)
            found += wide.T @ wide
            right += (w[part] * y[part]).T @ wide
    found = np.empty((n, dim))
    lowest = np.stack([w.min(0) for w in weights], 1).astype(np.float64)  # (n, n_groups)
    for shared in np.unique(lowest, axis=0):
        system = penalty * np.eye(dim) + sum(low * each for low, each in zip(shared, products, strict=True))
        alike = np.flatnonzero((lowest == shared).all(1))
        inverse = np.linalg.inv(system) if len(alike) >= _MANY else None
        for number in alike.tolist():
            extra = [w[:, number].astype(np.float64) - low for w, low in zip(weights, shared, strict=True)]
            heavier = np.concatenate([rows[each > 0] for rows, each in zip(groups, extra, strict=True)])
            by = np.concatenate([each[each > 0] for each in extra])
            found[number] = _solve_with(system, inverse, heavier.astype(np.float64), by, right[number])
    return found.astype(groups[0].dtype)


def _solve_with(system: Doubles, inverse: Doubles | None, rows: Doubles, weights: Doubles, right: Doubles) -> Doubles:
    """Solve the system with some weighted rows more; with few of them its inverse is enough (Woodbury's identity)."""
    if inverse is None or 2 * len(rows) > len(system):
        return np.asarray(np.linalg.solve(system + (rows.T * weights) @ rows, right), np.float64)
    half, alone = inverse @ rows.T, inverse @ right
    return np.asarray(alone - half @ np.linalg.solve(np.diag(1 / weights) + rows @ half, rows @ alone), np.float64)


def _fit_by_rows(x: Floats, y: Floats, w: Floats, penalty: float, n_left_out: int) -> tuple[Doubles, Doubles]:
    """One regression from a system with a row per row."""
    rows, target = x.astype(np.float64), y.astype(np.float64)
    system = rows @ rows.T + np.diag(penalty / np.maximum(w.astype(np.float64), 1e-9))
    unit = np.eye(len(rows), n_left_out)
    solved = np.linalg.solve(system, np.concatenate([target[:, None], unit], 1))
    dual, inverse = solved[:, 0], solved[:n_left_out, 1:]
    return dual @ rows, target[:n_left_out] - dual[:n_left_out] / np.diag(inverse)


def _fit_by_columns(x: Floats, y: Floats, w: Floats, penalty: float, n_left_out: int) -> tuple[Doubles, Doubles]:
    """One regression from a system with a row per dimension."""
    rows, root, system = _wide(x), np.sqrt(w)[:, None], np.diag(np.full(x.shape[1], penalty))
    for part in cut(len(x), _ROWS):
        weighted = x[part] * root[part]
        system += weighted.T @ weighted
    right = _weighted_sum(rows, w * y)
    inverse = invert_lower(np.linalg.cholesky(system))  # of the factor L, where system = L L'
    found = (inverse @ right) @ inverse
    residual = right - penalty * found - _curve(rows, w, found)  # what single precision has left of the solution
    found += (inverse @ residual) @ inverse
    if not n_left_out:
        return found, np.zeros(0)
    leverage, predicted = _influence(x[:n_left_out], root[:n_left_out], found, inverse)
    high = leverage > _HIGH_LEVERAGE
    leverage[high], predicted[high] = _influence(
        x[:n_left_out][high].astype(np.float64), root[:n_left_out][high], found, inverse
    )
    return found, (predicted - leverage * y[:n_left_out]) / (1 - leverage + 1e-9)


def _influence(x: npt.NDArray[np.floating], root: Floats, found: Doubles, inverse: Doubles) -> tuple[Doubles, Doubles]:
    """How much each row decides its own prediction, and that prediction, in the precision of ``x``. (n_rows,) each"""
    leverage, predicted = np.empty(len(x)), np.empty(len(x))
    own, factor = found.astype(x.dtype), inverse.astype(x.dtype)
    for part in cut(len(x), _ROWS):
        weighted, total = x[part] * root[part].astype(x.dtype), 0.0
        for place in range(0, len(factor), _BLOCK):  # half of the factor is 0
            turned = weighted[:, : place + _BLOCK] @ factor[place : place + _BLOCK, : place + _BLOCK].T
            total = total + np.einsum("ij,ij->i", turned, turned)
        leverage[part], predicted[part] = total, x[part] @ own
    return leverage, predicted


def _weighted_sum(x: npt.NDArray[np.floating], weights: Floats) -> Doubles:
    """The sum of all weighted rows. (dim,)"""
    sums = [weights[part] @ x[part].astype(np.float64, copy=False) for part in cut(len(x), _ROWS)]
    return np.sum(sums, 0, dtype=np.float64)


def _curve(x: npt.NDArray[np.floating], w: Floats, direction: Doubles) -> Doubles:
    """The sum of products of all weighted rows, times a direction. (dim,)"""
    found = np.zeros(x.shape[1])
    for part in cut(len(x), _ROWS):
        wide = x[part].astype(np.float64, copy=False)
        found += (w[part] * (wide @ direction)) @ wide
    return found


def _wide(x: Floats) -> npt.NDArray[np.floating]:
    """In double precision, once for all that reads it; with many rows that would take much memory."""
    return x.astype(np.float64) if len(x) <= _ROWS else x


def invert_lower(matrix: Doubles) -> Doubles:
    """The inverse of a lower triangular matrix, half by half."""
    if len(matrix) <= _BLOCK:
        return np.asarray(np.linalg.inv(matrix))
    half = len(matrix) // 2
    found = np.zeros_like(matrix)
    found[:half, :half] = invert_lower(matrix[:half, :half])
    found[half:, half:] = invert_lower(matrix[half:, half:])
    found[half:, :half] = -found[half:, half:] @ (matrix[half:, :half] @ found[:half, :half])
    return found
