"""Speed of ``awatt.metrics`` against scikit-learn, on the same arrays in the same run.

python benchmarks/metrics.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.metrics import f1_score, roc_auc_score

from awatt.metrics import macro_f1, roc_auc

EPISODES, N_QUERY, N_WAY = 600, 25, 5  # a test run of the paper: 5-way with 5 queries per aspect


def compare_speed(repeats: int = 5) -> dict[str, dict[str, float]]:
    """Per measure: seconds of ours and of scikit-learn's, their ratio, and the largest difference in value.

    Times are the medians of ``repeats`` for ours and of three for scikit-learn's, which takes seconds.
    """
    rng = np.random.default_rng(0)
    scores = rng.random((EPISODES, N_QUERY, N_WAY))
    targets = rng.random(scores.shape) < 0.25
    targets[:, 0], targets[:, 1] = True, False  # scikit-learn's macro AUC needs both kinds in every column
    predicted = scores > 0.6
    return {
        "roc_auc": _compare(
            lambda: roc_auc(scores, targets),
            lambda: np.array([roc_auc_score(t, s, average="macro") for s, t in zip(scores, targets, strict=True)]),
            repeats,
        ),
        "macro_f1": _compare(
            lambda: macro_f1(predicted, targets),
            lambda: np.array(
                [f1_score(t, p, average="macro", zero_division=0) for p, t in zip(predicted, targets, strict=True)]
            ),
            repeats,
        ),
    }


def _compare(ours: Callable[[], np.ndarray], sklearns: Callable[[], np.ndarray], repeats: int) -> dict[str, float]:
    difference = float(np.abs(ours() - sklearns()).max())  # also warms both up
    own, theirs = _median_seconds(ours, repeats), _median_seconds(sklearns, 3)
    return {
        "awatt_seconds": own,
        "sklearn_seconds": theirs,
        "ratio": theirs / own,
        "largest_difference": difference,
    }


def _median_seconds(run: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def main() -> None:
    print(f"{EPISODES} episodes of {N_QUERY} queries, {N_WAY}-way; seconds for all")
    print(f"{'measure':<10}{'awatt':>10}{'sklearn':>10}{'ratio':>9}{'differ by':>12}")
    for measure, row in compare_speed().items():
        print(
            f"{measure:<10}{row['awatt_seconds']:>10.5f}{row['sklearn_seconds']:>10.3f}"
            f"{row['ratio']:>8.0f}x{row['largest_difference']:>12.1e}"
        )


if __name__ == "__main__":
    main()
