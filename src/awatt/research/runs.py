"""A run: its settings, and its folder with the log, the checkpoint and the best model so far."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor

from awatt import __version__
from awatt.data.fewasp import read_json
from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError, DataError
from awatt.files import write_text, write_whole
from awatt.research.system import SystemConfig

LOSSES = ("squared-error", "own")


@dataclass(frozen=True)
class TrainingConfig:
    """The paper's schedule (appendix, "Training Details"); what it does not say is chosen on validation."""

    learning_rate: float = 1e-3
    joint_learning_rate: float = 1e-4  # of a second stage in which the model learns, too
    episodes_an_epoch: int = 800
    validation_episodes: int = 600
    patience: int = 3  # epochs without a better validation measure
    max_epochs: int = 100
    episodes_a_step: int = 2
    #: rate of word tables relative to the rest: at the full rate they learn the train classes' words by heart
    table_rate: float = 0.03
    #: of the first stage: the paper trains every method with Eq. 7, "own" takes what the method's own paper has
    loss: str = "squared-error"

    def __post_init__(self) -> None:
        for name in ("learning_rate", "joint_learning_rate", "table_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise AwattError(f"training.{name} is {getattr(self, name)}, needs a number above 0.")
        for name in ("episodes_an_epoch", "validation_episodes", "patience", "max_epochs", "episodes_a_step"):
            if getattr(self, name) < 1:
                raise AwattError(f"training.{name} is {getattr(self, name)}, needs at least 1.")
        if self.loss not in LOSSES:
            raise AwattError(f"training.loss is '{self.loss}', needs one of: {', '.join(LOSSES)}.")


@dataclass(frozen=True)
class RunConfig:
    """Everything that a run's numbers depend on."""

    system: SystemConfig
    shape: EpisodeShape
    training: TrainingConfig
    seed: int = 5

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**64:
            raise AwattError(f"the seed is {self.seed}, needs a whole number from 0 to 2**64 - 1.")

    def describe(self) -> dict[str, Any]:
        """As JSON, every default written out."""
        return {
            **self.system.to_mapping(),
            "episode": asdict(self.shape),
            "training": asdict(self.training),
            "seed": self.seed,
        }


class RunFolder:
    """``run.json`` (what was asked), ``log.jsonl`` (a line an epoch), a checkpoint while it runs, and the model."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint = path / "checkpoint.safetensors"
        self.log = path / "log.jsonl"
        self.description = path / "run.json"

    def open(self, asked: Mapping[str, Any], resume: bool) -> None:
        """Begin a run, or with ``resume`` go on with one that was asked for in the same way."""
        # Through JSON and back: what was read from the file has lists where settings have tuples.
        described = json.loads(json.dumps({**asked, "awatt": __version__}))
        if self.description.exists():
            if not resume:
                raise AwattError(f"{self.path} already holds a run. Add --resume to go on, or name another --out.")
            found = self.read_description()
            differing = [name for name in described if found.get(name) != described[name]]
            if differing:
                raise AwattError(
                    f"{self.path} holds a run with other settings ({', '.join(differing)} differ). "
                    "Resume with the same ones, or name another --out."
                )
            for left_over in self.path.glob(".*.part"):  # of a write that was killed
                left_over.unlink()
            return
        if self.has_model():
            raise AwattError(f"{self.path} already holds a model that is no run of awatt train. Name another --out.")
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.description, json.dumps(described, indent=1) + "\n")

    def read_description(self) -> dict[str, Any]:
        """What was asked for when the run began."""
        content = read_json(self.description)
        if not isinstance(content, dict) or not {"episode", "seed"} <= content.keys():
            raise DataError("is not a run's description.", self.description)
        return content

    def has_model(self) -> bool:
        """Whether a model has been saved here."""
        return (self.path / "config.json").exists()

    def say_what_is_kept(self) -> str:
        """A sentence for the end of a run that stopped early."""
        return f"The best epoch so far is in {self.path}." if self.has_model() else "No epoch was finished yet."

    def append(self, entry: Mapping[str, Any]) -> None:
        """A line at the end of the log."""
        with self.log.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(entry) + "\n")

    def forget_after(self, epochs: int) -> None:
        """Cut the log after its first ``epochs`` lines: what came later is done again."""
        if self.log.exists():
            kept = self.log.read_text("utf-8").splitlines(keepends=True)[:epochs]
            write_text(self.log, "".join(kept))

    def save_checkpoint(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Everything that is needed to go on, in one file that is replaced at once."""
        content = safetensors.torch.save(dict(tensors), metadata={"progress": json.dumps(progress)})
        write_whole(self.checkpoint, content)

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """What ``save_checkpoint`` wrote, or nothing."""
        if not self.checkpoint.exists():
            return None
        try:
            with safe_open(self.checkpoint, framework="pt") as file:
                progress = json.loads(file.metadata()["progress"])
                return {name: file.get_tensor(name) for name in file.keys()}, progress  # noqa: SIM118
        except Exception as error:  # the Rust side raises its own kinds
            # Without its checkpoint a folder with a model counts as a finished run, so it has to go as a whole.
            raise DataError(
                f"cannot be read ({error}). Delete the folder to start the run anew.", self.checkpoint
            ) from None


def flatten_optimizer(optimizer: torch.optim.Optimizer, name: str) -> dict[str, Tensor]:
    """The optimiser's state as named tensors, for safetensors."""
    state = optimizer.state_dict()["state"]
    return {
        f"{name}.{number}.{key}": torch.as_tensor(value).detach().cpu().contiguous()
        for number, entry in state.items()
        for key, value in entry.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, name: str, tensors: Mapping[str, Tensor]) -> None:
    """Put back what ``flatten_optimizer`` took."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in tensors.items():
        if key.startswith(f"{name}."):
            number, field = key.removeprefix(f"{name}.").split(".")
            # SparseAdam counts steps in a plain number, Adam in a tensor.
            plain = isinstance(optimizer, torch.optim.SparseAdam) and field == "step"
            state.setdefault(int(number), {})[field] = int(value) if plain else value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def model_card(config: RunConfig, entry: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    """What the model is, where it comes from and how good it was on validation."""
    system, shape = config.system, config.shape
    splits = (description.get("provenance") or {}).get("splits", {})
    origin = ", ".join(f"{split}: {facts['source']}" for split, facts in splits.items()) or "not recorded"
    return f"""# {system.method} with {system.encoder}

Few-shot aspect category detection, trained with awatt {description["awatt"]}.

| | |
|---|---|
| method, encoder, threshold | {system.method}, {system.encoder}, {system.threshold} |
| trained on | {description["data"]} ({origin}) |
| episodes | {shape.n_way}-way {shape.n_shot}-shot, {shape.n_query} queries an aspect, seed {config.seed} |
| best epoch | {entry["epoch"]} ({entry["stage"]} stage) |
| validation AUC, macro-F1 | {entry["val_auc"]:.4f}, {entry["val_macro_f1"]:.4f} |

Load it with `awatt evaluate FOLDER --data DIR`. `config.json` has every setting.
"""
