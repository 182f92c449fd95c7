"""Episodic training, independent of the method.

Stage one trains encoder and model with the squared error (Eq. 8), or with the loss of the method's own paper. A trained
threshold has a second stage, which trains it jointly with them at a lower learning rate, or alone while they are
frozen. Random numbers depend only on ``(seed, epoch)``, so a run that was killed and resumed ends with the same numbers
as an uninterrupted one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from awatt.data.corpus import Corpus, find_split, hash_splits, load_corpus
from awatt.data.episode import Episode
from awatt.data.fewasp import SPLITS, read_json
from awatt.data.sampler import EpisodeSampler, feasible_shapes
from awatt.errors import AwattError
from awatt.files import FileLock, make_folder
from awatt.models import losses
from awatt.research.runs import RunConfig, RunFolder, flatten_optimizer, model_card, restore_optimizer
from awatt.research.scoring import measure_system, score_episodes
from awatt.research.system import System
from awatt.thresholds.base import Scored


@dataclass(frozen=True)
class Step:
    """Progress within an epoch, for a progress bar."""

    stage: str
    epoch: int
    done: int  # episodes of this epoch
    total: int
    loss: float


@dataclass(frozen=True)
class Stage:
    """What is trained, at which learning rate, and the validation metric that selects the best epoch."""

    name: str
    learning_rate: float
    trains_model: bool  # and its encoder
    trains_threshold: bool
    metric: str


@dataclass(frozen=True)
class Progress:
    """Progress of a run, saved in the checkpoint."""

    stage: int = 0
    epoch: int = 0  # finished epochs of all stages
    stage_epoch: int = 0  # of this stage
    best: float = -1.0  # the stage's metric at its best epoch
    stale: int = 0  # epochs since the best one


def squared_error(scored: Scored) -> Tensor:
    """Eq. 8 with normalised targets, mean over the queries; the target of an off-topic query is zero."""
    return losses.squared_error(scored.probabilities, scored.targets)


def pick_device(name: str) -> torch.device:
    """The torch device; ``auto`` is CUDA if available, then MPS, then the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise AwattError(f"the device '{name}' cannot be used: {error}") from None
    return device


def train(
    config: RunConfig,
    data: Path,
    out: Path,
    resume: bool = False,
    device: str = "auto",
    on_step: Callable[[Step], None] = lambda step: None,
    on_epoch: Callable[[dict[str, Any]], None] = lambda entry: None,
) -> System:
    """Train, save the best epoch in ``out`` and return it. ``out`` also holds the run's settings and log."""
    provenance = data / "provenance.json"
    source = read_json(provenance) if provenance.is_file() else None
    torch.manual_seed(config.seed)
    system = System.create(config.system, all_texts(data)).to(pick_device(device))
    folder = RunFolder(out)
    trainer = Trainer(config, system, load_corpus(data, "train"), load_corpus(data, "val"), folder)
    # Only now, so that an error in the data or the settings leaves no half-started run behind.
    described = {**config.describe(), "data": data.resolve().name, "sha256": hash_splits(data), "provenance": source}
    make_folder(out.absolute().parent)
    lock = FileLock(out.absolute())  # two processes would overwrite each other's checkpoints
    try:
        folder.open(described, resume)
        trainer.run(on_step, on_epoch)
        return System.load(out)
    finally:
        lock.release()


def all_texts(data: Path) -> Iterator[str]:
    """Every sentence of the dataset, for the vocabulary: pretrained vectors are looked up, nothing is trained."""
    for split in SPLITS:
        try:
            find_split(data, split)
        except AwattError:
            continue
        yield from load_corpus(data, split).sentences


class Trainer:
    """One run: its system, its stages and its progress."""

    def __init__(self, config: RunConfig, system: System, corpus: Corpus, held_out: Corpus, folder: RunFolder) -> None:
        self.config, self.system, self.corpus, self.held_out, self.folder = config, system, corpus, held_out, folder
        self.sampler = EpisodeSampler(corpus, config.shape, config.seed)
        self.sentences = system.encoder.tokenize(corpus.sentences)
        self.held_out_sentences = system.encoder.tokenize(held_out.sentences)
        schedule, threshold = config.training, system.threshold
        self.stages = [Stage("model", schedule.learning_rate, True, False, "auc")]
        self.samplers = [self.sampler]  # of the threshold stage, which takes batches from them in turn
        self.tokens: Tensor | None = None  # of the whole corpus, once the encoder is frozen
        if threshold.stage:
            joint = threshold.stage == "joint"
            rate = schedule.joint_learning_rate if joint else schedule.learning_rate
            # The ranking is already learned, so the threshold's decisions select the best epoch.
            self.stages.append(Stage("threshold", rate, joint, True, "macro_f1"))
            others = [shape for shape in threshold.shapes(config.shape) if shape != config.shape]
            self.samplers += [EpisodeSampler(corpus, shape, config.seed) for shape in feasible_shapes(corpus, others)]
        system.trained_with = {"episode": asdict(config.shape), "seed": config.seed}
        self.progress = Progress()
        self._check_feasible()

    def _check_feasible(self) -> None:
        """Raise for settings that cannot work before the run starts, not after its first epoch."""
        shape = self.config.shape
        if shape.n_way < 2:
            raise AwattError(f"n_way is {shape.n_way}, but training needs at least 2 aspects. Raise --n-way.")
        EpisodeSampler(self.held_out, shape, self.config.seed)
        with torch.no_grad():
            scored = self.system.score_fresh(self.sentences, self.corpus, self.sampler.batch(0, 1))
            if self.system.threshold.stage:
                if self.system.threshold.stage == "alone":
                    (scored,) = score_episodes(self.system, self.corpus, shape, 1, self.config.seed, self.sentences)
                self.system.threshold.loss(scored)

    def run(self, on_step: Callable[[Step], None], on_epoch: Callable[[dict[str, Any]], None]) -> None:
        """Run all stages, from the checkpoint if there is one. A finished run has a model but no checkpoint."""
        optimizers = self.optimizers()
        checkpoint = self.folder.load_checkpoint()
        if checkpoint is not None:
            self.progress = Progress(**checkpoint[1])
            optimizers = self.optimizers()
            self._restore(checkpoint[0], optimizers)
        elif self.folder.has_model():
            return
        else:
            self._checkpoint(optimizers)
        self.folder.truncate_log(self.progress.epoch)
        while True:
            while not self._stage_is_over():
                entry = self._epoch(optimizers, on_step)
                self.folder.append(entry)
                self._checkpoint(optimizers)
                on_epoch(entry)
            if self.progress.stage + 1 == len(self.stages):
                break
            # The next stage starts from this one's best epoch: checkpoint it before the saved model is replaced.
            self.system.load_state_dict(System.load(self.folder.path).state_dict())
            self.progress = Progress(stage=self.progress.stage + 1, epoch=self.progress.epoch)
            optimizers = self.optimizers()
            self._checkpoint(optimizers)
        self.folder.checkpoint.unlink()

    @property
    def stage(self) -> Stage:
        """The current stage."""
        return self.stages[self.progress.stage]

    def _stage_is_over(self) -> bool:
        limit = self.config.training
        return self.progress.stale >= limit.patience or self.progress.stage_epoch >= limit.max_epochs

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Adam, and SparseAdam for embeddings of which a step changes only a few rows."""
        sparse = {f"encoder.{name}" for name in self.system.encoder.sparse}
        named = [(name, value) for name, value in self.system.named_parameters() if value.requires_grad]
        stage = self.stage
        named = [
            (name, value)
            for name, value in named
            if (stage.trains_threshold if name.startswith("threshold.") else stage.trains_model)
        ]
        rate, table_rate = stage.learning_rate, stage.learning_rate * self.config.training.table_rate
        groups = {
            "dense": (torch.optim.Adam, rate, [value for name, value in named if name not in sparse]),
            "sparse": (torch.optim.SparseAdam, table_rate, [value for name, value in named if name in sparse]),
        }
        return {name: kind(values, lr=rate) for name, (kind, rate, values) in groups.items() if values}

    def _epoch(self, optimizers: dict[str, torch.optim.Optimizer], on_step: Callable[[Step], None]) -> dict[str, Any]:
        """Train one epoch, validate, and save the model if it is its stage's best. Returns the log entry."""
        start = time.perf_counter()
        loss = self.train_epoch(optimizers, on_step)
        trained = time.perf_counter()
        schedule, shape, seed = self.config.training, self.config.shape, self.config.seed
        batches: Iterable[Scored] = score_episodes(
            self.system, self.held_out, shape, schedule.validation_episodes, seed, self.held_out_sentences
        )
        if self.system.threshold.calibrated:
            batches = list(batches)
            self.system.threshold.calibrate(batches)
        found = measure_system(self.system, batches)
        value = found[self.stage.metric]
        better = value > self.progress.best
        self.progress = replace(
            self.progress,
            epoch=self.progress.epoch + 1,
            stage_epoch=self.progress.stage_epoch + 1,
            best=max(value, self.progress.best),
            stale=0 if better else self.progress.stale + 1,
        )
        entry = {
            "stage": self.stage.name,
            "epoch": self.progress.epoch,
            "loss": loss,
            **{f"val_{name}": found[name] for name in ("auc", "macro_f1", "argmax_f1")},
            "best": better,
            "train_seconds": round(trained - start, 3),
            "validation_seconds": round(time.perf_counter() - trained, 3),
        }
        if better:
            self.system.save(self.folder.path, model_card(self.config, entry, self.folder.read_description()))
        return entry

    def train_epoch(self, optimizers: dict[str, torch.optim.Optimizer], on_step: Callable[[Step], None]) -> float:
        """Train one epoch and return its mean loss."""
        schedule = self.config.training
        # Depends on (seed, epoch) only, so that a resumed run draws the same numbers.
        torch.manual_seed((self.config.seed * 100_003 + self.progress.epoch) % 2**64)
        self.system.train(self.stage.trains_model)  # frozen parts run without dropout, as in use
        self.system.threshold.train()
        total, done = 0.0, 0
        for episode in self._episodes():
            loss = self._loss(episode)
            for optimizer in optimizers.values():
                optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            for optimizer in optimizers.values():
                optimizer.step()
            value = loss.item()
            if not math.isfinite(value):
                raise AwattError(
                    f"the loss is {value} in epoch {self.progress.epoch + 1} after {done} episodes. "
                    f"{self.folder.describe_kept()} Lower training.learning_rate, or look for odd rows in the data."
                )
            total += value * len(episode)
            done += len(episode)
            on_step(Step(self.stage.name, self.progress.epoch + 1, done, schedule.episodes_per_epoch, value))
        return total / schedule.episodes_per_epoch

    def _episodes(self) -> Iterator[Episode]:
        """This epoch's episodes, one batch per step. They depend on the epoch number only."""
        schedule, epoch = self.config.training, self.progress.epoch
        first, size = epoch * schedule.episodes_per_epoch, schedule.episodes_per_step
        if not self.stage.trains_threshold or len(self.samplers) == 1:
            yield from self.sampler.batches(first, schedule.episodes_per_epoch, size)
            return
        places = range(0, schedule.episodes_per_epoch, size)
        for step, place in enumerate(places, epoch * len(places)):
            sampler = self.samplers[step % len(self.samplers)]
            yield sampler.batch(first + place, min(size, schedule.episodes_per_epoch - place))

    def _loss(self, episode: Episode) -> Tensor:
        """The loss that this stage minimises."""
        system, threshold = self.system, self.system.threshold
        if self.stage.trains_model:
            scored = system.score_fresh(self.sentences, self.corpus, episode)
            own = self.config.training.loss == "own"
            error = system.model.own_loss(scored.scores, scored.targets) if own else squared_error(scored)
            return error + threshold.loss(scored) if self.stage.trains_threshold else error
        with torch.no_grad():
            if self.tokens is None:
                self.tokens = system.encode(self.sentences)
            scored = system.score(self.tokens, self.sentences.lengths, self.corpus, episode)
        return threshold.loss(scored)

    def _checkpoint(self, optimizers: dict[str, torch.optim.Optimizer]) -> None:
        state = self.system.state_dict()
        tensors = {f"system.{name}": value.detach().cpu().contiguous() for name, value in state.items()}
        for name, optimizer in optimizers.items():
            tensors |= flatten_optimizer(optimizer, name)
        self.folder.save_checkpoint(tensors, asdict(self.progress))

    def _restore(self, tensors: dict[str, Tensor], optimizers: dict[str, torch.optim.Optimizer]) -> None:
        state = {name.removeprefix("system."): value for name, value in tensors.items() if name.startswith("system.")}
        self.system.load_state_dict(state)
        for name, optimizer in optimizers.items():
            restore_optimizer(optimizer, name, tensors)
