"""The data of each figure, from result files: a CSV that is all the plot needs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from awatt.reproduce.results import load_result, missing
from awatt.reproduce.suites import FIGURES, REPEATS, Run
from awatt.reproduce.tables import choice_of_all, mean_of

Row = dict[str, Any]

#: names in the figures
_METHODS = {"proto-hatt": "Proto-HATT", "proto-awatt": "Proto-AWATT"}


def figure_csv(name: str, results: Path) -> str | None:
    """The figure's data over all seeds for which every run is complete; None if there is no such seed."""
    runs = dict.fromkeys(FIGURES[name].runs(choice_of_all(results)))
    incomplete = {run.seed for run in missing(results, runs)}
    groups: dict[tuple[str, str], list[Row]] = {}
    for run in runs:
        if run.seed not in incomplete:
            groups.setdefault((run.method, run.variant), []).append(_load(results, run))
    if not groups:
        return None
    rows = list(_ROWS[name](groups))
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _load(results: Path, run: Run) -> Row:
    found = load_result(results, run)
    assert found is not None  # only seeds without missing runs are loaded
    return found


def _threshold_rows(groups: dict[tuple[str, str], list[Row]]) -> Iterable[Row]:
    """The curves over static thresholds, then the methods that set the threshold themselves."""
    labels = {
        ("proto-awatt", "w/o DT"): "Proto-AWATT without DT",
        ("proto-hatt", "full"): "Proto-HATT",
        ("proto-awatt", "full"): "Proto-AWATT with DT",
        ("proto-awatt", "w/o DT w/ KR"): "Proto-AWATT with KR",
    }
    for key, label in labels.items():
        found = groups[key]
        seeds = " ".join(str(result["run"]["seed"]) for result in found)
        curves = [result["figures"]["figure-threshold"] for result in found if "figures" in result]
        if curves:
            for index, threshold in enumerate(curves[0]["threshold"]):
                f1 = fmean(curve["macro_f1"][index] for curve in curves)
                yield {"series": label, "threshold": threshold, "macro_f1": f"{100 * f1:.2f}", "seeds": seeds}
        else:
            f1 = fmean(result["test"]["macro_f1"] for result in found)
            yield {"series": label, "threshold": "", "macro_f1": f"{100 * f1:.2f}", "seeds": seeds}


def _tsne_rows(name: str, groups: dict[tuple[str, str], list[Row]]) -> Iterable[Row]:
    """The t-SNE points of each method."""
    for (method, _), found in groups.items():
        columns = found[0]["figures"][name]
        for values in zip(*columns.values(), strict=True):
            yield {"method": _METHODS[method], **dict(zip(columns, values, strict=True))}


def _repeats_rows(groups: dict[tuple[str, str], list[Row]]) -> Iterable[Row]:
    """AUC and macro-F1 for each e_M, with 95 % confidence intervals."""
    for repeats in sorted(REPEATS):
        found = groups["proto-awatt", "full" if repeats == REPEATS[0] else f"e_M {repeats}"]
        row: Row = {"e_M": repeats}
        for measure, factor, digits in (("auc", 1, 4), ("macro_f1", 100, 2)):
            shown = mean_of(found, measure, factor, digits)
            row |= {measure: f"{shown.mean:.{digits}f}", f"{measure} ±": f"{shown.half_width or 0:.{digits}f}"}
        yield row | {
            "± over": "seeds" if len(found) > 1 else "episodes",
            "seeds": " ".join(str(result["run"]["seed"]) for result in found),
        }


_ROWS = {
    "figure-threshold": _threshold_rows,
    "figure-prototypes": lambda groups: _tsne_rows("figure-prototypes", groups),
    "figure-queries": lambda groups: _tsne_rows("figure-queries", groups),
    "figure-repeats": _repeats_rows,
}
