"""The paper's static threshold, for any number of aspects."""

from __future__ import annotations

from math import log2


def default_threshold(n_way: int) -> float:
    """The power law through the paper's two values, 0.3 at N = 5 and 0.2 at N = 10.

    On validation it stays close to the best static threshold for N from 2 to 16 (results/LOG.md).
    """
    return float(min(0.5, 0.3 * (n_way / 5) ** -log2(1.5)))
