"""Distils the student: static token vectors in, a sentence encoder's token vectors out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor

from awatt.arrays import Integers
from awatt.aspect_model.student.module import StudentConfig, StudentModule, export
from awatt.aspect_model.student.targets import Targets, context_free, make_targets
from awatt.aspect_model.student.teacher import Taught
from awatt.aspect_model.transformer import Projection
from awatt.errors import DataError
from awatt.files import write_whole

_log = logging.getLogger(__name__)

_SAMPLE = 100_000  # tokens whose principal directions are predicted


@dataclass(frozen=True)
class DistillConfig:
    """How the student is trained."""

    epochs: float = 6.0  # the loss still falls after as many
    batch_tokens: int = 3072
    learning_rate: float = 2e-3
    warm_up: int = 200  # steps in which the learning rate rises
    sentence_weight: float = 1.0
    pair_weight: float = 5.0
    log_steps: int = 250
    n_held_out: int = 2000  # sentences that only measure
    seed: int = 5


def batches(lengths: Integers, batch_tokens: int, rng: np.random.Generator) -> Iterator[Integers]:
    """Sentences of like length together, in random order. No sentence twice; one that would be alone is left out."""
    # A little noise on the lengths: other neighbours in each epoch.
    order = np.argsort(lengths + rng.random(len(lengths)) * 2)
    total = np.cumsum(lengths[order])
    cuts = np.searchsorted(total, np.arange(batch_tokens, total[-1], batch_tokens))
    parts = [part for part in np.split(order, cuts) if len(part) > 1]  # a single sentence has no pairs
    for place in rng.permutation(len(parts)):
        yield parts[place]


def losses(predicted: Tensor, target: Tensor, inside: Tensor, norms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of tokens and of sentences: 1 - cosine; of pairs of sentences: squared difference of their cosines.

    ``predicted`` and ``target`` (n_inside, dim), the tokens of the mask ``inside`` (n_sentences, length); ``norms``
    (n_inside, 1) is how much each token counts in its sentence's mean, here as in the detector.
    """
    predicted = F.normalize(predicted, dim=-1)
    owner = torch.arange(len(inside))[:, None].expand(inside.shape)[inside]
    means = [
        F.normalize(tokens.new_zeros(len(inside), tokens.shape[1]).index_add(0, owner, norms * tokens), dim=-1)
        for tokens in (predicted, target)
    ]
    pairs = (means[0] @ means[0].T - means[1] @ means[1].T).square().mean()
    return 1 - (predicted * target).sum(-1).mean(), 1 - (means[0] * means[1]).sum(-1).mean(), pairs


def make_student(
    taught: Taught,
    alone: Taught,
    static: npt.NDArray[np.float32],
    sizes: StudentConfig,
    config: DistillConfig,
    checkpoint: Path | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """The tensors of a trained student, as `encoder.read_student` takes them.

    ``taught`` are the sentences to learn from, in random order; ``alone`` has every token of the vocabulary as a
    sentence of its own; ``static`` (n_vocabulary, n_static) are the static vectors at their full norm.
    """
    torch.manual_seed(config.seed)
    projection = Projection.fit(torch.from_numpy(taught.tokens[:_SAMPLE]), sizes.dim)
    targets = make_targets(taught, projection)
    held_out, targets = targets.split(config.n_held_out)
    extra, scale = context_free(targets, make_targets(alone, projection), sizes.extra)
    module = StudentModule(sizes, np.concatenate([static, extra * scale], 1))
    distill(config, module, targets, held_out, checkpoint)
    return {**export(module), "extra": extra, "extra_scale": scale}


def distill(
    config: DistillConfig, module: StudentModule, targets: Targets, held_out: Targets, checkpoint: Path | None = None
) -> None:
    """Train ``module`` in place; the learning rate rises for a short while, then falls to 0. Resumes a checkpoint."""
    optimizer = torch.optim.AdamW(module.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    n_steps = int(config.epochs * int(targets.lengths.sum()) / config.batch_tokens)
    step = 0
    if checkpoint is not None and checkpoint.exists():
        step = load_checkpoint(checkpoint, module, optimizer)
    while step < n_steps:
        rng = np.random.default_rng([config.seed, step])
        for numbers in batches(targets.lengths, config.batch_tokens, rng):
            rate = config.learning_rate * min(1.0, (step + 1) / config.warm_up) * (1 - step / n_steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            found = _step(config, module, optimizer, targets.batch(numbers))
            step += 1
            if step % config.log_steps == 0 or step == n_steps:
                _log.info("step %d of %d: %s, held out %s", step, n_steps, found, evaluate(module, held_out))
                if checkpoint is not None:
                    save_checkpoint(checkpoint, module, optimizer, step)
            if step == n_steps:
                break


def save_checkpoint(path: Path, module: StudentModule, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Save everything needed to continue in one file, which is replaced atomically."""
    tensors = {f"module.{name}": value for name, value in module.state_dict().items()}
    for number, entry in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value for name, value in entry.items()}
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    write_whole(path, safetensors.torch.save(tensors, metadata={"step": str(step)}))


def load_checkpoint(path: Path, module: StudentModule, optimizer: torch.optim.Optimizer) -> int:
    """Restore what ``save_checkpoint`` saved; the number of steps that are done."""
    try:
        with safe_open(path, framework="pt") as file:
            step, tensors = int(file.metadata()["step"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:  # safetensors raises its own exception types
        raise DataError(f"cannot be read ({error}). Delete the file to start again.", path) from None
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".")
            state.setdefault(int(number), {})[name] = value
    module.load_state_dict(
        {key.removeprefix("module."): value for key, value in tensors.items() if key.startswith("module.")}
    )
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return step


def _step(
    config: DistillConfig,
    module: StudentModule,
    optimizer: torch.optim.Optimizer,
    batch: tuple[Tensor, Tensor, Tensor],
) -> list[float]:
    ids, inside, target = batch
    with torch.autocast("cpu", torch.bfloat16):
        predicted = module(ids, inside)
    token, sentence, pairs = losses(predicted[inside].float(), target, inside, module.norms[ids[inside]])
    module.zero_grad()
    (token + config.sentence_weight * sentence + config.pair_weight * pairs).backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    optimizer.step()
    return [token.item(), sentence.item(), pairs.item()]


@torch.inference_mode()
def evaluate(module: StudentModule, held_out: Targets) -> list[float]:
    """The three losses on sentences that it was not trained on, means over the batches."""
    found = []
    for numbers in batches(held_out.lengths, 3072, np.random.default_rng(0)):
        ids, inside, target = held_out.batch(numbers)
        parts = losses(module(ids, inside)[inside], target, inside, module.norms[ids[inside]])
        found.append([part.item() for part in parts])
    return [float(mean) for mean in np.mean(found, 0)]
