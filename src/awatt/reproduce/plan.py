"""Estimate how long runs will take, from the times of finished runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from awatt.data.sampler import EpisodeShape
from awatt.reproduce.results import read_result
from awatt.reproduce.suites import Run

#: rough guess for one core, used as long as no run with this method and encoder is finished
DEFAULT_SECONDS = 3.0  # per sentence of an episode; 5-way 5-shot has 50


class Plan(NamedTuple):
    """Runs with their estimated seconds, and the number of runs whose time is only a guess."""

    seconds: dict[Run, float]
    guessed: int

    def __str__(self) -> str:
        if not self.guessed:
            return "estimated from earlier runs"
        return (
            f"{len(self.seconds) - self.guessed} estimated from earlier runs, {self.guessed} guessed at "
            f"{DEFAULT_SECONDS:.0f} s per sentence of an episode"
        )


def make_plan(runs: Iterable[Run], results: Path) -> Plan:
    """Median time of finished runs with the same method, encoder and setting; else of any setting, scaled."""
    rates: dict[tuple[object, ...], list[float]] = {}
    for path in results.glob("*/*x*/*-seed*.json"):
        result = read_result(path)
        shape, parts = result["run"]["episode"], (result["run"]["method"], result["run"]["encoder"])
        sentences = shape["n_way"] * (shape["n_shot"] + shape["n_query"])
        for key in ((*parts, sentences), parts):
            rates.setdefault(key, []).append(result["seconds"] / sentences)
    seconds: dict[Run, float] = {}
    guessed = 0
    for run in runs:
        sentences = run.n_way * (run.n_shot + EpisodeShape.n_query)
        similar = rates.get((run.method, run.encoder, sentences)) or rates.get((run.method, run.encoder))
        guessed += not similar
        seconds[run] = sentences * (median(similar) if similar else DEFAULT_SECONDS)
    return Plan(seconds, guessed)


def in_words(seconds: float) -> str:
    """``95`` -> ``2 min``, ``4000`` -> ``1 h 07 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
