"""What ``awatt bench`` prints: tables of at most 80 columns, and ratios that became worse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

WORSE = 0.15  # share by which a ratio may be worse than the committed one
#: headings of the columns whose names are too long for a table
HEADINGS = {
    "train_episodes_per_second": "train/s",
    "train_floor_episodes_per_second": "floor/s",
    "train_ratio_to_floor": "ratio",
    "evaluate_episodes_per_second": "evaluate/s",
    "evaluate_floor_episodes_per_second": "floor/s",
    "evaluate_ratio_to_floor": "ratio",
    "sentences_per_second": "sentences/s",
    "tokeniser_share": "tokenizer's share",
    "milliseconds": "ms",
    "microseconds": "microseconds a row",
    "peak_megabytes": "peak MB",
}
LEFT_OUT = "left_out"  # why a row has no numbers


class Ratio(NamedTuple):
    """A result, and whether more of it is better."""

    value: float
    more_is_better: bool


def ratios(found: Mapping[str, Any]) -> dict[str, Ratio]:
    """All ratios of a result, by a name that is the same in every run."""
    named: dict[str, Ratio] = {}
    for row in found.get("episodes", ()):
        for part in ("train", "evaluate"):
            if f"{part}_ratio_to_floor" in row:
                name = f"{part} {row['encoder']} {row['setting']}, time / floor"
                named[name] = Ratio(row[f"{part}_ratio_to_floor"], more_is_better=False)
    for row in found.get("files", ()):
        named[f"{row['files']}, times as fast as the tokenizer"] = Ratio(row["times_the_tokenizer"], True)
    for name, value in found.get("metrics_against_scikit_learn", {}).items():
        if name.endswith("_times_faster"):
            named[f"{name.removesuffix('_times_faster')}, times as fast as scikit-learn"] = Ratio(value, True)
    if "two_processes_speed_up" in found.get("processes", {}):
        named["two processes, times as fast as one"] = Ratio(found["processes"]["two_processes_speed_up"], True)
    return named


def regressions(found: Mapping[str, Any], committed: Mapping[str, Any]) -> list[str]:
    """A line for each ratio that is worse by more than 15 %."""
    before, lines = ratios(committed), []
    for name, (value, more_is_better) in ratios(found).items():
        if name not in before:
            continue
        worse = (before[name].value / value if more_is_better else value / before[name].value) - 1
        if worse > WORSE:
            lines.append(f"{name}: {value:.3g}, was {before[name].value:.3g} ({worse:.0%} worse)")
    return lines


def table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Headings and cells of the rows with numbers."""
    measured = [row for row in rows if LEFT_OUT not in row]
    columns = list(dict.fromkeys(column for row in measured for column in row))
    headings = [HEADINGS.get(column, column.replace("_", " ")) for column in columns]
    return [headings, *([cell(row.get(column, "")) for column in columns] for row in measured)]


def cell(value: object) -> str:
    """Three digits are enough to compare."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"
