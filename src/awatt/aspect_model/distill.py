"""Distils the student: static token vectors in, a sentence encoder's token vectors out."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.aspect_model.student import quantise
from awatt.aspect_model.teacher import Taught
from awatt.packed import Integers, ranges, starts

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DistillConfig:
    """Sizes of the student, and its training."""

    width: int = 256
    n_heads: int = 4
    key_width: int = 32  # of each head
    n_layers: int = 3
    hidden: int = 512
    stem_hidden: int = 512
    reach: int = 12  # how far apart two tokens can be told from farther
    dim: int = 192  # of the predicted vectors: the teacher's principal directions
    extra: int = 128  # width of the table of context-free predictions beside the static vectors
    optimizer: str = "adamw"
    epochs: float = 6.0
    batch_tokens: int = 3072
    learning_rate: float = 2e-3
    sentence_weight: float = 1.0
    pair_weight: float = 5.0
    seconds: float = 0.0  # where above 0: stop and decay by the clock rather than by epochs
    log_steps: int = 250
    seed: int = 5


class StudentModule(nn.Module):
    """The same computation as ``student.encode``, on padded sentences, with gradients."""

    def __init__(self, config: DistillConfig, vectors: npt.NDArray[np.float32]) -> None:
        """``vectors`` (n_vocabulary, n_in): the static ones, and beside them those of ``context_free``, if any."""
        super().__init__()
        self.config = config
        self.table = nn.Buffer(torch.from_numpy(vectors), persistent=False)
        static = self.table[:, : vectors.shape[1] - config.extra]
        self.norms = nn.Buffer(static.norm(dim=1, keepdim=True), persistent=False)
        n_in = vectors.shape[1]
        self.stem = nn.Linear(n_in, config.width)
        self.stem_in = nn.Linear(n_in, config.stem_hidden)
        self.stem_out = nn.Linear(config.stem_hidden, config.width)
        self.layers = nn.ModuleList(LayerModule(config) for _ in range(config.n_layers))
        self.out = nn.Linear(config.width, config.dim)

    def forward(self, ids: Tensor, inside: Tensor) -> Tensor:
        """Token ids and a mask (n_sentences, length) -> vectors (n_sentences, length, dim), not of length one."""
        words, places = torch.unique(ids, return_inverse=True)
        rows = self.table[words]
        x = (self.stem(rows) + self.stem_out(self.stem_in(rows).relu()))[places]
        length = ids.shape[1]
        distances = torch.arange(length)[:, None] - torch.arange(length)
        distances = distances.clamp(-self.config.reach, self.config.reach) + self.config.reach
        hidden = torch.zeros(inside.shape).masked_fill(~inside, -1e9)[:, None, None]
        for layer in self.layers:
            x = layer(x, hidden + layer.attention_bias[:, distances])
        return self.out(normalise(x))


class LayerModule(nn.Module):
    """See ``student.Layer``."""

    def __init__(self, config: DistillConfig) -> None:
        super().__init__()
        self.config = config
        keys = 2 * config.n_heads * config.key_width
        self.attention_in = nn.Linear(config.width, keys + config.width)
        self.attention_bias = nn.Parameter(torch.zeros(config.n_heads, 2 * config.reach + 1))
        self.attention_out = nn.Linear(config.width, config.width)
        self.forward_in = nn.Linear(config.width, config.hidden)
        self.forward_out = nn.Linear(config.hidden, config.width)
        for last in (self.attention_out, self.forward_out):
            nn.init.zeros_(last.weight)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        keys = self.config.n_heads * self.config.key_width
        read = self.attention_in(normalise(x)).split([keys, keys, self.config.width], -1)
        query, key, value = (part.unflatten(-1, (self.config.n_heads, -1)).transpose(1, 2) for part in read)
        scores = query @ key.transpose(-1, -2) * self.config.key_width**-0.5 + bias
        seen = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)
        x = x + self.attention_out(seen)
        return x + self.forward_out(self.forward_in(normalise(x)).relu())


def export(module: StudentModule) -> dict[str, npt.NDArray[Any]]:
    """The tensors that ``student.read_student`` reads: weights in eight bits."""
    found: dict[str, npt.NDArray[Any]] = {}
    for name, part in module.named_modules():
        if isinstance(part, LayerModule):
            found[f"{name}.attention_bias"] = part.attention_bias.detach().numpy().copy()
        if isinstance(part, nn.Linear):
            weight, bias = part.weight.detach().numpy().T.copy(), part.bias.detach().numpy().copy()
            if name.endswith("attention_in"):  # queries, divided here rather than at every use
                keys = module.config.n_heads * module.config.key_width
                weight[:, :keys] *= module.config.key_width**-0.5
                bias[:keys] *= module.config.key_width**-0.5
            found[f"{name}.weight"], found[f"{name}.scale"] = quantise(weight)
            found[f"{name}.bias"] = bias
    return found


def dequantised(module: StudentModule) -> StudentModule:
    """A copy with the weights that ``student.read_student`` gets: rounded to eight bits."""
    found = copy.deepcopy(module).eval()
    with torch.no_grad():
        for part in found.modules():
            if isinstance(part, nn.Linear):
                weight, scale = quantise(part.weight.numpy().T)
                part.weight.copy_(torch.from_numpy((weight * scale).T))
    return found


def normalise(x: Tensor) -> Tensor:
    """Root mean square 1."""
    return F.rms_norm(x, (x.shape[-1],), eps=1e-6)


@dataclass(frozen=True)
class Targets:
    """What the student learns to predict, and of which sentences."""

    ids: Integers  # (n_tokens,)
    lengths: Integers  # (n_sentences,)
    tokens: npt.NDArray[np.float16]  # (n_tokens, dim) of length one

    @cached_property
    def first(self) -> Integers:
        """Where each sentence begins."""
        return starts(self.lengths)

    def batch(self, numbers: Integers) -> tuple[Tensor, Tensor, Tensor]:
        """Padded ids, a mask (n_sentences, length), and vectors of the tokens inside it (n_inside, dim)."""
        lengths = self.lengths[numbers]
        rows = ranges(self.first[numbers], lengths)
        inside = torch.arange(int(lengths.max())) < torch.from_numpy(lengths)[:, None]
        ids = torch.zeros(inside.shape, dtype=torch.int64)
        ids[inside] = torch.from_numpy(self.ids[rows])
        return ids, inside, torch.from_numpy(self.tokens[rows]).float()


def principal_directions(taught: Taught, dim: int, n_tokens: int = 100_000) -> tuple[Tensor, Tensor]:
    """The mean of the teacher's unit vectors, and their ``dim`` directions of most variance. (n,), (n, dim)"""
    sample = F.normalize(torch.from_numpy(taught.tokens[:n_tokens]).float(), dim=-1)
    centre = sample.mean(0)
    _, directions = torch.linalg.eigh(torch.cov((sample - centre).T))
    return centre, directions.flip(1)[:, :dim].contiguous()


def make_targets(taught: Taught, centre: Tensor, directions: Tensor) -> Targets:
    """The teacher's vectors, centred, in their principal directions, of length one."""
    tokens = np.empty((len(taught.tokens), directions.shape[1]), dtype=np.float16)
    for begin in range(0, len(tokens), 50_000):
        part = torch.from_numpy(taught.tokens[begin : begin + 50_000]).float()
        projected = (F.normalize(part, dim=-1) - centre) @ directions
        tokens[begin : begin + 50_000] = F.normalize(projected, dim=-1).half().numpy()
    return Targets(taught.sentences.ids, taught.sentences.lengths, tokens)


def context_free(
    targets: Targets, alone: Targets, dim: int, prior: float = 10.0
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """The best prediction that knows no context: a token's mean target, in eight bits, and a scale per token.

    ``alone`` has the targets of every token of the vocabulary on its own; these count as ``prior`` occurrences, so that
    a rare token does not give its only sentence away. (n_vocabulary, dim), (n_vocabulary, 1)
    """
    sums = torch.zeros(len(alone.ids), dim)
    sums[torch.from_numpy(alone.ids)] = prior * torch.from_numpy(alone.tokens[:, :dim]).float()
    counts = torch.full((len(sums), 1), prior)
    for begin in range(0, len(targets.ids), 200_000):
        ids = torch.from_numpy(targets.ids[begin : begin + 200_000])
        sums.index_add_(0, ids, torch.from_numpy(targets.tokens[begin : begin + 200_000, :dim]).float())
        counts.index_add_(0, ids, torch.ones(len(ids), 1))
    means = sums / counts
    means /= means.square().mean().sqrt()  # entries of about 1, as the static vectors have
    scale = (means.abs().amax(1, keepdim=True).clamp(min=1e-6) / 127).numpy()
    return np.round(means.numpy() / scale).astype(np.int8), scale


def batches(lengths: Integers, batch_tokens: int, rng: np.random.Generator) -> Iterator[Integers]:
    """Sentences of like length together, in random order; every sentence once."""
    # A little noise on the lengths: other neighbours in each epoch.
    order = np.argsort(lengths + rng.random(len(lengths)) * 2)
    total = np.cumsum(lengths[order])
    cuts = np.searchsorted(total, np.arange(batch_tokens, total[-1], batch_tokens))
    parts = [part for part in np.split(order, cuts) if len(part) > 1]
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


def distill(
    config: DistillConfig, module: StudentModule, targets: Targets, held_out: Targets, checkpoint: Path | None = None
) -> list[dict[str, float]]:
    """Train ``module`` in place; the learning rate rises for a short while, then falls to 0. Resumes a checkpoint."""
    optimizers = make_optimizers(config, module)
    rng = np.random.default_rng(config.seed)
    n_steps = int(config.epochs * int(targets.lengths.sum()) / config.batch_tokens)
    step, spent, log = 0, 0.0, []
    if checkpoint is not None and checkpoint.exists():
        state: dict[str, Any] = torch.load(checkpoint, weights_only=True)
        module.load_state_dict(state["module"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        step, spent, log = state["step"], state["spent"], state["log"]
        rng = np.random.default_rng(config.seed + step)
    begin = time.perf_counter() - spent
    running = np.zeros(3)
    done = False
    while not done:
        for numbers in batches(targets.lengths, config.batch_tokens, rng):
            spent = time.perf_counter() - begin
            share = spent / config.seconds if config.seconds else step / n_steps
            if share >= 1:
                done = True
                break
            rate = min(1.0, (step + 1) / 200) * (1 - share)
            for optimizer in optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = config.learning_rate * rate
            parts = _step(config, module, optimizers, targets.batch(numbers))
            running = 0.99 * running + 0.01 * parts if step else parts
            step += 1
            if step % config.log_steps == 0:
                log.append({"step": step, "seconds": spent, "share": share, "train": running.tolist()})
                log[-1]["held_out"] = evaluate(module, held_out)
                logger.info("%s", log[-1])
                if checkpoint is not None:
                    saved = [optimizer.state_dict() for optimizer in optimizers]
                    state = {"module": module.state_dict(), "optimizers": saved}
                    torch.save({**state, "step": step, "spent": spent, "log": log}, checkpoint)
    log.append({"step": step, "seconds": spent, "train": running.tolist(), "held_out": evaluate(module, held_out)})
    logger.info("%s", log[-1])
    return log


def make_optimizers(config: DistillConfig, module: StudentModule) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for the rest; or AdamW for everything."""
    hidden = [
        value
        for name, value in module.layers.named_parameters()
        if name.endswith("weight") and config.optimizer == "muon"
    ]
    chosen = set(map(id, hidden))
    rest = [value for value in module.parameters() if id(value) not in chosen]
    found: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    ]
    if hidden:
        found.append(
            torch.optim.Muon(hidden, lr=config.learning_rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
        )
    return found


def _step(
    config: DistillConfig,
    module: StudentModule,
    optimizers: list[torch.optim.Optimizer],
    batch: tuple[Tensor, Tensor, Tensor],
) -> npt.NDArray[np.float64]:
    ids, inside, target = batch
    with torch.autocast("cpu", torch.bfloat16):
        predicted = module(ids, inside)
    token, sentence, pairs = losses(predicted[inside].float(), target, inside, module.norms[ids[inside]])
    module.zero_grad()
    (token + config.sentence_weight * sentence + config.pair_weight * pairs).backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
    return np.array([token.item(), sentence.item(), pairs.item()])


@torch.inference_mode()
def evaluate(module: StudentModule, held_out: Targets) -> list[float]:
    """The three losses on sentences that it was not trained on."""
    parts = []
    for numbers in batches(held_out.lengths, 3072, np.random.default_rng(0)):
        ids, inside, target = held_out.batch(numbers)
        args = (module(ids, inside)[inside], target, inside, module.norms[ids[inside]])
        parts.append([part.item() for part in losses(*args)])
    return np.mean(parts, 0).tolist()
