"""Estimates of how long runs will take."""

from collections.abc import Callable
from pathlib import Path

import pytest

from awatt.reproduce.plan import in_words, make_plan
from awatt.reproduce.suites import Run


def test_times_are_estimated_from_similar_runs_or_guessed(tmp_path: Path, write_result: Callable[..., None]) -> None:
    for seed, seconds in ((5, 100.0), (10, 300.0), (15, 110.0)):
        write_result(Run("FewAsp", 5, 5, "imp", seed), seconds=seconds)
    same, scaled, unknown = (
        Run("FewAsp(multi)", 5, 5, "imp", 5),
        Run("FewAsp", 10, 10, "imp", 5),
        Run("FewAsp", 5, 5, "graph", 5),
    )
    plan = make_plan([same, scaled, unknown], tmp_path / "results")
    # 110 s is the median for 50 sentences; 10-way 10-shot has 150; the guess is 3 s for each of 50 sentences.
    assert plan.seconds == pytest.approx({same: 110.0, scaled: 330.0, unknown: 150.0})
    assert str(plan) == "2 estimated from earlier runs, 1 guessed at 3 s per sentence of an episode"


@pytest.mark.parametrize(("seconds", "words"), [(12.4, "12 s"), (95, "2 min"), (4000, "1 h 07 min")])
def test_time_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
