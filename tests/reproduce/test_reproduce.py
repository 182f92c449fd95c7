"""The runs that the paper's tables and figures need, and how they are run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from awatt.errors import AwattError
from awatt.reproduce.published import ABLATIONS, ENCODERS, MAIN, STATISTICS
from awatt.reproduce.results import missing, result_path
from awatt.reproduce.runner import outdated, run_all, run_one
from awatt.reproduce.suites import ITEMS, OURS, SEEDS, VARIANTS, Choice, Run, figures_of


def test_the_main_tables_are_seven_methods_and_two_rows_of_our_own_in_four_settings() -> None:
    runs = [
        run for item in ("table-single", "table-multi", "table-full") for run in ITEMS[item].runs(Choice(seeds=(5,)))
    ]
    assert len(runs) == len({run.name for run in runs}) == 84 + 24 + 24
    assert sum(run.method == "bundled" for run in runs) == 12
    assert sum(run.encoder == "static" for run in runs) == 12
    assert sum(run.method in OURS for run in runs) == 24
    assert {run.threshold for run in runs if run.method == "proto-awatt"} == {"policy"}
    assert {run.threshold for run in runs if run.method != "proto-awatt"} == {"static"}


def test_a_baseline_is_run_as_in_its_paper() -> None:
    runs = ITEMS["table-full"].runs(Choice(seeds=(5,)))
    settings = {(run.method, run.n_shot): run.settings for run in runs if run.settings}
    assert settings == {
        ("relation", 5): ("training.loss=own",),
        ("relation", 10): ("training.loss=own",),
        ("proto-hatt", 10): ("model.kernel=10",),
    }


def test_every_number_of_the_paper_is_quoted() -> None:
    assert {len(settings) for methods in MAIN.values() for settings in methods.values()} == {4}
    assert MAIN["FewAsp(single)"]["proto-awatt"][10, 5] == (0.9701, 80.28)
    assert MAIN["FewAsp"]["imp"][5, 10] == (0.9230, 74.13)
    assert ABLATIONS["w/o QA"]["FewAsp(multi)"] == (0.8920, 51.51)
    assert ABLATIONS.keys() == VARIANTS.keys()
    assert ENCODERS["DistilBERT"]["proto-awatt"] == (0.9451, 70.23)
    assert ENCODERS["GloVe + CNN"] == {
        method: MAIN["FewAsp"][method][10, 5] for method in ("proto-hatt", "proto-awatt")
    }
    assert STATISTICS["FewAsp"] == (100, 630, 63_000)


def test_the_full_variant_of_the_ablation_is_the_main_tables_run() -> None:
    main = ITEMS["table-full"].runs(Choice(seeds=(5,), methods=("proto-awatt",), settings=((10, 5),)))
    ablation = ITEMS["table-ablation"].runs(Choice(seeds=(5,), methods=("full",)))
    assert main == ablation


def test_the_encoder_table_fine_tunes_transformers_with_their_own_settings() -> None:
    runs = ITEMS["table-encoders"].runs(Choice(seeds=(5,)))
    assert len(runs) == 8
    assert runs[:2] == ITEMS["table-full"].runs(Choice((5,), ("proto-hatt", "proto-awatt"), ((10, 5),)))
    transformer = [run for run in runs if run.encoder == "transformer"]
    assert [(run.method, run.threshold, run.variant) for run in transformer] == [
        ("proto-hatt", "static", "full"),
        ("proto-awatt", "static", "w/o DT"),
    ]
    assert all("training.learning_rate=0.00003" in run.settings for run in transformer)


def test_figures_reuse_the_runs_of_the_tables() -> None:
    one = Choice(seeds=(5,))
    tables = {run for name in ITEMS if name.startswith("table") for run in ITEMS[name].runs(one)}
    new = [run for name in ITEMS if name.startswith("figure") for run in ITEMS[name].runs(one) if run not in tables]
    assert [run.variant for run in new] == ["e_M 1", "e_M 5", "e_M 10", "e_M 25", "e_M 50"]
    assert len({run.name for run in new}) == 5


def test_a_run_measures_the_data_of_the_figures_that_show_it() -> None:
    assert figures_of(Run("FewAsp", 10, 5, "proto-hatt", 10)) == ("figure-threshold",)
    assert figures_of(Run("FewAsp", 10, 5, "proto-awatt", 5, variant="w/o DT")) == ("figure-threshold",)
    shown = ("figure-prototypes", "figure-queries")
    assert figures_of(Run("FewAsp(multi)", 5, 5, "proto-awatt", SEEDS[0], threshold="policy")) == shown
    assert figures_of(Run("FewAsp(multi)", 5, 5, "proto-awatt", SEEDS[1], threshold="policy")) == ()
    assert figures_of(Run("FewAsp(single)", 5, 5, "proto-hatt", 5)) == ()


def test_a_result_without_the_data_of_its_figure_is_run_again(
    tmp_path: Path, write_result: Callable[..., None]
) -> None:
    run, results = Run("FewAsp", 10, 5, "proto-hatt", 5), tmp_path / "results"
    write_result(run)
    assert missing(results, [run]) == []
    path = result_path(results, run)
    found = json.loads(path.read_text("utf-8"))
    del found["figures"]
    path.write_text(json.dumps(found), "utf-8")
    assert missing(results, [run]) == [run]


def test_a_file_that_is_not_a_result_is_reported_by_name(tmp_path: Path) -> None:
    run = Run("FewAsp", 10, 5, "proto-hatt", 5)
    path = result_path(tmp_path, run)
    path.parent.mkdir(parents=True)
    path.write_text("[]", "utf-8")
    with pytest.raises(AwattError, match=r"proto-hatt-seed5\.json: is not a result of 'awatt reproduce'"):
        missing(tmp_path, [run])


def test_only_the_seeds_of_a_figure_can_be_chosen() -> None:
    for name in ("figure-threshold", "figure-queries", "figure-repeats"):
        with pytest.raises(AwattError, match="--methods is for tables"):
            ITEMS[name].runs(Choice(methods=("proto-hatt",)))


@pytest.mark.parametrize("name", ["figure-prototypes", "figure-queries"])
def test_seeds_of_the_figures_of_one_model_had_no_effect(name: str) -> None:
    with pytest.raises(AwattError, match=r"--seeds: this figure shows seed 5 only\. Add 5, or leave --seeds out\."):
        ITEMS[name].runs(Choice((7,)))
    assert {run.seed for run in ITEMS[name].runs(Choice((7, 5)))} == {5}


def test_an_unknown_method_or_setting_lists_the_valid_ones() -> None:
    with pytest.raises(AwattError, match=r"--methods: this item has no 'protonet'\. Choose from: relation, matching"):
        ITEMS["table-single"].runs(Choice(methods=("protonet",)))
    with pytest.raises(AwattError, match="--settings: this item has no '7x7'"):
        ITEMS["table-single"].runs(Choice(settings=((7, 7),)))


@pytest.fixture(scope="module")
def datasets(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as 'awatt data build' writes it, with one toy dataset."""
    folder = tmp_path_factory.mktemp("datasets")
    shutil.copytree(toy_data, folder / "FewAsp(single)")
    return folder


def overrides(datasets: Path) -> tuple[str, ...]:
    vectors = datasets / "FewAsp(single)" / "glove.txt"
    return (
        f"encoder.vectors={vectors}",
        "encoder.hidden=8",
        "training.episodes_per_epoch=4",
        "training.validation_episodes=4",
        "training.max_epochs=2",
    )


RUN = Run("FewAsp(single)", 5, 2, "prototypical", 5)


def without_seconds(path: Path) -> dict[str, Any]:
    return {name: value for name, value in json.loads(path.read_text("utf-8")).items() if name != "seconds"}


def test_a_run_leaves_one_small_result_and_no_model(datasets: Path, tmp_path: Path) -> None:
    run_one(RUN, datasets, tmp_path / "results", tmp_path / "work", overrides(datasets))
    found = without_seconds(result_path(tmp_path / "results", RUN))
    assert found["test"]["episodes"] == 600
    assert 0 <= found["test"]["macro_f1"] <= 1
    assert found["run"]["seed"] == 5
    assert found["run"]["provenance"]["splits"]["train"]["source"] == "made"
    assert found["epochs"] == 2
    assert not [path for path in (tmp_path / "work").rglob("*") if path.is_file()]


def test_the_bundled_models_row_could_not_be_run(datasets: Path, tmp_path: Path) -> None:
    run_one(replace(RUN, method="bundled", n_shot=1), datasets, tmp_path, tmp_path / "work")
    found = json.loads(result_path(tmp_path, replace(RUN, method="bundled", n_shot=1)).read_text("utf-8"))
    assert found["test"]["episodes"] == 600
    assert found["run"]["encoder"] == "bundled"


def test_results_with_other_settings_or_data_are_found(datasets: Path, tmp_path: Path) -> None:
    run_one(RUN, datasets, tmp_path, tmp_path / "work", overrides(datasets))
    path = result_path(tmp_path, RUN)
    result = json.loads(path.read_text("utf-8"))

    def found(data: Path | None = datasets) -> list[str]:
        return list(outdated([RUN, replace(RUN, seed=10)], data, tmp_path, overrides(datasets)).values())

    assert found() == []
    result["run"]["sha256"]["train"] = "0"
    del result["run"]["training"]["loss"]  # a setting that is newer than the result
    path.write_text(json.dumps(result), "utf-8")
    assert found() == ["another train split"]
    assert found(None) == []
    result["run"]["settings"]["encoder"]["hidden"] = 9
    path.write_text(json.dumps(result), "utf-8")
    assert found(None) == ["encoder.hidden is 9, now 8"]


def test_finished_runs_are_skipped_and_a_stopped_run_ends_with_the_same_result(datasets: Path, tmp_path: Path) -> None:
    whole, stopped, work = tmp_path / "whole", tmp_path / "stopped", tmp_path / "work"
    run_one(RUN, datasets, whole, work, overrides(datasets))

    from awatt.research import training

    class Stop(BaseException):
        pass

    def stop(*_: object) -> None:
        raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.RunFolder, "append", stop)
        with pytest.raises(Stop):
            run_one(RUN, datasets, stopped, work, overrides(datasets))
    assert missing(stopped, [RUN, RUN]) == [RUN]
    done: list[Run] = []
    run_all([RUN], datasets, stopped, work, 1, overrides(datasets), lambda run, result: done.append(run))
    run_all([RUN], datasets, stopped, work, 1, overrides(datasets), lambda run, result: done.append(run))
    assert done == [RUN]
    assert without_seconds(result_path(stopped, RUN)) == without_seconds(result_path(whole, RUN))


def test_the_seconds_of_a_resumed_run_left_out_its_first_part(
    datasets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from awatt.research.training import Trainer

    finish_epoch = Trainer._epoch

    def stop(trainer: Trainer, *arguments: Any) -> dict[str, Any]:
        if trainer.progress.epoch == 1:
            raise KeyboardInterrupt
        return {**finish_epoch(trainer, *arguments), "train_seconds": 1000.0, "validation_seconds": 500.0}

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_epoch", stop)
        with pytest.raises(KeyboardInterrupt):
            run_one(RUN, datasets, tmp_path, tmp_path / "work", overrides(datasets))
    result = run_one(RUN, datasets, tmp_path, tmp_path / "work", overrides(datasets))
    assert result["epochs"] == 2
    assert 1500 <= result["seconds"] < 2000
    assert list(result)[-1] == "seconds"


def test_a_work_folder_with_other_settings_advised_another_out(datasets: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work" / RUN.name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"episode": {}, "seed": 5}', "utf-8")
    with pytest.raises(AwattError) as caught:
        run_one(RUN, datasets, tmp_path, tmp_path / "work", overrides(datasets))
    assert str(caught.value).startswith(f"{folder} holds a run with other settings (different: ")
    assert str(caught.value).endswith("). Delete that folder, or choose another --work.")


#: three runs, two at a time; with HALT in the environment, the last one waits for ever after its first epoch
GRID = """
import os
import sys
import threading
from pathlib import Path
from awatt.reproduce.runner import run_all
from awatt.reproduce.suites import Run
from awatt.research.runs import RunFolder

save_checkpoint = RunFolder.save_checkpoint


def save_and_halt(folder, tensors, progress):
    save_checkpoint(folder, tensors, progress)
    if folder.path.name.endswith("-seed15"):
        (folder.path / "halted").touch()
        threading.Event().wait()


if "HALT" in os.environ:
    RunFolder.save_checkpoint = save_and_halt
if __name__ == "__main__":
    data, results, work = map(Path, sys.argv[1:4])
    runs = [Run("FewAsp(single)", 5, 2, "prototypical", seed) for seed in (5, 10, 15)]
    run_all(runs, data, results, work, 2, tuple(sys.argv[4:]), lambda run, result: None)
"""


def test_a_killed_grid_of_two_jobs_resumes_and_gives_the_files_of_one_job(datasets: Path, tmp_path: Path) -> None:
    script = tmp_path / "grid.py"
    script.write_text(GRID, "utf-8")
    killed, whole = tmp_path / "killed", tmp_path / "whole"

    def start(**environment: str) -> "subprocess.Popen[str]":
        command = [sys.executable, script, datasets, killed, tmp_path / "work", *overrides(datasets)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment)

    first = start(HALT="1")
    wait_for(tmp_path, "work/**/halted")
    first.kill()
    first.communicate(timeout=300)  # its workers end with it: they share the pipe
    assert 0 < len(list(killed.rglob("*-seed*.json"))) < 3
    second = start()
    second.communicate(timeout=300)
    assert second.returncode == 0
    runs = [Run("FewAsp(single)", 5, 2, "prototypical", seed) for seed in (5, 10, 15)]
    run_all(runs, datasets, whole, tmp_path / "other", 1, overrides(datasets), lambda run, result: None)
    paths = sorted(path.relative_to(whole) for path in whole.rglob("*.json"))
    assert len(paths) == 3
    assert sorted(path.relative_to(killed) for path in killed.rglob("*.json")) == paths
    for path in paths:
        assert without_seconds(killed / path) == without_seconds(whole / path)


#: the command with runs that never end, except the first; they create marker files in ``folder``
ENDLESS = """
import sys
import threading
import time
from pathlib import Path

from awatt.reproduce import runner

folder = Path(sys.argv[sys.argv.index("--data") + 1])


def pretend(run, data, results, work, overrides):
    if run.seed == 1:
        result = {"test": {"auc": 0.5, "macro_f1": 0.5}, "seconds": 1}
        runner.write_result(results, run, result)
        return result
    (folder / f"{run.seed}.begun").touch()
    threading.Event().wait()


runner.run_one = pretend
if __name__ == "__main__":
    from awatt.cli import main

    main()
elif (folder / "slow").exists():  # a worker that is not ready yet when the interrupt comes
    (folder / "starting").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
"""


def wait_for(folder: Path, pattern: str, count: int = 1) -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.glob(pattern))) < count:
        assert time.monotonic() < deadline, f"no {pattern}"
        time.sleep(0.02)


def start_endless(folder: Path) -> "subprocess.Popen[str]":
    script = folder / "endless.py"
    script.write_text(ENDLESS, "utf-8")
    chosen = ["--methods", "imp", "--settings", "5x5", "--seeds", "1", "2", "3", "4", "5", "6"]
    folders = ["--data", folder, "--out", folder / "results", "--work", folder / "work"]
    command = [sys.executable, script, "reproduce", "table-single", "--jobs", "2", *chosen, *folders]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def end_of(grid: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Exit code, stdout and stderr. Workers share the pipes, so this returns after the last of them has ended."""
    try:
        out, err = grid.communicate(timeout=300)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(grid.pid, signal.SIGKILL)
    return grid.returncode, out, err


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("send", [os.kill, getattr(os, "killpg", os.kill)])
def test_an_interrupt_ends_the_workers_and_keeps_finished_results(
    send: Callable[[int, int], None], tmp_path: Path
) -> None:
    grid = start_endless(tmp_path)
    wait_for(tmp_path, "*.begun", 2)
    wait_for(tmp_path, "results/**/*-seed1.json")
    send(grid.pid, signal.SIGINT)
    code, out, err = end_of(grid)
    assert (code, out) == (130, "")
    assert err.endswith("awatt: interrupted.\n")
    assert "Traceback" not in err
    assert {path.name for path in tmp_path.glob("*.begun")} == {"2.begun", "3.begun"}
    assert [path.name for path in (tmp_path / "results").rglob("*.json")] == ["imp-seed1.json"]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_an_interrupt_of_workers_that_are_not_ready_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "slow").touch()
    grid = start_endless(tmp_path)
    wait_for(tmp_path, "starting")
    os.killpg(grid.pid, signal.SIGINT)
    (tmp_path / "go").touch()
    code, _, err = end_of(grid)
    assert code == 130
    assert err.endswith("awatt: interrupted.\n")
    assert "Traceback" not in err


def test_a_run_that_fails_does_not_stop_the_others(datasets: Path, tmp_path: Path) -> None:
    impossible = Run("FewAsp(single)", 500, 2, "prototypical", 5)
    with pytest.raises(AwattError, match="500"):
        run_all(
            [impossible, RUN], datasets, tmp_path, tmp_path / "work", 2, overrides(datasets), lambda run, result: None
        )
    assert missing(tmp_path, [impossible, RUN]) == [impossible]
