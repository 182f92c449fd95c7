"""``awatt reproduce``, ``models``, ``encoders`` and ``bench``, as a person calls them."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from awatt import bench
from awatt.encoders import ENCODERS
from awatt.models import MODELS

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command in this process: exit code, stdout, stderr."""
    from awatt.cli import main

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["awatt", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return call


def test_the_list_names_every_table(run: Run) -> None:
    code, out, _ = run("reproduce", "--list")
    assert code == 0
    assert "table-single" in out
    assert "Table 4" in out


def test_a_dry_run_says_what_would_be_run_and_runs_nothing(run: Run, tmp_path: Path) -> None:
    code, out, err = run(
        "reproduce", "table-full", "--dry-run", "--seeds", "5 10", "--settings", "5x5", "--out", tmp_path
    )
    assert code == 0
    assert len(out.splitlines()) == 14
    assert "0 of 14 runs are done" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table-nine"], "there is no item 'table-nine'. Choose one of: table-single"),
        (["table-single", "--settings", "5by5"], "--settings needs pairs such as 5x5, found '5by5'"),
        (["table-single", "--methods", "protonet"], "--methods has 'protonet'"),
        (["table-single", "--seeds", "five"], "--seeds needs whole numbers, found 'five'"),
        (["table-single"], "--data is needed"),
    ],
)
def test_a_wrong_call_is_one_line_that_helps(run: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    code, _, err = run("reproduce", *arguments, "--out", tmp_path)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_models_and_encoders_are_listed_one_line_each(run: Run) -> None:
    code, out, _ = run("models")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(MODELS)
    assert all("https://" in line for line in out.splitlines())
    code, out, _ = run("encoders")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(ENCODERS)
    assert out.count("pip install") >= len(ENCODERS)


def test_the_benchmark_measures_ratios_to_the_floor(
    run: Run, toy_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole command takes minutes; here its parts that need no other process, on the bundled sample."""
    monkeypatch.setenv("AWATT_SHARED", os.fspath(tmp_path))
    monkeypatch.setattr(bench, "SETTINGS", ((3, 2),))
    monkeypatch.setattr(bench, "scaling_and_memory", lambda data, quick: {"two_processes_speed_up": 2.0})
    monkeypatch.setattr(bench, "growth", lambda data, quick: [])
    monkeypatch.setattr(bench, "start_up", lambda: {"python": 0.1})
    code, out, _ = run("bench", "--quick", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["corpus"] == "bundled sample"
    glove, static = found["episodes"]
    assert glove["train_ratio_to_floor"] > 0
    assert glove["train_episodes_per_second"] * glove["train_ratio_to_floor"] == pytest.approx(
        glove["train_floor_episodes_per_second"]
    )
    assert "does not exist" in static["left_out"]  # no model2vec folder here: said, not hidden
