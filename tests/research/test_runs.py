"""A run's folder: it starts once, resumes only with the same settings, and its checkpoint loses nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

import awatt
from awatt.errors import AwattError, DataError
from awatt.research.runs import RunFolder, flatten_optimizer, restore_optimizer

torch.set_num_threads(1)

ASKED: dict[str, Any] = {"method": "proto-awatt", "episode": {"n_way": 5}, "seed": 5}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "below" / "run")


def test_a_new_run_saves_its_settings(folder: RunFolder) -> None:
    folder.open(ASKED, resume=False)
    assert json.loads(folder.description.read_text("utf-8")) == {**ASKED, "awatt": awatt.__version__}
    assert folder.read_description()["seed"] == 5
    assert [path.name for path in folder.path.iterdir()] == ["run.json"]


def test_an_existing_run_is_not_overwritten(folder: RunFolder) -> None:
    folder.open(ASKED, resume=False)
    with pytest.raises(AwattError, match=r"already holds a run\. Add --resume to continue it, or choose another --out"):
        folder.open(ASKED, resume=False)


def test_resume_without_a_run_starts_one(folder: RunFolder) -> None:
    folder.open(ASKED, resume=True)
    assert folder.description.exists()


def test_resume_requires_the_same_settings(folder: RunFolder) -> None:
    folder.open(ASKED, resume=False)
    folder.open(ASKED, resume=True)
    with pytest.raises(
        AwattError, match=r"other settings \(different: episode, seed\)\. Resume with the same settings"
    ):
        folder.open({**ASKED, "seed": 6, "episode": {"n_way": 10}}, resume=True)


def test_resume_was_refused_for_equal_settings_that_contain_a_tuple(folder: RunFolder) -> None:
    asked = {**ASKED, "settings": {"threshold": {"bandwidths": (0.1, 0.3)}}}
    folder.open(asked, resume=False)
    folder.open(asked, resume=True)


def test_resume_is_refused_with_another_version(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.open(ASKED, resume=False)
    monkeypatch.setattr("awatt.research.runs.__version__", "0.0.0")
    with pytest.raises(AwattError, match=r"other settings \(different: awatt\)"):
        folder.open(ASKED, resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_with_another_model_counted_as_a_finished_run(folder: RunFolder, resume: bool) -> None:
    folder.path.mkdir(parents=True)
    (folder.path / "config.json").write_text("{}")
    with pytest.raises(
        AwattError, match=r"already holds a model that is not a run of awatt train\. Choose another --out"
    ):
        folder.open(ASKED, resume)
    assert not folder.description.exists()


def test_a_killed_write_left_its_temporary_file_behind(folder: RunFolder) -> None:
    folder.open(ASKED, resume=False)
    (folder.path / ".checkpoint.safetensors.123.part").write_bytes(b"half")
    folder.open(ASKED, resume=True)
    assert [path.name for path in folder.path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1, 2]", "does not describe a run"), ("{}", "does not describe a run"), ("{nonsense", "not JSON")],
)
def test_a_damaged_description_is_an_error(folder: RunFolder, content: str, message: str) -> None:
    folder.open(ASKED, resume=False)
    folder.description.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        folder.open(ASKED, resume=True)
    assert str(folder.description) in str(caught.value)


# ---- the log


def test_the_log_has_one_line_per_epoch_and_is_truncated_on_resume(folder: RunFolder) -> None:
    folder.open(ASKED, resume=False)
    folder.truncate_log(0)
    assert not folder.log.exists()
    for epoch in range(1, 5):
        folder.append({"epoch": epoch})
    with folder.log.open("a") as lines:
        lines.write('{"epoch": 5, "lo')  # killed while writing
    folder.truncate_log(3)
    folder.append({"epoch": 4})
    assert [json.loads(line)["epoch"] for line in folder.log.read_text().splitlines()] == [1, 2, 3, 4]


# ---- the checkpoint


def test_a_checkpoint_is_restored_unchanged(folder: RunFolder) -> None:
    folder.open(ASKED, resume=False)
    assert folder.load_checkpoint() is None
    tensors = {"a": torch.randn(3, 2), "b": torch.tensor(7), "c": torch.arange(4, dtype=torch.float64)}
    progress = {"epoch": 3, "best": 0.1 + 0.2, "stale": 0}
    folder.save_checkpoint(tensors, progress)
    found = folder.load_checkpoint()
    assert found is not None
    assert found[1] == progress
    assert found[0].keys() == tensors.keys()
    for name, value in tensors.items():
        assert found[0][name].dtype == value.dtype
        assert torch.equal(found[0][name], value)


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "no progress"])
def test_a_broken_checkpoint_is_an_error_with_advice(folder: RunFolder, damage: str) -> None:
    folder.open(ASKED, resume=False)
    folder.save_checkpoint({"a": torch.zeros(100)}, {"epoch": 1})
    whole, no_progress = folder.checkpoint.read_bytes(), safetensors.torch.save({"a": torch.zeros(1)})
    broken = {"cut": whole[:-7], "garbage": b"\x80\x04pickle" * 20, "empty": b"", "no progress": no_progress}
    folder.checkpoint.write_bytes(broken[damage])
    with pytest.raises(DataError, match=r"cannot be read \(.*\)\. Delete the folder to start the run again") as caught:
        folder.load_checkpoint()
    assert str(folder.checkpoint) in str(caught.value)


@pytest.mark.parametrize("has_model", [False, True])
def test_a_run_that_stops_early_describes_what_is_saved(folder: RunFolder, has_model: bool) -> None:
    folder.open(ASKED, resume=False)
    if has_model:
        (folder.path / "config.json").write_text("{}")
    assert folder.has_model() == has_model
    kept = f"The best epoch so far is in {folder.path}." if has_model else "No epoch was finished yet."
    assert folder.describe_kept() == kept


# ---- the optimisers


def network(seed: int) -> tuple[nn.Module, dict[str, torch.optim.Optimizer]]:
    torch.manual_seed(seed)
    module = nn.ModuleDict({"table": nn.Embedding(6, 3, sparse=True), "layer": nn.Linear(3, 2)})
    return module, {
        "dense": torch.optim.Adam(module["layer"].parameters(), lr=0.1),
        "sparse": torch.optim.SparseAdam(module["table"].parameters(), lr=0.1),
    }


def step(module: Any, optimizers: dict[str, torch.optim.Optimizer], numbers: range) -> None:
    for number in numbers:
        loss = module["layer"](module["table"](torch.tensor([number % 6, (number * 5 + 1) % 6]))).square().sum()
        for optimizer in optimizers.values():
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers.values():
            optimizer.step()


def test_restored_optimisers_continue_exactly(folder: RunFolder) -> None:
    folder.open(ASKED, resume=False)
    module, optimizers = network(0)
    step(module, optimizers, range(7))
    tensors: dict[str, Tensor] = {f"system.{name}": value for name, value in module.state_dict().items()}
    for name, optimizer in optimizers.items():
        tensors |= flatten_optimizer(optimizer, name)
    assert {name.partition(".")[0] for name in tensors} == {"system", "dense", "sparse"}
    folder.save_checkpoint(tensors, {})
    step(module, optimizers, range(7, 20))

    other, fresh = network(1)
    found = folder.load_checkpoint()
    assert found is not None
    other.load_state_dict(
        {name.removeprefix("system."): v for name, v in found[0].items() if name.startswith("system.")}
    )
    for name, optimizer in fresh.items():
        restore_optimizer(optimizer, name, found[0])
    step(other, fresh, range(7, 20))
    for name, value in module.state_dict().items():
        assert torch.equal(other.state_dict()[name], value), name


def test_an_optimiser_without_state_is_restored_too() -> None:
    module, optimizers = network(0)
    other, fresh = network(0)
    for name, optimizer in fresh.items():
        restore_optimizer(optimizer, name, flatten_optimizer(optimizers[name], name))
    step(module, optimizers, range(3))
    step(other, fresh, range(3))
    for name, value in module.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)
