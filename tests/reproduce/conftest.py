"""Made-up results, to test tables and figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awatt.reproduce.results import result_path
from awatt.reproduce.suites import Run, figures_of

Write = Callable[..., None]


@pytest.fixture
def write_result(tmp_path: Path) -> Write:
    """Write a result to ``tmp_path / "results"``, with the data for its figures."""

    def write(run: Run, auc: float = 0.9, f1: float = 0.7, source: str = "official", seconds: float = 100.0) -> None:
        path = result_path(tmp_path / "results", run)
        path.parent.mkdir(parents=True, exist_ok=True)
        described = {
            "method": run.method,
            "encoder": run.encoder,
            "seed": run.seed,
            "episode": {"n_way": run.n_way, "n_shot": run.n_shot, "n_query": 5},
            "provenance": {"splits": {"train": {"source": source}}},
        }
        test = {"auc": auc, "auc_ci95": 0.002, "macro_f1": f1, "macro_f1_ci95": 0.005}
        result: dict[str, Any] = {"test": test, "seconds": seconds, "run": described}
        if figures := figures_of(run):
            result["figures"] = {name: _figure(name, f1) for name in figures}
        path.write_text(json.dumps(result), "utf-8")

    return write


def _figure(name: str, f1: float) -> dict[str, list[Any]]:
    if name == "figure-threshold":
        return {"threshold": [0.1, 0.2], "macro_f1": [f1, f1 / 2]}
    aspects = [f"aspect_{number % 5}" for number in range(20)]
    positions = [float(number) for number in range(20)]
    return {"aspect": aspects, "x": positions, "y": positions[::-1], "silhouette": [0.25] * 20}
