"""Tables from result files: ours beside the published number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from awatt.metrics import mean_ci95
from awatt.reproduce.published import ABLATIONS, MAIN
from awatt.reproduce.runner import result_path
from awatt.reproduce.suites import Run

HEADER = ("setting", "method", "AUC", "quoted", "F1", "quoted", "Δ F1", "seeds")


def _quoted(run: Run) -> tuple[float, float] | None:
    if run.encoder != "glove-cnn":
        return None
    if run.variant != "full":
        return ABLATIONS[run.variant][run.dataset] if (run.n_way, run.n_shot) == (10, 5) else None
    return MAIN[run.dataset][run.method][run.n_way, run.n_shot]


def rows(runs: Iterable[Run], results: Path) -> list[tuple[str, ...]]:
    """A row for each (setting, method, variant) that has a result; means and 95 % intervals over its seeds."""
    groups: dict[Run, list[Mapping[str, Any]]] = {}
    for run in runs:
        path = result_path(results, run)
        if path.exists():
            key = Run(run.dataset, run.n_way, run.n_shot, run.method, 0, run.encoder, variant=run.variant)
            groups.setdefault(key, []).append(json.loads(path.read_text("utf-8")))
    return [_row(run, found) for run, found in groups.items()]


def _row(run: Run, found: list[Mapping[str, Any]]) -> tuple[str, ...]:
    auc, f1 = ([result["test"][name] for result in found] for name in ("auc", "macro_f1"))
    quoted = _quoted(run)
    rebuilt = found[0]["run"]["provenance"]["splits"]["train"]["source"] != "official"
    name = " ".join(part for part in (run.method, run.variant if run.variant != "full" else "") if part)
    if run.encoder != "glove-cnn":
        name += f" ({run.encoder})"
    return (
        f"{run.dataset} {run.n_way}-way {run.n_shot}-shot" + (" (rebuilt train)" if rebuilt else ""),
        name,
        _shown(auc, 1, 4),
        f"*{quoted[0]:.4f}*" if quoted else "",
        _shown(f1, 100, 2),
        f"*{quoted[1]:.2f}*" if quoted else "",
        f"{100 * sum(f1) / len(f1) - quoted[1]:+.2f}" if quoted else "",
        " ".join(str(result["run"]["seed"]) for result in found),
    )


def _shown(values: list[float], scale: float, digits: int) -> str:
    interval = mean_ci95([value * scale for value in values])
    mean = f"{interval.mean:.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {interval.half_width:.{digits}f}"


def markdown(table: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; *quoted* columns are the paper's own numbers."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in table)]) + "\n"
