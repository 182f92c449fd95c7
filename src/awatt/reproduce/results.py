"""The results folder: one JSON file per run, read without torch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from awatt.errors import AwattError, DataError
from awatt.reproduce.suites import Run, figures_of


def result_path(results: Path, run: Run) -> Path:
    """Path of a run's JSON file."""
    return results / f"{run.name}.json"


def load_result(results: Path, run: Run) -> dict[str, Any] | None:
    """A run's result; None if there is none yet."""
    path = result_path(results, run)
    return read_result(path) if path.exists() else None


def missing(results: Path, runs: Iterable[Run]) -> list[Run]:
    """Runs without a result, or whose result lacks data for a figure; each once, in order."""
    found = {run: load_result(results, run) for run in runs}
    return [
        run
        for run, result in found.items()
        if result is None or not set(figures_of(run)) <= result.get("figures", {}).keys()
    ]


def read_result(path: Path) -> dict[str, Any]:
    """The content of a result file."""
    try:
        content = json.loads(path.read_text("utf-8"))
        content["test"]["macro_f1"], content["run"]["seed"], content["run"]["episode"]["n_way"], content["seconds"]
    except (ValueError, KeyError, TypeError):
        raise DataError("is not a result of 'awatt reproduce'. Delete it and run its item again.", path) from None
    return dict(content)


def result_files(results: Path) -> list[Path]:
    """All result files in the folder: DATASET/SETTING/NAME-seedN.json."""
    found = sorted(results.glob("*/*x*/*-seed*.json"))
    if not found:
        raise AwattError(
            f"{results} has no results. Run 'awatt reproduce table-single --data DIR --out {results}' first."
        )
    return found


def train_source(result: dict[str, Any]) -> str:
    """Where the train split came from: official, rebuilt or unknown."""
    provenance = result["run"].get("provenance") or {}
    return str(provenance.get("splits", {}).get("train", {}).get("source", "unknown"))
