"""``awatt reproduce table-encoders --encoder bert=FOLDER``: Table 6 with weights that the user brings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awatt.reproduce import runner
from awatt.reproduce.results import result_path
from awatt.reproduce.suites import Run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def datasets(tmp_path: Path, write_json: Callable[[Path, object], Path]) -> Path:
    """FewAsp with ten aspects, each one letter that the tiny tokeniser knows."""
    rows = {name: [[["the", *name * number], [name]] for number in range(1, 12)] for name in "abcdefghij"}
    for split in ("train", "val", "test"):
        write_json(tmp_path / "data" / "FewAsp" / f"{split}.json", rows)
    return tmp_path / "data"


def test_bert_and_distilbert_are_run_by_command_in_both_forms(
    run: Callable[..., Any],
    datasets: Path,
    tmp_path: Path,
    transformer_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "TEST_EPISODES", 3)
    real, made = runner.run_one, ROOT / "results" / "FewAsp" / "10x5" / "proto-hatt-seed5.json"

    def only_transformers(
        wanted: Run, data: Path, results: Path, work: Path, overrides: tuple[str, ...]
    ) -> dict[str, Any]:
        """The other encoders get the numbers of a committed result."""
        if "bert" in wanted.encoder:
            short = ("training.episodes_per_epoch=2", "training.validation_episodes=2")
            return real(wanted, data, results, work, (*overrides, *short))
        path = result_path(results, wanted)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made.read_text("utf-8"), "utf-8")
        return dict(json.loads(made.read_text("utf-8")))

    monkeypatch.setattr(runner, "run_one", only_transformers)
    folders = [
        f"--encoder={kind}={transformer_folder(tmp_path / f'{kind} of mine', kind, positions=128)}"
        for kind in ("bert", "distilbert")
    ]
    common = ("--data", datasets, "--out", tmp_path / "out", "--work", tmp_path / "work", "--seeds", "5", "--quick")
    code, out, err = run("reproduce", "table-encoders", *folders, *common)
    assert code == 0, err
    found = {line.split("|")[2].strip(): line.split("|") for line in out.splitlines() if line.startswith("| FewAsp")}
    for method in ("proto-hatt", "proto-awatt w/o DT"):
        for name, f1 in (("BERT", {"proto-hatt": "57.33"}), ("DistilBERT", {"proto-hatt": "59.57"})):
            for form in ("", ", rescaled"):
                row = found[f"{method} ({name}{form})"]
                assert row[7].strip() == f"*{f1.get(method, {'BERT': '70.09', 'DistilBERT': '70.23'}[name])}*"
    assert "quoted only" not in out
    results = tmp_path / "out" / "quick" / "FewAsp" / "10x5"
    direct, rescaled = (
        json.loads((results / f"proto-hatt+{name}-seed5.json").read_text("utf-8"))["run"]
        for name in ("bert-direct", "bert")
    )
    assert direct["encoder"] == rescaled["encoder"] == "transformer"
    assert direct["settings"]["encoder"] == rescaled["settings"]["encoder"] | {"rescale": False}
    assert rescaled["settings"]["encoder"]["name"] == str(tmp_path / "bert of mine")
    # Without the weights the rows stay, from their results.
    code, out, _ = run("reproduce", "tables", "--from", tmp_path / "out" / "quick")
    assert code == 0
    assert "BERT, rescaled" in (tmp_path / "out" / "quick" / "table-encoders.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("items", "given", "said"),
    [
        (["table-encoders"], "roberta=.", "--encoder needs bert=FOLDER or distilbert=FOLDER, found 'roberta=.'."),
        (["table-encoders"], "bert", "--encoder needs bert=FOLDER or distilbert=FOLDER, found 'bert'."),
        (["table-encoders"], "bert=/no/such", "--encoder bert: '/no/such' is not a folder."),
        (["table-single"], "bert=.", "--encoder is for table-encoders."),
    ],
)
def test_a_wrong_encoder_is_one_line_that_helps(
    run: Callable[..., Any], tmp_path: Path, items: list[str], given: str, said: str
) -> None:
    code, _, err = run("reproduce", *items, "--encoder", given, "--out", tmp_path)
    assert code == 2
    assert said in err
