"""``awatt reproduce``, ``models``, ``encoders`` and ``bench``."""

import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awatt.encoders import ENCODERS
from awatt.models import MODELS
from awatt.reproduce import bench, runner
from awatt.reproduce.bench_files import WAYS
from awatt.reproduce.results import result_path
from awatt.reproduce.suites import ITEMS

ROOT = Path(__file__).resolve().parents[2]
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


def test_the_list_has_every_table_and_figure_of_the_paper(run: Run) -> None:
    code, out, _ = run("reproduce", "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [*ITEMS, "tables", "report"]
    for reported in ("Table 1", "Table 2", "Table 3", "Table 4", "Table 5", "Table 6", "Appendix", "t-SNE", "e_M"):
        assert reported in out


@pytest.mark.parametrize("item", ["table-full", "tables"])
def test_an_address_is_not_ignored_without_the_ray_engine(run: Run, tmp_path: Path, item: str) -> None:
    code, out, err = run("reproduce", item, "--dry-run", "--address", "nowhere:1", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert "--address needs --engine ray. Add it, or leave out --address." in err


def test_a_dry_run_lists_the_missing_runs_and_runs_nothing(run: Run, tmp_path: Path) -> None:
    code, out, err = run(
        "reproduce", "table-full", "--dry-run", "--seeds", "5 10", "--settings", "5x5", "--out", tmp_path
    )
    assert code == 0
    assert len(out.splitlines()) == 22
    assert all(line.endswith("min") for line in out.splitlines())
    assert "0 of 22 runs done" in err
    assert "About 55 min with --jobs 1: 0 estimated from earlier runs, 22 guessed at 3 s" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [
        ("table-single --seeds 5 10 15 --settings 5x5 10x5 --methods imp graph --dry-run", 12),
        ("table-single --seeds 5,10 --settings 5x5,10x5 --methods imp,graph --dry-run", 8),
        ("table-single --seeds=5 10 --settings=5x5 10x5 --methods=imp graph --dry-run", 8),
        ("--seeds=5 10 table-single --methods imp --dry-run --datasets 'FewAsp(single)'", 8),
        ("--dry-run --seeds 5 10 table-single table-multi --methods imp", 16),
        ("table-ablation --dry-run --seeds 5 --methods 'w/o SA' 'w/o QA'", 2),
        ("table-ablation --dry-run --seeds '5 10' --methods 'w/o SA, w/o QA'", 4),
    ],
)
def test_lists_can_use_spaces_or_commas(run: Run, tmp_path: Path, arguments: str, runs: int) -> None:
    code, out, _ = run("reproduce", *shlex.split(arguments), "--out", tmp_path)
    assert code == 0
    assert len(out.splitlines()) == runs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table-nine"], "there is no item 'table-nine'. Choose one of: table-statistics, table-single"),
        (["table-single", "--settings", "5by5"], "--settings needs pairs such as 5x5, found '5by5'"),
        (["table-single", "--methods", "protonet"], "--methods: this item has no 'protonet'"),
        (["table-single", "--settings", "5x5", "tabel"], "--settings needs pairs such as 5x5, found 'tabel'"),
        (["table-single", "--settings", "5x²"], "--settings needs pairs such as 5x5, found '5x²'"),
        (["table-single", "--seeds", "²"], "--seeds needs whole numbers, found '²'"),
        (["table-single", "--seeds", ""], "--seeds needs at least one number"),
        (["table-single", "--seeds="], "--seeds needs at least one number"),
        (["table-single", "--settings", "7x3"], "--settings: this item has no '7x3'. Choose from: 5x5, 5x10"),
        (["table-single", "--datasets", "foo"], "--datasets: this item has no 'foo'. Choose from: FewAsp(single)."),
        (
            ["overview-single", "--datasets", "FewAsp"],
            "--datasets: this item has no 'FewAsp'. Choose from: FewAsp(single).",
        ),
        (["overview-single", "--datasets", "foo", "--methods", "static"], "--datasets: this item has no 'foo'"),
        (["table-encoders", "--datasets", "foo"], "--datasets: this item has no 'foo'. Choose from: FewAsp."),
        (["table-ablation", "--settings", "5x5"], "--settings: this item has no '5x5'. Choose from: 10x5."),
        (["table-encoders", "--settings", "5x5"], "--settings: this item has no '5x5'. Choose from: 10x5."),
        (["overview-single", "--settings", "10x5"], "--settings: this item has no '10x5'. Choose from: 5x5."),
        (["tables", "--dry-run"], "--dry-run is for items that need runs; 'tables' only writes files. Leave it out."),
        (["table-single", "--seeds", "five"], "--seeds needs whole numbers, found 'five'"),
        (["table-single"], "results are missing. Give --data FOLDER"),
        (["table-statistics"], "results are missing. Give --data FOLDER"),
        (["figure-queries", "--settings", "5x5"], "--settings is for tables"),
        (["tables"], "has no results"),
        (["report"], "has no results"),
        (
            ["table-single", "tables"],
            "'tables' and 'report' cannot be combined with other items, found: table-single tables",
        ),
    ],
)
def test_usage_errors_are_one_helpful_line(run: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    code, _, err = run("reproduce", *arguments, "--out", tmp_path)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_tables_and_report_need_only_results(run: Run, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(ROOT / "results" / "FewAsp(single)", results / "FewAsp(single)")
    code, out, _ = run("reproduce", "tables", "--from", results)
    assert code == 0
    assert str(results / "table-single.tex") in out.splitlines()
    code, out, _ = run("reproduce", "report", "--from", results)
    assert code == 0
    assert out == f"{results / 'report.html'}\n"
    assert "FewAsp(single) 5-way 5-shot" in (results / "report.html").read_text("utf-8")


def test_several_items_share_their_runs_and_write_tables_and_figures(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is trained: each run gets the numbers of a committed result."""
    made = json.loads((ROOT / "results" / "FewAsp(single)" / "5x5" / "imp-seed5.json").read_text("utf-8"))

    def pretend(wanted: Any, data: Path, results: Path, work: Path, overrides: tuple[str, ...]) -> dict[str, Any]:
        path = result_path(results, wanted)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(made), "utf-8")
        return dict(made)

    monkeypatch.setattr(runner, "run_one", pretend)
    arguments = ("--seeds", "5", "--data", tmp_path, "--out", tmp_path / "out")
    code, out, err = run("reproduce", "figure-repeats", "overview-single", *arguments)
    assert code == 0
    assert "0 of 19 runs done, 19 to go" in err
    assert "FewAsp/5x5/proto-awatt+e_M-50-seed5" in err
    assert out.startswith("# Seven methods")
    assert {path.name for path in (tmp_path / "out" / "figures").iterdir()} == {
        f"figure-repeats.{suffix}" for suffix in ("csv", "png", "svg")
    }
    code, _, err = run("reproduce", "figure-repeats", *arguments)
    assert code == 0
    assert "6 of 6 runs done" in err
    assert "Warning: 6 results made with other settings or data, such as FewAsp/5x5/proto-awatt" in err
    assert "(method is imp, now proto-awatt). Delete what should be run again." in err


def test_a_quick_run_found_the_unfinished_full_run_in_its_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []
    monkeypatch.setattr(runner, "run_all", lambda runs, data, results, work, *more: folders.extend((results, work)))
    arguments = ("table-single", "--data", tmp_path, "--out", tmp_path / "out", "--work", tmp_path / "work")
    assert run("reproduce", *arguments)[0] == run("reproduce", *arguments, "--quick")[0] == 0
    assert [str(path.relative_to(tmp_path)) for path in folders] == ["out", "work", "out/quick", "work/quick"]


def test_models_and_encoders_are_listed_one_line_each(run: Run) -> None:
    code, out, _ = run("models")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(MODELS)
    assert all("https://" in line for line in out.splitlines())
    code, out, _ = run("encoders")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(ENCODERS)
    assert out.count("pip install") >= len(ENCODERS)


def test_bench_measures_speed_relative_to_the_minimum(
    run: Run, toy_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole command takes minutes; this runs the parts that need no other process, on the bundled sample."""
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
    assert len(found["files"]) == len(WAYS)
    assert all(way["times_the_tokenizer"] > 0 for way in found["files"])
    assert "does not exist" in static["left_out"]  # no model2vec folder here, which is reported
