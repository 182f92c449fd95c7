"""Figures as PNG and SVG, each drawn from its CSV alone. Okabe-Ito colours, plus markers for readers without colour."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from statistics import fmean
from typing import Any

from awatt.errors import require

BLUE, ORANGE, GREEN, VERMILION, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
_COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE)
_MARKERS = ("o", "s", "^", "D", "v")
_STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "awatt",  # reproducible ids
}

Row = dict[str, str]


def draw(name: str, text: str) -> dict[str, bytes]:
    """The figure ``name`` from the text of its CSV: ``{"png": ..., "svg": ...}``."""
    matplotlib = require("matplotlib", "plots")
    figure_type = require("matplotlib.figure", "plots").Figure
    rows = list(csv.DictReader(io.StringIO(text)))
    images = {}
    with matplotlib.rc_context(_STYLE):
        figure = figure_type(layout="constrained")
        _PLOTS[name](figure, rows)
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            image = io.BytesIO()
            figure.savefig(image, format=kind, dpi=150, metadata=metadata)
            images[kind] = image.getvalue()
    return images


def _threshold(figure: Any, rows: list[Row]) -> None:
    figure.set_size_inches(6.4, 4.8)
    axes = figure.subplots()
    lines = {
        "Proto-AWATT without DT": (BLUE, "o-"),
        "Proto-HATT": (VERMILION, "s-"),
        "Proto-AWATT with DT": (GREEN, "--"),
        "Proto-AWATT with KR": (PURPLE, ":"),
    }
    for label, (colour, style) in lines.items():
        points = [row for row in rows if row["series"] == label]
        f1 = [float(row["macro_f1"]) for row in points]
        if points[0]["threshold"]:
            axes.plot([float(row["threshold"]) for row in points], f1, style, color=colour, markersize=4, label=label)
        else:
            axes.axhline(f1[0], color=colour, linestyle=style, linewidth=1.8, label=f"{label}: {f1[0]:.1f}")
    axes.set(xlabel="static threshold τ", ylabel="macro-F1 (%)", xlim=(0, 0.95), ylim=(0, None))
    axes.set_title(f"FewAsp, 10-way 5-shot, {_seeds(rows)}")
    figure.legend(loc="outside lower center", ncols=2)


def _tsne(figure: Any, rows: list[Row]) -> None:
    figure.set_size_inches(9, 4.9)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    aspects = sorted({row["aspect"] for row in rows})
    for axes, method in zip(figure.subplots(1, len(methods)), methods, strict=True):
        own = [row for row in rows if row["method"] == method]
        for aspect, colour, marker in zip(aspects, _COLOURS, _MARKERS, strict=True):
            points = [(float(row["x"]), float(row["y"])) for row in own if row["aspect"] == aspect]
            axes.scatter(
                *zip(*points, strict=True), s=20, color=colour, marker=marker, alpha=0.75, linewidths=0, label=aspect
            )
        axes.set_title(f"{method}\nmean silhouette {fmean(float(row['silhouette']) for row in own):.2f}")
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set(visible=True, color="#BBBBBB")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(aspects), markerscale=1.6)


def _repeats(figure: Any, rows: list[Row]) -> None:
    figure.set_size_inches(9, 3.8)
    positions = range(len(rows))
    measures = (("auc", "AUC", BLUE, "o-"), ("macro_f1", "macro-F1 (%)", VERMILION, "s-"))
    for axes, (measure, label, colour, style) in zip(figure.subplots(1, 2), measures, strict=True):
        values, widths = ([float(row[column]) for row in rows] for column in (measure, f"{measure} ±"))
        axes.errorbar(positions, values, widths, fmt=style, color=colour, capsize=4)
        axes.set_xticks(positions, [row["e_M"] for row in rows])
        axes.set(xlabel="repetitions $e_M$ of the common aspect vector", ylabel=label)
    figure.suptitle(
        f"Proto-AWATT, FewAsp, 5-way 5-shot, {_seeds(rows)}; bars: 95 % interval over {rows[0]['± over']}", fontsize=10
    )


def _seeds(rows: list[Row]) -> str:
    seeds = rows[0]["seeds"]
    return f"mean of seeds {', '.join(seeds.split())}" if " " in seeds else f"seed {seeds}"


_PLOTS: dict[str, Callable[[Any, list[Row]], None]] = {
    "figure-threshold": _threshold,
    "figure-prototypes": _tsne,
    "figure-queries": _tsne,
    "figure-repeats": _repeats,
}
