"""A training run: its settings, and its folder with the log, the checkpoint and the best model so far."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor

from awatt import __version__
from awatt.config import check_above, check_at_least
from awatt.data.fewasp import read_json
from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError, DataError
from awatt.files import make_folder, write_text, write_whole
from awatt.research.system import SystemConfig

LOSSES = ("squared-error", "own")


class OtherSettingsError(AwattError):
    """A folder holds a run with other settings; ``found`` is the message without advice."""

    def __init__(self, path: Path, differing: Iterable[str]) -> None:
        self.found = f"{path} holds a run with other settings (different: {', '.join(differing)})."
        super().__init__(f"{self.found} Resume with the same settings, or choose another --out.")


@dataclass(frozen=True)
class TrainingConfig:
    """The paper's schedule (appendix, "Training Details"); values it does not give were chosen on validation."""

    learning_rate: float = 1e-3
    joint_learning_rate: float = 1e-4  # for a second stage that trains model and threshold together
    episodes_per_epoch: int = 800
    validation_episodes: int = 600
    patience: int = 3  # epochs without improvement on validation before a stage stops
    max_epochs: int = 100
    episodes_per_step: int = 2
    #: learning rate of word embeddings relative to the rest: at the full rate they overfit the train aspects
    table_rate: float = 0.03
    #: of the model, also in a joint second stage: the paper trains every method with Eq. 8, "own" is the loss of the
    #: method's own paper
    loss: str = "squared-error"

    def __post_init__(self) -> None:
        check_above(self, "training", 0, "learning_rate", "joint_learning_rate", "table_rate")
        counts = ("episodes_per_epoch", "validation_episodes", "patience", "max_epochs", "episodes_per_step")
        check_at_least(self, "training", **dict.fromkeys(counts, 1))
        if self.loss not in LOSSES:
            raise AwattError(f"training.loss is '{self.loss}', needs one of: {', '.join(LOSSES)}.")


@dataclass(frozen=True)
class RunConfig:
    """Every setting that a run's results depend on."""

    system: SystemConfig
    shape: EpisodeShape
    training: TrainingConfig
    seed: int = 5

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**64:
            raise AwattError(f"the seed is {self.seed}, needs a whole number from 0 to 2**64 - 1.")

    def describe(self) -> dict[str, Any]:
        """As JSON, with every default written out."""
        return {
            **self.system.to_mapping(),
            "episode": asdict(self.shape),
            "training": asdict(self.training),
            "seed": self.seed,
        }


class RunFolder:
    """``run.json`` (the settings), ``log.jsonl`` (one line per epoch), a checkpoint while it runs, and the model."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint = path / "checkpoint.safetensors"
        self.log = path / "log.jsonl"
        self.description = path / "run.json"

    def open(self, settings: Mapping[str, Any], resume: bool) -> None:
        """Start a run, or with ``resume`` continue one that has the same settings."""
        # Through JSON and back, because the file has lists where settings have tuples.
        described = json.loads(json.dumps({**settings, "awatt": __version__}))
        if self.description.exists():
            if not resume:
                raise AwattError(
                    f"{self.path} already holds a run. Add --resume to continue it, or choose another --out."
                )
            found = self.read_description()
            differing = [name for name in described if found.get(name) != described[name]]
            if differing:
                raise OtherSettingsError(self.path, differing)
            for partial in self.path.glob(".*.part"):  # left by a write that was killed
                partial.unlink()
            return
        if self.has_model():
            raise AwattError(
                f"{self.path} already holds a model that is not a run of awatt train. Choose another --out."
            )
        make_folder(self.path)
        write_text(self.description, json.dumps(described, indent=1) + "\n")

    def read_description(self) -> dict[str, Any]:
        """The settings that the run was started with."""
        content = read_json(self.description)
        if not isinstance(content, dict) or not {"episode", "seed"} <= content.keys():
            raise DataError("does not describe a run. Delete the folder to start the run again.", self.description)
        return content

    def has_model(self) -> bool:
        """Whether the folder holds a model."""
        return (self.path / "config.json").exists()

    def describe_kept(self) -> str:
        """A sentence for a run that stopped early: what is saved so far."""
        return f"The best epoch so far is in {self.path}." if self.has_model() else "No epoch was finished yet."

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append a line to the log."""
        with self.log.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(entry) + "\n")

    def truncate_log(self, epochs: int) -> None:
        """Keep the first ``epochs`` lines of the log; later epochs run again."""
        if self.log.exists():
            kept = self.log.read_text("utf-8").splitlines(keepends=True)[:epochs]
            write_text(self.log, "".join(kept))

    def save_checkpoint(self, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Save everything needed to continue in one file, which is replaced atomically."""
        content = safetensors.torch.save(dict(tensors), metadata={"progress": json.dumps(progress)})
        write_whole(self.checkpoint, content)

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Load what ``save_checkpoint`` saved; None without a checkpoint."""
        if not self.checkpoint.exists():
            return None
        try:
            with safe_open(self.checkpoint, framework="pt") as file:
                progress = json.loads(file.metadata()["progress"])
                return {name: file.get_tensor(name) for name in file.keys()}, progress  # noqa: SIM118
        except Exception as error:  # safetensors raises its own exception types
            # Delete the whole folder: with a model but no checkpoint it would count as a finished run.
            raise DataError(
                f"cannot be read ({error}). Delete the folder to start the run again.", self.checkpoint
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
    """The inverse of ``flatten_optimizer``."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in tensors.items():
        if key.startswith(f"{name}."):
            number, field = key.removeprefix(f"{name}.").split(".")
            # SparseAdam keeps its step count as an int, Adam as a tensor.
            is_count = isinstance(optimizer, torch.optim.SparseAdam) and field == "step"
            state.setdefault(int(number), {})[field] = int(value) if is_count else value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def model_card(config: RunConfig, entry: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    """The model card: what the model is, what it was trained on and its validation results."""
    system, shape = config.system, config.shape
    splits = (description.get("provenance") or {}).get("splits", {})
    origin = ", ".join(f"{split}: {facts['source']}" for split, facts in splits.items()) or "not recorded"
    return f"""# {system.method} with {system.encoder}

Few-shot aspect category detection, trained with awatt {description["awatt"]}.

| | |
|---|---|
| method, encoder, threshold | {system.method}, {system.encoder}, {system.threshold} |
| trained on | {description["data"]} ({origin}) |
| episodes | {shape.n_way}-way {shape.n_shot}-shot, {shape.n_query} queries per aspect, seed {config.seed} |
| best epoch | {entry["epoch"]} ({entry["stage"]} stage) |
| validation AUC, macro-F1 | {entry["val_auc"]:.4f}, {entry["val_macro_f1"]:.4f} |

Evaluate it with `awatt evaluate FOLDER --data DIR`, detect with `awatt detect FILE --examples FILE --model FOLDER`.
`config.json` has every setting.
"""
