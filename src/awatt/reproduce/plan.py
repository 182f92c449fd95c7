"""How long runs will take, from the seconds of those that are done."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from awatt.data.sampler import EpisodeShape
from awatt.reproduce.results import read_result
from awatt.reproduce.suites import Run

#: where no run of the method and encoder is done: a rough guess for one core
DEFAULT_SECONDS = 3.0  # for each sentence of an episode; 5-way 5-shot has 50


class Plan(NamedTuple):
    """Runs with their estimated seconds, and how many of these are a guess."""

    seconds: dict[Run, float]
    guessed: int

    def __str__(self) -> str:
        if not self.guessed:
            return "estimated from earlier runs"
        return (
            f"{len(self.seconds) - self.guessed} estimated from earlier runs, {self.guessed} guessed at "
            f"{DEFAULT_SECONDS:.0f} s for each sentence of an episode"
        )


def make_plan(runs: Iterable[Run], results: Path) -> Plan:
    """The median of like runs: same method, encoder and setting, else the same method and encoder, scaled."""
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
        like = rates.get((run.method, run.encoder, sentences)) or rates.get((run.method, run.encoder))
        guessed += not like
        seconds[run] = sentences * (median(like) if like else DEFAULT_SECONDS)
    return Plan(seconds, guessed)


def in_words(seconds: float) -> str:
    """``95`` -> ``2 min``, ``4000`` -> ``1 h 07 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
