"""What the paper's tables need, running it, and the tables themselves."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from awatt.errors import AwattError
from awatt.reproduce.published import ABLATIONS, MAIN
from awatt.reproduce.runner import missing, result_path, run_all, run_one
from awatt.reproduce.suites import ITEMS, VARIANTS, Choice, Run
from awatt.reproduce.tables import markdown, rows


def test_the_main_tables_are_seven_methods_in_four_settings() -> None:
    runs = [
        run for item in ("table-single", "table-multi", "table-full") for run in ITEMS[item].runs(Choice(seeds=(5,)))
    ]
    assert len(runs) == len({run.name for run in runs}) == 84
    assert {run.threshold for run in runs if run.method == "proto-awatt"} == {"policy"}
    assert {run.threshold for run in runs if run.method != "proto-awatt"} == {"static"}


def test_every_number_of_the_paper_is_quoted() -> None:
    assert {len(settings) for methods in MAIN.values() for settings in methods.values()} == {4}
    assert MAIN["FewAsp(single)"]["proto-awatt"][10, 5] == (0.9701, 80.28)
    assert MAIN["FewAsp"]["imp"][5, 10] == (0.9230, 74.13)
    assert ABLATIONS["w/o QA"]["FewAsp(multi)"] == (0.8920, 51.51)
    assert ABLATIONS.keys() == VARIANTS.keys()


def test_the_full_variant_of_the_ablation_is_the_main_tables_run() -> None:
    main = ITEMS["table-full"].runs(Choice(seeds=(5,), methods=("proto-awatt",), settings=((10, 5),)))
    ablation = ITEMS["table-ablation"].runs(Choice(seeds=(5,), methods=("full",)))
    assert main == ablation


def test_an_unknown_method_or_setting_lists_the_valid_ones() -> None:
    with pytest.raises(AwattError, match="--methods has 'protonet', this item has: relation, matching"):
        ITEMS["table-single"].runs(Choice(methods=("protonet",)))
    with pytest.raises(AwattError, match="--settings has"):
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
        "training.episodes_an_epoch=4",
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


def test_what_is_done_is_skipped_and_a_stopped_run_ends_with_the_same_result(datasets: Path, tmp_path: Path) -> None:
    whole, stopped, work = tmp_path / "whole", tmp_path / "stopped", tmp_path / "work"
    run_one(RUN, datasets, whole, work, overrides(datasets))

    from awatt import training

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


def test_two_jobs_give_what_one_gives(datasets: Path, tmp_path: Path) -> None:
    runs = [RUN, Run("FewAsp(single)", 5, 2, "prototypical", 10)]
    for jobs in (1, 2):
        folder = tmp_path / str(jobs)
        run_all(runs, datasets, folder, tmp_path / "work", jobs, overrides(datasets), lambda run, result: None)
    for run in runs:
        assert without_seconds(result_path(tmp_path / "1", run)) == without_seconds(result_path(tmp_path / "2", run))


def write_result(results: Path, run: Run, auc: float, f1: float, source: str) -> None:
    path = result_path(results, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    described = {"seed": run.seed, "provenance": {"splits": {"train": {"source": source}}}}
    path.write_text(json.dumps({"test": {"auc": auc, "macro_f1": f1}, "run": described}), "utf-8")


def test_the_table_has_means_intervals_the_quoted_numbers_and_what_is_rebuilt(tmp_path: Path) -> None:
    runs = [Run("FewAsp", 5, 5, "imp", seed) for seed in (5, 10)]
    for run, f1 in zip(runs, (0.70, 0.72), strict=True):
        write_result(tmp_path, run, 0.9, f1, "rebuilt")
    # Student's t with one degree of freedom: 12.706 * sqrt(2) / sqrt(2) = 12.71
    expected = ("FewAsp 5-way 5-shot (rebuilt train)", "imp", "0.9000 ± 0.0000", "*0.8995*", "71.00 ± 12.71", "*68.96*")
    assert rows(runs, tmp_path) == [(*expected, "+2.04", "5 10")]
    assert markdown(rows(runs, tmp_path)).count("\n") == 3


def test_a_variant_is_quoted_from_the_ablations(tmp_path: Path) -> None:
    run = Run("FewAsp(single)", 10, 5, "proto-awatt", 5, variant="w/o QA")
    write_result(tmp_path, run, 0.95, 0.69, "official")
    assert rows([run], tmp_path)[0][1:] == (
        "proto-awatt w/o QA",
        "0.9500",
        "*0.9541*",
        "69.00",
        "*69.61*",
        "-0.61",
        "5",
    )
