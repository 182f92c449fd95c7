"""``awatt train`` and ``awatt evaluate``: output, exit codes, files, and which setting overrides which."""

import json
import re
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from awatt.cli import app
from awatt.data.corpus import load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.detector import models
from awatt.research.scoring import measure_system, score_episodes
from awatt.research.system import System

torch.set_num_threads(1)

Run = Callable[..., Any]
METHODS = "matching, prototypical, relation, graph, imp, proto-hatt, proto-awatt, relation-softmax, graph-shared"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled sample as every split, and word vectors for it."""
    folder = tmp_path_factory.mktemp("research") / "sample"
    folder.mkdir()
    content = (files("awatt.data") / "sample.jsonl").read_bytes()
    for split in ("train", "val", "test"):
        (folder / f"{split}.jsonl").write_bytes(content)
    words = sorted({word for text in load_corpus(folder, "train").sentences for word in text.lower().split()})
    rows = np.random.default_rng(0).normal(0, 1, (len(words), 5)).round(3)
    lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, rows, strict=True))
    (folder / "glove.txt").write_text("".join(lines), "utf-8")
    return folder


def training(data: Path, out: Path, *more: object) -> list[str]:
    """The arguments of a very short run."""
    settings = {"encoder.hidden": 6, "encoder.vectors": data / "glove.txt", "training.max_epochs": 1}
    settings |= {"training.episodes_per_epoch": 4, "training.validation_episodes": 6}
    overrides = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = ["train", "--data", data, "--out", out, "--device", "cpu", *overrides]
    return [*map(str, [*command, "--n-way", 3, "--n-shot", 2, "--n-query", 2, *more])]


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    app(training(data, out, "--quiet"), standalone_mode=False)
    return out


def described(out: Path) -> Any:
    return json.loads((out / "run.json").read_text("utf-8"))


# ---- train


def test_train_prints_the_folder_and_a_line_per_epoch(run: Run, data: Path, tmp_path: Path) -> None:
    code, out, err = run(*training(data, tmp_path / "run", "--set", "training.max_epochs=2"))
    assert (code, out) == (0, f"{tmp_path / 'run'}\n")
    lines = [line for line in err.splitlines() if " epoch " in line]
    assert len(lines) == 2
    pattern = r"model +epoch +1  loss \d\.\d{4}  val AUC \d\.\d{4}  F1 \d\.\d{4}  \d+ episodes/s  best"
    assert re.search(pattern, lines[0])
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_quiet_prints_nothing(run: Run, data: Path, tmp_path: Path) -> None:
    assert run(*training(data, tmp_path / "run", "--quiet")) == (0, f"{tmp_path / 'run'}\n", "")


def test_the_default_is_the_papers_method(data: Path, trained: Path) -> None:
    found = described(trained)
    assert (found["method"], found["encoder"], found["threshold"]) == ("proto-awatt", "glove-cnn", "static")
    assert found["seed"] == 5
    assert found["settings"]["model"] == {
        "e_m": 4,
        "form": "linear",
        "support_attention": True,
        "attention_matrix": True,
        "query_attention": True,
    }
    assert found["settings"]["encoder"]["window"] == 3
    assert found["episode"] == {"n_way": 3, "n_shot": 2, "n_query": 2, "none_rate": 0.0}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--method", "proto"], f"there is no method 'proto'. Choose one of: {METHODS}."),
        (["--encoder", "glove"], "there is no encoder 'glove'. Choose one of: glove-cnn, glove-lstm"),
        (
            ["--threshold", "0.3"],
            "there is no threshold '0.3'. Choose one of: static, policy, kernel-regression, mean-",
        ),
        (["--set", "model.em=3"], "there is no setting 'model.em'. Valid here: model.e_m, model.form, model.support_"),
        (["--set", "modle.e_m=3"], "there is no section 'modle' for --set. Valid: encoder, episode, model, threshold"),
        (["--set", "e_m=3"], "--set needs section.field=value, for example model.e_m=10; found 'e_m=3'."),
        (["--set", "model.e_m"], "--set needs section.field=value"),
        (["--set", "model.e_m=many"], "setting 'model.e_m' is 'many', needs int."),
        (["--set", "model.e_m=0"], "model.e_m is 0, needs at least 1."),
        (["--set", "training.learning_rate=yes"], "setting 'training.learning_rate' is 'yes', needs float."),
        (["--set", "training.patience=0"], "training.patience is 0, needs at least 1."),
        (["--set", "threshold.value=1.5"], "the static threshold is 1.5, needs a number from 0 to 1."),
        (["--n-way", "0"], "n_way is 0, needs at least 1."),
        (["--n-way", "18"], "the train split has 17 aspects, but 18-way needs 18."),
        (["--n-shot", "40"], "aspect 'food' has 21 sentences, but 40-shot with 2 queries needs 42."),
        (["--device", "nope"], "the device 'nope' cannot be used"),
        (["--method", "matching", "--threshold", "policy"], "the policy threshold needs distances"),
        (["--config", "/nowhere.toml"], "/nowhere.toml does not exist. Check the path after --config."),
        (["--set", "encoder.vectors=/nowhere.txt"], "/nowhere.txt: does not exist."),
    ],
)
def test_an_invalid_name_or_value_is_one_line_and_creates_nothing(
    run: Run, data: Path, tmp_path: Path, more: list[str], message: str
) -> None:
    code, out, err = run(*training(data, tmp_path / "run", "--quiet", *more))
    assert (code, out) == (2, "")
    assert err.startswith(f"awatt: {message}")
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_missing_data_is_an_error(run: Run, data: Path, tmp_path: Path) -> None:
    for folder, message in [(tmp_path / "no", "is not a folder"), (tmp_path, "has no train split")]:
        arguments = training(data, tmp_path / "run", "--quiet")
        arguments[arguments.index("--data") + 1] = str(folder)
        code, _, err = run(*arguments)
        assert code == 2
        assert message in err
        assert not (tmp_path / "run").exists()


def test_an_existing_folder_needs_resume(run: Run, data: Path, tmp_path: Path) -> None:
    arguments = training(data, tmp_path / "run", "--quiet")
    assert run(*arguments).code == 0
    code, _, err = run(*arguments)
    assert code == 2
    assert (
        err == f"awatt: {tmp_path / 'run'} already holds a run. Add --resume to continue it, or choose another --out.\n"
    )
    assert run(*arguments, "--resume") == (0, f"{tmp_path / 'run'}\n", "")
    code, _, err = run(*arguments, "--resume", "--seed", "6")
    assert code == 2
    assert "holds a run with other settings (different: seed)" in err


@pytest.mark.parametrize(
    ("finished", "kept"), [(0, "No epoch was finished yet."), (1, "The best epoch so far is in {out}.")]
)
def test_ctrl_c_reports_what_is_saved(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: int, kept: str
) -> None:
    def interrupt(self: object, value: object) -> None:
        raise KeyboardInterrupt

    name = "on_epoch" if finished else "on_step"
    monkeypatch.setattr(f"awatt.cli.progress.TrainingProgress.{name}", interrupt)
    code, out, err = run(*training(data, tmp_path / "run", "--quiet"))
    assert (code, out) == (130, "")
    assert err.startswith(f"awatt: stopped. {kept.format(out=tmp_path / 'run')} Continue with --resume.\n")
    monkeypatch.undo()
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    app(training(data, tmp_path / "run", "--quiet", "--resume"), standalone_mode=False)
    System.load(tmp_path / "run")


# ---- the TOML file

TOML = """
method = "prototypical"
seed = 9
threshold = "static"

[training]
patience = 2

[threshold_settings]
value = 0.25

[encoder_settings]
max_length = 30

[episode]
n_way = 4
n_shot = 1
"""


def test_options_override_the_file_and_set_overrides_both(run: Run, data: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "run.toml", tmp_path / "run"
    path.write_text(TOML)
    settings = ["--config", path, "--seed", "11", "--set", "episode.n_shot=3", "--set", "encoder.max_length=20"]
    assert run(*training(data, out, "--quiet", *settings)).code == 0
    found = described(out)
    assert found["method"] == "prototypical"  # the file overrides the default
    assert found["settings"]["threshold"] == {"value": 0.25}
    assert found["training"]["patience"] == 2
    assert found["seed"] == 11  # the option overrides the file
    assert found["episode"]["n_way"] == 3
    assert found["episode"]["n_shot"] == 3  # --set overrides the option and the file
    assert found["settings"]["encoder"]["max_length"] == 20  # --set overrides the file


def test_the_file_alone_is_enough(run: Run, data: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "run.toml", tmp_path / "run"
    schedule = "max_epochs = 1\nepisodes_per_epoch = 2\nvalidation_episodes = 2"
    encoder = f'hidden = 6\nvectors = "{data / "glove.txt"}"'
    path.write_text(TOML.replace("patience = 2", schedule).replace("max_length = 30", encoder))
    code, _, err = run("train", "--data", data, "--out", out, "--config", path, "--quiet")
    assert (code, err) == (0, "")
    assert described(out)["episode"] == {"n_way": 4, "n_shot": 1, "n_query": 5, "none_rate": 0.0}
    assert described(out)["n_way"] == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "metod = 'x'",
            "there is no setting 'metod'. Valid here: method, encoder, threshold, seed, [model], [encoder_",
        ),
        ("[modle]\ne_m = 3", "there is no setting 'modle'. Valid here: method,"),
        ("model = 3", "there is no setting 'model'. Valid here: method,"),
        ("seed = 'five'", "setting 'seed' is 'five', needs int."),
        ("seed = true", "setting 'seed' is True, needs int."),
        ("method = 3", "setting 'method' is 3, needs str."),
        ("method = ['proto-awatt']", "setting 'method' is ['proto-awatt'], needs str."),
        ("not toml", "not TOML: "),
    ],
)
def test_an_error_in_the_file_names_the_file(run: Run, data: Path, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(content)
    code, out, err = run(*training(data, tmp_path / "run", "--quiet", "--config", path))
    assert (code, out) == (2, "")
    assert err.startswith(f"awatt: {path}: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("method = 'x'", f"there is no method 'x'. Choose one of: {METHODS}."),
        ("[model]\nem = 3", "there is no setting 'model.em'. Valid here: model.e_m"),
        ("seed = -1", "the seed is -1, needs a whole number from 0"),
        ("[training]\npatience = 'x'", "setting 'training.patience' is 'x', needs int."),
    ],
)
def test_an_invalid_value_in_the_file_is_an_error(
    run: Run, data: Path, tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "run.toml"
    path.write_text(content)
    code, _, err = run(*training(data, tmp_path / "run", "--quiet", "--config", path))
    assert code == 2
    assert err.startswith(f"awatt: {message}")


# ---- evaluate


def evaluate(run: Run, trained: Path, data: Path, *more: object) -> Any:
    code, out, err = run("evaluate", trained, "--data", data, "--episodes", 20, "--json", *more)
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_evaluate_as_json_has_all_keys_and_the_right_numbers(run: Run, data: Path, trained: Path) -> None:
    found = evaluate(run, trained, data)
    wanted = {"auc", "macro_f1", "argmax_f1", "auc_ci95", "macro_f1_ci95", "episodes", "threshold", "seconds"}
    assert wanted <= found.keys()
    system = System.load(trained)
    scored = score_episodes(system, load_corpus(data, "test"), EpisodeShape(3, 2, 2), 20, 5)
    for name, value in measure_system(system, scored).items():
        assert found[name] == pytest.approx(value, abs=1e-9)
        assert 0 <= found[name] <= 1
    assert (found["episodes"], found["threshold"], found["split"], found["seed"]) == (20, "static", "test", 5)
    assert (found["n_way"], found["n_shot"], found["n_query"], found["none_rate"]) == (3, 2, 2, 0.0)
    assert found["seconds"] > 0


def test_evaluate_as_text_has_the_same_numbers(run: Run, data: Path, trained: Path) -> None:
    found = evaluate(run, trained, data)
    code, out, err = run("evaluate", trained, "--data", data, "--episodes", 20)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines == [
        [label, f"{found[name]:.4f}", "±", f"{found[f'{name}_ci95']:.4f}"]
        for label, name in (("auc", "auc"), ("macro-f1", "macro_f1"), ("argmax-f1", "argmax_f1"))
    ]
    assert err.startswith("20 episodes of test, 3-way 2-shot, seed 5, threshold static, ")


def test_evaluate_measures_off_topic_queries(run: Run, data: Path, trained: Path) -> None:
    options = ("--none-rate", 0.5, "--threshold", 0.3)
    found = evaluate(run, trained, data, *options)
    assert 0 < found["none_auroc"] < 1
    assert found["false_aspects_per_100"] > 0
    assert "none_auroc" not in evaluate(run, trained, data)
    _, out, _ = run("evaluate", trained, "--data", data, "--episodes", 20, *options)
    lines = [line.split() for line in out.splitlines()]
    assert lines[3:] == [
        [name.replace("_", "-"), f"{found[name]:.4f}", "±", f"{found[f'{name}_ci95']:.4f}"]
        for name in ("none_auroc", "false_aspects_per_100")
    ]


def test_evaluate_measures_the_calibration_of_acceptance(run: Run, data: Path, tmp_path: Path) -> None:
    assert run(*training(data, tmp_path / "run", "--quiet", "--threshold", "acceptance")).code == 0
    found = evaluate(run, tmp_path / "run", data)
    assert 0 < found["ece"] < 1
    _, out, _ = run("evaluate", tmp_path / "run", "--data", data, "--episodes", 20)
    assert out.splitlines()[3].split() == ["ece", f"{found['ece']:.4f}"]
    assert evaluate(run, tmp_path / "run", data, "--n-way", 1, "--none-rate", 0.5)["n_way"] == 1


def test_options_of_evaluate_change_the_episodes(run: Run, data: Path, trained: Path) -> None:
    plain = evaluate(run, trained, data)
    assert {**evaluate(run, trained, data), "seconds": 0} == {**plain, "seconds": 0}
    others = [
        ("--seed", 6),
        ("--n-way", 4),
        ("--n-shot", 1),
        ("--n-query", 3),
        ("--split", "val"),
        ("--none-rate", 0.3),
    ]
    for name, value in others:
        found = evaluate(run, trained, data, name, value)
        assert found["auc"] != plain["auc"]
        assert found[name.removeprefix("--").replace("-", "_")] == value
    for value in ("0.1", "mean-std", "kernel-regression", "radius"):
        found = evaluate(run, trained, data, "--threshold", value)
        assert found["auc"] == plain["auc"]
        assert found["macro_f1"] != plain["macro_f1"]
        assert found["threshold"] == value


def test_a_single_episode_has_no_interval_and_json_has_no_nan(run: Run, data: Path, trained: Path) -> None:
    found = evaluate(run, trained, data, "--episodes", 1)
    assert found["auc_ci95"] is None
    assert 0 <= found["auc"] <= 1
    code, out, _ = run("evaluate", trained, "--data", data, "--episodes", 1)
    assert code == 0
    assert "±" not in out
    assert out.startswith("auc ")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--threshold", "statik"], "there is no threshold 'statik'. Choose one of: static, policy,"),
        (["--threshold", "2"], "the threshold is 2, needs a number from 0 to 1, or the name of a threshold."),
        (["--threshold", "policy"], "the policy threshold is trained with its model. Train a run with --threshold pol"),
        (["--split", "dev"], "{data} has no dev split."),
        (["--n-way", "0"], "n_way is 0, needs at least 1."),
        (["--n-way", "18"], "the test split has 17 aspects, but 18-way needs 18."),
        (["--none-rate", "1"], "none_rate is 1.0, needs a number from 0 to below 1."),
    ],
)
def test_errors_of_evaluate_are_one_line(run: Run, data: Path, trained: Path, more: list[str], message: str) -> None:
    code, out, err = run("evaluate", trained, "--data", data, "--episodes", 5, *more)
    assert (code, out) == (2, "")
    assert err.startswith(f"awatt: {message.format(data=data)}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--threshold", "2"], "the threshold is '2', but this model needs a number from 0 to 1."),
        (["--threshold", "-0.1"], "the threshold is '-0.1', but this model needs a number from 0 to 1."),
        (["--threshold", "nan"], "the threshold is 'nan', but this model needs a number from 0 to 1."),
        (["--threshold", "static"], "the threshold is 'static', but this model needs a number from 0 to 1."),
        (
            ["--device", "gpu"],
            "the device is 'gpu', but the detector's own model runs on the CPU only. Leave out --device.",
        ),
    ],
)
def test_errors_of_evaluate_bundled_are_one_line(run: Run, data: Path, more: list[str], message: str) -> None:
    code, out, err = run("evaluate", "fast", "--data", data, "--episodes", 5, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_evaluate_bundled_accepts_a_threshold(run: Run, data: Path) -> None:
    everything = evaluate(run, Path("fast"), data, "--threshold", "0", "--device", "cpu")
    assert everything["threshold"] == "0.0"
    assert evaluate(run, Path("fast"), data)["macro_f1"] > everything["macro_f1"]


def test_evaluate_of_a_missing_folder_is_an_error(run: Run, data: Path, tmp_path: Path) -> None:
    code, _, err = run("evaluate", tmp_path / "no", "--data", data)
    assert code == 2
    assert err.startswith(f"awatt: {tmp_path / 'no' / 'config.json'} does not exist. A model is a folder with")


# ---- without torch


@pytest.mark.parametrize("command", ["train", "evaluate", "detect", "explain"])
def test_without_torch_the_error_names_the_pip_command(
    run: Run, data: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    examples = tmp_path / "examples.json"
    examples.write_text('{"food": ["The soup was cold."]}')
    arguments = {
        "train": training(data, tmp_path / "run"),
        "evaluate": ["evaluate", trained, "--data", data],
        "detect": ["detect", data / "test.jsonl", "--model", trained, "--examples", examples],
        "explain": ["explain", "Cold soup.", "--model", trained, "--examples", examples],
    }[command]
    models._load.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    line = "this needs the package 'torch', which is not installed. Run: pip install 'awatt[train]'"
    assert err == f"awatt: {line}\n"
