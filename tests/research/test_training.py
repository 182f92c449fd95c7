"""Training learns, stops early and keeps the best epoch; killed anywhere and resumed, it ends with the same bytes."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import awatt
from awatt.data.corpus import load_corpus
from awatt.data.sampler import EpisodeSampler, EpisodeShape, feasible_shapes
from awatt.errors import AwattError
from awatt.files import FileLock
from awatt.research.runs import RunConfig, RunFolder, TrainingConfig
from awatt.research.scoring import measure_system, replace_threshold, score_episodes
from awatt.research.system import System, SystemConfig
from awatt.research.training import pick_device, train
from awatt.thresholds.kinds import THRESHOLDS

torch.set_num_threads(1)

SHAPE = EpisodeShape(n_way=3, n_shot=2, n_query=2)
SHORT = TrainingConfig(
    learning_rate=1e-2,
    joint_learning_rate=1e-2,
    episodes_per_epoch=6,
    validation_episodes=12,
    patience=2,
    max_epochs=2,
    episodes_per_step=4,
)
MODEL_FILES = {"config.json", "model.safetensors", "tokenizer.json", "README.md"}


@pytest.fixture(scope="module")
def data(toy_data: Path) -> Path:
    return toy_data


def configure(
    data: Path, threshold: str = "static", schedule: TrainingConfig = SHORT, seed: int = 5, method: str = "proto-awatt"
) -> RunConfig:
    names = {"method": method, "encoder": "glove-cnn", "threshold": threshold, "n_way": SHAPE.n_way}
    settings: dict[str, dict[str, Any]] = {"encoder": {"hidden": 8, "vectors": str(data / "glove.txt")}}
    if method == "proto-awatt":
        # Finds a class's own word, which is all that the toy data has; ten repeats learn it in a few epochs.
        settings["model"] = {"form": "linear", "e_m": 10}
    return RunConfig(SystemConfig.from_mapping(names | {"settings": settings}), SHAPE, schedule, seed)


def log_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]


def outcome(run: Path) -> dict[str, Any]:
    """Everything that a run leaves, except timings."""
    found: dict[str, Any] = {path.name: path.read_bytes() for path in run.iterdir()}
    found["log.jsonl"] = [
        {name: value for name, value in entry.items() if not name.endswith("seconds")} for entry in log_of(run)
    ]
    return found


@pytest.fixture(scope="module")
def reference(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """The outcome of an uninterrupted run, computed once per threshold."""
    known: dict[str, dict[str, Any]] = {}

    def get(threshold: str) -> dict[str, Any]:
        if threshold not in known:
            run = tmp_path_factory.mktemp("reference") / "run"
            train(configure(data, threshold), data, run, device="cpu")
            known[threshold] = outcome(run)
        return known[threshold]

    return get


class Killed(BaseException):
    """Acts like a kill: ``except Exception`` does not catch it."""


# ---- what a run does and leaves


def test_it_learns(data: Path, tmp_path: Path) -> None:
    schedule = replace(SHORT, episodes_per_epoch=200, validation_episodes=60, max_epochs=4)
    config = configure(data, schedule=schedule)
    torch.manual_seed(config.seed)
    fresh = System.create(config.system, load_corpus(data, "test").sentences)
    trained = train(config, data, tmp_path / "run", device="cpu")
    before, after = (
        measure_system(system, score_episodes(system, load_corpus(data, "test"), SHAPE, 100, 7))
        for system in (fresh, trained)
    )
    # On aspects that were not in training.
    assert before["auc"] < 0.8
    assert after["auc"] > 0.9
    assert after["argmax_f1"] > before["argmax_f1"] + 0.15
    losses = [entry["loss"] for entry in log_of(tmp_path / "run")]
    assert losses[-1] < losses[0] / 2


def test_a_run_leaves_its_model_its_log_and_its_settings(data: Path, tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = []
    config = configure(data, "policy")
    train(config, data, tmp_path / "run", device="cpu", on_epoch=entries.append)
    assert {path.name for path in (tmp_path / "run").iterdir()} == MODEL_FILES | {"run.json", "log.jsonl"}
    log = log_of(tmp_path / "run")
    assert log == entries
    assert [(entry["stage"], entry["epoch"]) for entry in log] == [
        ("model", 1),
        ("model", 2),
        ("threshold", 3),
        ("threshold", 4),
    ]
    for entry in log:
        assert list(entry) == [
            *("stage", "epoch", "loss", "val_auc", "val_macro_f1", "val_argmax_f1", "best"),
            *("train_seconds", "validation_seconds"),
        ]
        assert all(math.isfinite(value) for name, value in entry.items() if name != "stage")
    described = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert described["awatt"] == awatt.__version__
    assert described["seed"] == 5
    assert described["data"] == "toy"
    assert described["provenance"] == {"dataset": "toy", "splits": {"train": {"source": "made"}}}
    assert described["episode"] == {"n_way": 3, "n_shot": 2, "n_query": 2, "none_rate": 0.0}
    assert described["training"]["learning_rate"] == 1e-2
    assert described["settings"]["model"]["query_attention"] is True  # a default, written out
    assert described["settings"]["encoder"]["window"] == 3
    card = (tmp_path / "run" / "README.md").read_text("utf-8")
    for words in ("proto-awatt", "toy (train: made)", "3-way 2-shot", "seed 5", awatt.__version__):
        assert words in card


def test_every_step_of_an_epoch_is_reported(data: Path, tmp_path: Path) -> None:
    steps: list[Any] = []
    train(configure(data), data, tmp_path / "run", device="cpu", on_step=steps.append)
    # Six episodes in steps of four: the last step has two.
    assert [(step.epoch, step.done, step.total) for step in steps] == [(1, 4, 6), (1, 6, 6), (2, 4, 6), (2, 6, 6)]
    first = log_of(tmp_path / "run")[0]
    assert first["loss"] == pytest.approx((steps[0].loss * 4 + steps[1].loss * 2) / 6)


def test_every_epoch_of_every_stage_has_its_own_episodes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, int]] = []
    batch = EpisodeSampler.batch

    def watch(self: EpisodeSampler, first: int, count: int) -> Any:
        if self.corpus.split == "train":
            drawn.append((first, count))
        return batch(self, first, count)

    monkeypatch.setattr(EpisodeSampler, "batch", watch)
    train(configure(data, "policy"), data, tmp_path / "run", device="cpu")
    assert drawn[1:] == [(0, 6), (6, 6), (12, 6), (18, 6)]  # after one for the feasibility check


@pytest.mark.parametrize("method", ["matching", "prototypical"])
@pytest.mark.parametrize("threshold", ["kernel-regression", "mean-std", "radius"])
def test_other_methods_and_thresholds_train(data: Path, tmp_path: Path, method: str, threshold: str) -> None:
    trained = train(configure(data, threshold, method=method), data, tmp_path / "run", device="cpu")
    assert trained.config.method == method
    fresh = THRESHOLDS[threshold](trained.config.threshold_settings, 3, 8)
    settings = [trained.threshold.state_dict(), fresh.state_dict()]
    assert len({tuple(value.item() for value in state.values()) for state in settings}) == 2  # it was calibrated


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[float]], None]:
    """Make validation return these numbers, one per epoch."""

    def script(numbers: list[float]) -> None:
        values: Iterator[float] = iter(numbers)

        def found(system: System, batches: object) -> dict[str, float]:
            value = next(values)
            return {"auc": value, "macro_f1": value, "argmax_f1": 0.0}

        monkeypatch.setattr("awatt.research.training.measure_system", found)

    return script


def weights_after_each_epoch(config: RunConfig, data: Path, run: Path) -> list[bytes]:
    found: list[bytes] = []
    train(
        config,
        data,
        run,
        device="cpu",
        on_epoch=lambda entry: found.append((run / "model.safetensors").read_bytes()),
    )
    return found


def test_it_stops_after_patience_and_keeps_the_best_epoch(
    data: Path, tmp_path: Path, scripted: Callable[[list[float]], None]
) -> None:
    scripted([0.5, 0.7, 0.6, 0.7, 0.65, 0.9])  # an equal number is not better
    config = configure(data, schedule=replace(SHORT, patience=3, max_epochs=50))
    saved = weights_after_each_epoch(config, data, tmp_path / "run")
    assert [entry["best"] for entry in log_of(tmp_path / "run")] == [True, True, False, False, False]
    assert saved[0] != saved[1]
    assert saved[1:] == [saved[1]] * 4
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == saved[1]
    assert "| best epoch | 2 (model stage) |" in (tmp_path / "run" / "README.md").read_text("utf-8")


def test_it_stops_at_the_last_epoch(data: Path, tmp_path: Path, scripted: Callable[[list[float]], None]) -> None:
    scripted([0.1, 0.2, 0.3, 0.4])
    train(configure(data, schedule=replace(SHORT, max_epochs=3)), data, tmp_path / "run", device="cpu")
    assert [entry["best"] for entry in log_of(tmp_path / "run")] == [True] * 3


def state_of(content: bytes, part: str) -> dict[str, torch.Tensor]:
    return {name: value for name, value in safetensors.torch.load(content).items() if name.startswith(part)}


def distance(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> float:
    assert left.keys() == right.keys()
    assert left
    return max(float((left[name] - right[name]).abs().max()) for name in left)


def test_stage_two_starts_from_the_best_epoch_with_its_own_learning_rate(
    data: Path, tmp_path: Path, scripted: Callable[[list[float]], None]
) -> None:
    # Stage one is best in its first epoch; the numbers of stage two are compared only with each other.
    scripted([0.9, 0.1, 0.1, 0.5, 0.6, 0.1, 0.1])
    schedule = replace(SHORT, max_epochs=50, joint_learning_rate=1e-9)
    saved = weights_after_each_epoch(configure(data, "policy", schedule), data, tmp_path / "run")
    log = log_of(tmp_path / "run")
    assert [entry["stage"] for entry in log] == ["model"] * 3 + ["threshold"] * 4
    assert [entry["best"] for entry in log] == [True, False, False, True, True, False, False]
    assert saved[0] == saved[1] == saved[2]
    for part in ("encoder.", "model.", "threshold."):
        moved = distance(state_of(saved[0], part), state_of(saved[-1], part))
        assert 0 < moved < 1e-6, part


def test_word_embeddings_have_their_own_learning_rate(data: Path, tmp_path: Path) -> None:
    schedule = replace(SHORT, episodes_per_epoch=4, max_epochs=1, learning_rate=1e-2, table_rate=0.25)
    config = configure(data, schedule=schedule)
    torch.manual_seed(config.seed)
    fresh = System.create(config.system, texts_of(data)).state_dict()
    (saved,) = weights_after_each_epoch(config, data, tmp_path / "run")
    # Adam's first step moves every number by the learning rate.
    for part, rate in (("encoder.table.", 0.25e-2), ("encoder.convolution.", 1e-2), ("model.", 1e-2)):
        before = {name: value for name, value in fresh.items() if name.startswith(part)}
        assert distance(state_of(saved, part), before) == pytest.approx(rate, rel=0.01), part


def texts_of(data: Path) -> list[str]:
    return [text for split in ("train", "val", "test") for text in load_corpus(data, split).sentences]


def test_stage_one_does_not_train_the_policy_and_stage_two_trains_both(data: Path, tmp_path: Path) -> None:
    config = configure(data, "policy")
    torch.manual_seed(config.seed)
    fresh = System.create(config.system, texts_of(data)).state_dict()
    saved = weights_after_each_epoch(config, data, tmp_path / "run")
    policy = {name: value for name, value in fresh.items() if name.startswith("threshold.")}
    assert distance(state_of(saved[1], "threshold."), policy) == 0
    for part in ("encoder.", "model.", "threshold."):
        assert distance(state_of(saved[1], part), state_of(saved[2], part)) > 1e-3


def test_acceptance_is_trained_alone_at_the_full_learning_rate(data: Path, tmp_path: Path) -> None:
    saved = weights_after_each_epoch(configure(data, "acceptance"), data, tmp_path / "run")
    for part in ("encoder.", "model."):
        assert distance(state_of(saved[1], part), state_of(saved[2], part)) == 0
    # Two steps of Adam move a number by up to twice the learning rate.
    moved = distance(state_of(saved[1], "threshold.network."), state_of(saved[2], "threshold.network."))
    assert moved > SHORT.learning_rate


def test_acceptance_is_trained_on_all_episode_shapes_in_turn(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[EpisodeShape, int, int]] = []
    batch = EpisodeSampler.batch

    def watch(self: EpisodeSampler, first: int, count: int) -> Any:
        if self.corpus.split == "train":
            drawn.append((self.shape, first, count))
        return batch(self, first, count)

    monkeypatch.setattr(EpisodeSampler, "batch", watch)
    config = configure(data, "acceptance")
    train(config, data, tmp_path / "run", device="cpu")
    corpus = load_corpus(data, "train")
    wanted = System.create(config.system, []).threshold.shapes(SHAPE)
    shapes = [SHAPE, *(shape for shape in feasible_shapes(corpus, wanted) if shape != SHAPE)]
    assert {shape.n_way for shape in shapes} >= {1, 2, 3, 5}
    assert max(shape.n_way for shape in wanted) > len(corpus.aspects)  # some are left out
    assert {shape.none_rate for shape in shapes} == {0.0, 0.3, 0.5}
    # After two for the feasibility check: two epochs of the run's own shape, then two steps per epoch, with the next
    # shape each.
    assert [entry[1:] for entry in drawn[2:]] == [(0, 6), (6, 6), (12, 4), (16, 2), (18, 4), (22, 2)]
    assert [entry[0] for entry in drawn[2:]] == [SHAPE, SHAPE, *(shapes[step % len(shapes)] for step in (4, 5, 6, 7))]


def test_acceptance_is_better_than_static_on_off_topic_sentences(data: Path, tmp_path: Path) -> None:
    schedule = replace(SHORT, episodes_per_epoch=200, validation_episodes=60, max_epochs=4)
    trained = train(configure(data, "acceptance", schedule), data, tmp_path / "run", device="cpu")
    shape = replace(SHAPE, none_rate=0.5)
    found = {}
    for threshold in ("acceptance", "static"):
        replace_threshold(trained, threshold, data, shape, 5)
        batches = score_episodes(trained, load_corpus(data, "test"), shape, 100, 7)
        found[threshold] = measure_system(trained, batches)
    new, old = found["acceptance"], found["static"]
    assert new["macro_f1"] > old["macro_f1"] + 0.1
    assert new["none_auroc"] > old["none_auroc"] + 0.1
    assert new["false_aspects_per_100"] < old["false_aspects_per_100"] / 2


# ---- randomness


@pytest.mark.parametrize("threshold", ["static", "policy", "acceptance"])
def test_the_same_seed_gives_the_same_run_and_another_seed_a_different_one(
    data: Path, tmp_path: Path, reference: Callable[[str], dict[str, Any]], threshold: str
) -> None:
    torch.manual_seed(12345)  # earlier random state does not matter
    np.random.seed(1)  # noqa: NPY002
    train(configure(data, threshold), data, tmp_path / "same", device="cpu")
    assert outcome(tmp_path / "same") == reference(threshold)
    train(configure(data, threshold, seed=6), data, tmp_path / "other", device="cpu")
    other = outcome(tmp_path / "other")
    assert other["model.safetensors"] != reference(threshold)["model.safetensors"]
    pairs = zip(other["log.jsonl"], reference(threshold)["log.jsonl"], strict=False)
    assert all(one["loss"] != two["loss"] for one, two in pairs)


def test_a_large_seed_overflows_in_torch(data: Path, tmp_path: Path) -> None:
    train(configure(data, seed=2**64 - 1, schedule=replace(SHORT, max_epochs=1)), data, tmp_path / "run", device="cpu")
    for seed in (2**64, -1):
        with pytest.raises(AwattError, match=rf"the seed is {seed}, needs a whole number from 0 to 2\*\*64 - 1"):
            configure(data, seed=seed)


# ---- killed and resumed


@pytest.mark.parametrize("threshold", ["static", "policy", "acceptance"])
def test_killed_at_any_write_and_resumed_it_ends_with_the_same_bytes(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reference: Callable[[str], dict[str, Any]],
    threshold: str,
) -> None:
    config, expected = configure(data, threshold), reference(threshold)
    left = 0  # writes until the kill; afterwards nothing is written or cleaned up

    def mortal(really: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any) -> None:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            really(*arguments)

        return write

    really_unlink = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.suffix not in (".part", ".lock"):
            mortal(really_unlink)(path)
        elif left:
            really_unlink(path, missing_ok)

    monkeypatch.setattr(os, "replace", mortal(os.replace))
    monkeypatch.setattr(RunFolder, "append", mortal(RunFolder.append))
    monkeypatch.setattr(Path, "unlink", unlink)
    for kill in range(1000):
        run, left = tmp_path / str(kill), kill
        try:
            train(config, data, run, device="cpu")
        except Killed:
            left = 1000
            train(config, data, run, resume=True, device="cpu")
            assert outcome(run) == expected, f"killed at write {kill}"
        else:
            break
    # run.json, the first checkpoint, then per epoch a line, a checkpoint and often a model of four files.
    assert kill >= {"static": 11, "policy": 18, "acceptance": 18}[threshold]


@pytest.mark.parametrize(
    ("threshold", "epoch", "done"),
    [
        ("static", 1, 4),
        ("static", 1, 6),
        ("static", 2, 4),
        ("policy", 2, 6),
        ("policy", 3, 4),
        ("policy", 4, 4),
        ("acceptance", 3, 4),
        ("acceptance", 4, 6),
    ],
)
def test_killed_within_an_epoch_and_resumed_it_ends_with_the_same_bytes(
    data: Path, tmp_path: Path, reference: Callable[[str], dict[str, Any]], threshold: str, epoch: int, done: int
) -> None:
    config, run = configure(data, threshold), tmp_path / "run"

    def die(step: Any) -> None:
        if (step.epoch, step.done) == (epoch, done):
            raise Killed

    for resume in (False, True):  # killed twice at the same place
        with pytest.raises(Killed):
            train(config, data, run, resume, "cpu", on_step=die)
        assert (run / "checkpoint.safetensors").exists()
    train(config, data, run, resume=True, device="cpu")
    assert outcome(run) == reference(threshold)


@pytest.mark.parametrize("threshold", ["static", "policy", "kernel-regression", "mean-std", "radius", "acceptance"])
def test_killed_after_every_epoch_and_resumed_it_ends_with_the_same_bytes(
    data: Path, tmp_path: Path, reference: Callable[[str], dict[str, Any]], threshold: str
) -> None:
    config, run = configure(data, threshold), tmp_path / "run"
    entries: list[dict[str, Any]] = []

    def die(entry: dict[str, Any]) -> None:
        entries.append(entry)
        raise Killed

    n_epochs = len(reference(threshold)["log.jsonl"])
    for number in range(n_epochs):
        with pytest.raises(Killed):
            train(config, data, run, number > 0, "cpu", on_epoch=die)
    assert [entry["epoch"] for entry in entries] == list(range(1, n_epochs + 1))
    train(config, data, run, resume=True, device="cpu")
    assert outcome(run) == reference(threshold)


@pytest.mark.parametrize("threshold", ["static", "policy"])
def test_a_finished_run_is_not_changed_by_resume(
    data: Path, tmp_path: Path, reference: Callable[[str], dict[str, Any]], threshold: str
) -> None:
    run = tmp_path / "run"
    train(configure(data, threshold), data, run, device="cpu")
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.iterdir()}
    entries: list[dict[str, Any]] = []
    again = train(configure(data, threshold), data, run, resume=True, device="cpu", on_epoch=entries.append)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.iterdir()} == before
    assert entries == []
    assert again.config == configure(data, threshold).system


def test_a_run_with_other_settings_is_not_resumed(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(configure(data), data, run, device="cpu")
    with pytest.raises(AwattError, match=r"already holds a run\. Add --resume"):
        train(configure(data), data, run, device="cpu")
    with pytest.raises(AwattError, match=r"other settings \(different: seed\)"):
        train(configure(data, seed=6), data, run, resume=True, device="cpu")
    with pytest.raises(AwattError, match=r"other settings \(different: training\)"):
        train(configure(data, schedule=replace(SHORT, patience=9)), data, run, resume=True, device="cpu")


KILL_ITSELF = """
import os, signal
from awatt.cli import main
from awatt.cli.progress import TrainingProgress

def on_step(self, step):
    if (step.stage, step.epoch) == ("threshold", 4):
        os.kill(os.getpid(), signal.SIGKILL)

TrainingProgress.on_step = on_step
main()
"""


def test_kill_9_of_the_command_and_resume_end_with_the_same_bytes(
    data: Path, tmp_path: Path, script: Path, reference: Callable[[str], dict[str, Any]]
) -> None:
    run = tmp_path / "run"
    settings = {"encoder.hidden": 8, "encoder.vectors": data / "glove.txt", "model.form": "linear", "model.e_m": 10}
    settings |= {f"training.{field.name}": getattr(SHORT, field.name) for field in fields(SHORT)}
    arguments = ["train", "--data", data, "--out", run, "--threshold", "policy", "--quiet", "--device", "cpu"]
    arguments += ["--n-way", "3", "--n-shot", "2", "--n-query", "2"]
    arguments += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]

    def call(*command: object) -> tuple[int, str, str]:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout, done.stderr

    assert call(sys.executable, "-c", KILL_ITSELF, *arguments) == (-signal.SIGKILL, "", "")
    assert (run / "checkpoint.safetensors").exists()
    assert len(log_of(run)) == 3
    assert call(script, *arguments, "--resume") == (0, f"{run}\n", "")
    assert outcome(run) == reference("policy")


# ---- interrupted, diverged, refused


@pytest.mark.parametrize("epoch", [2, 3])
def test_ctrl_c_leaves_the_best_model_so_far(data: Path, tmp_path: Path, epoch: int) -> None:
    run = tmp_path / "run"

    def interrupt(step: Any) -> None:
        if step.epoch == epoch:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(configure(data, "policy"), data, run, device="cpu", on_step=interrupt)
    system = System.load(run)
    found = measure_system(
        system, score_episodes(system, load_corpus(data, "val"), SHAPE, SHORT.validation_episodes, 5)
    )
    best = max(entry["val_auc"] for entry in log_of(run))
    assert len(log_of(run)) == epoch - 1
    assert found["auc"] == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(("bad_step", "kept"), [(0, "No epoch was finished yet."), (3, "The best epoch so far is in")])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad_step: int, kept: str, value: float
) -> None:
    import awatt.research.training as training

    squared_error, calls = training.squared_error, iter(range(100))
    monkeypatch.setattr(
        training, "squared_error", lambda scored: squared_error(scored) * (value if next(calls) == bad_step else 1)
    )
    with pytest.raises(AwattError) as caught:
        train(configure(data), data, tmp_path / "run", device="cpu")
    message = str(caught.value)
    place = {0: "in epoch 1 after 0 episodes", 3: "in epoch 2 after 4 episodes"}[bad_step]
    assert message.startswith(f"the loss is {value} {place}. {kept}")
    assert "Lower training.learning_rate" in message
    if bad_step:
        assert all(torch.isfinite(value).all() for value in System.load(tmp_path / "run").state_dict().values())


def faulty(data: Path, folder: Path, val: str | None) -> Path:
    folder.mkdir()
    (folder / "train.jsonl").write_bytes((data / "train.jsonl").read_bytes())
    if val is not None:
        (folder / "val.jsonl").write_text(val)
    return folder


ONE_ASPECT = "".join(f'{{"text": "noise{number}", "aspects": ["a"]}}\n' for number in range(9))


@pytest.mark.parametrize(
    ("change", "val", "message"),
    [
        ({}, None, "has no val split"),
        ({}, ONE_ASPECT, "the val split has 1 aspect, but 3-way needs 3"),
        ({}, '{"text": "x"}\n', "aspects"),
        ({"method": "matching", "threshold": "policy"}, "", "needs distances, which this method does not compute"),
    ],
)
def test_an_infeasible_run_left_a_folder_that_blocked_the_next_attempt(
    data: Path, tmp_path: Path, change: dict[str, str], val: str | None, message: str
) -> None:
    folder = data if val == "" else faulty(data, tmp_path / "faulty", val)
    with pytest.raises(AwattError, match=message):
        train(configure(data, **change), folder, tmp_path / "run", device="cpu")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_training_with_one_aspect_is_an_error(data: Path, tmp_path: Path) -> None:
    config = replace(configure(data), shape=EpisodeShape(1, 2, 2))
    with pytest.raises(AwattError, match="n_way is 1, but training needs at least 2 aspects"):
        train(config, data, tmp_path / "run", device="cpu")


def test_a_broken_checkpoint_is_an_error(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"

    def die(entry: dict[str, Any]) -> None:
        raise Killed

    with pytest.raises(Killed):
        train(configure(data), data, run, device="cpu", on_epoch=die)
    RunFolder(run).checkpoint.write_bytes(b"half")
    with pytest.raises(AwattError, match=r"checkpoint\.safetensors: cannot be read .* Delete the folder to start"):
        train(configure(data), data, run, resume=True, device="cpu")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0.0),
        ("learning_rate", math.nan),
        ("joint_learning_rate", -1e-3),
        ("table_rate", 0.0),
        ("episodes_per_epoch", 0),
        ("validation_episodes", 0),
        ("patience", 0),
        ("max_epochs", 0),
        ("episodes_per_step", 0),
    ],
)
def test_an_invalid_schedule_is_an_error(name: str, value: float) -> None:
    with pytest.raises(AwattError, match=rf"training\.{name} is {value}, needs"):
        TrainingConfig(**{name: value})  # type: ignore[arg-type]


def test_the_default_schedule_is_the_papers() -> None:
    schedule = TrainingConfig()
    assert (schedule.learning_rate, schedule.joint_learning_rate) == (1e-3, 1e-4)
    assert (schedule.episodes_per_epoch, schedule.validation_episodes, schedule.patience) == (800, 600, 3)


def test_a_device_is_picked_or_is_an_error() -> None:
    assert pick_device("cpu").type == "cpu"
    assert pick_device("auto").type in {"cpu", "cuda", "mps"}
    for name in ("nope", *([] if torch.cuda.is_available() else ["cuda"])):
        with pytest.raises(AwattError, match=f"the device '{name}' cannot be used: "):
            pick_device(name)


def test_two_processes_cannot_train_in_one_folder(data: Path, tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "run")
    with pytest.raises(AwattError, match="another process is writing"):
        train(configure(data, "static"), data, tmp_path / "run", device="cpu")
    lock.release()
    train(configure(data, "static"), data, tmp_path / "run", device="cpu")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
