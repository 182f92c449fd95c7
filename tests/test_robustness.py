"""Some of the cases of ``robustness.py``: bad inputs, and model folders made by someone else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from awatt import AspectDetector

from .robustness import (
    EXAMPLES,
    problem_of_folder,
    problem_of_input,
    problem_of_mutation,
    problem_of_open_quote,
    problem_of_two_runs,
    save_detector,
)

SEEDS = st.integers(0, 2**32)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_detector(tmp_path_factory.mktemp("bundled") / "whole")


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory: pytest.TempPathFactory, make_run: Callable[..., Path]) -> Path:
    folder = tmp_path_factory.mktemp("run")
    model = make_run(folder / "run", threshold="acceptance")
    return AspectDetector.from_examples(EXAMPLES, model=model).save_pretrained(folder / "whole")


def test_an_unchanged_folder_works(saved: Path, saved_run: Path) -> None:
    for folder in (saved, saved_run):
        assert problem_of_folder(folder) is None
        assert AspectDetector.from_pretrained(folder).aspects == ("food", "staff")


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_a_changed_folder_works_or_is_refused_with_one_line(saved: Path, seed: int) -> None:
    assert problem_of_mutation(saved, seed) is None


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_a_changed_folder_with_a_run_works_or_is_refused_with_one_line(saved_run: Path, seed: int) -> None:
    assert problem_of_mutation(saved_run, seed) is None


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_every_line_of_a_spoiled_file_is_written_or_counted(saved: Path, seed: int) -> None:
    assert problem_of_input(saved.parent, seed) is None


@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_an_open_quote_loses_no_other_row(saved: Path, seed: int) -> None:
    assert problem_of_open_quote(saved.parent, seed) is None


def test_two_runs_with_one_output_do_not_mix(saved: Path) -> None:
    assert problem_of_two_runs(saved.parent, 0) is None
