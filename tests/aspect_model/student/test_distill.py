"""Distillation: targets and losses by hand, and a tiny student that learns from a tiny teacher."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

torch = pytest.importorskip("torch")

from awatt.arrays import Sentences  # noqa: E402
from awatt.aspect_model.student.distill import (  # noqa: E402
    DistillConfig,
    batches,
    load_checkpoint,
    losses,
    make_student,
    save_checkpoint,
)
from awatt.aspect_model.student.encoder import StudentEncoder, quantise, read_student  # noqa: E402
from awatt.aspect_model.student.module import StudentConfig, StudentModule  # noqa: E402
from awatt.aspect_model.student.targets import Targets, context_free, make_targets  # noqa: E402
from awatt.aspect_model.student.teacher import Taught  # noqa: E402
from awatt.aspect_model.transformer import Projection  # noqa: E402
from awatt.aspect_model.vectors import Table  # noqa: E402
from awatt.errors import DataError  # noqa: E402


def test_losses_by_hand() -> None:
    predicted = torch.tensor([[2.0, 0], [0, 3], [0, 1]])
    target = torch.tensor([[1.0, 0], [1, 0], [0, 1]])
    inside = torch.tensor([[True, True], [True, False]])
    token, sentence, pairs = losses(predicted, target, inside, torch.tensor([[1.0], [1], [1]]))
    assert token.item() == pytest.approx(1 / 3)  # cosines 1, 0, 1
    half = 0.5**0.5  # the first mean points to (1, 1), it should to (1, 0)
    assert sentence.item() == pytest.approx((1 - half) / 2)
    assert pairs.item() == pytest.approx(2 * half**2 / 4)  # the two sentences should be at a right angle
    # A token without any norm has no part in the mean.
    _, sentence, _ = losses(predicted, target, inside, torch.tensor([[1.0], [0], [1]]))
    assert sentence.item() == pytest.approx(0, abs=1e-6)


def test_a_sentence_is_in_one_batch_at_most_with_others_of_like_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 50, 500)
    found = list(batches(lengths, 256, np.random.default_rng(1)))
    numbers = np.concatenate(found)
    assert len(numbers) == len(set(numbers.tolist())) >= 495  # a batch of one sentence has no pairs
    assert all(np.ptp(lengths[part]) <= 6 for part in found)


def test_principal_directions_keep_what_varies_most() -> None:
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(4000, 3)) * [3, 0.1, 1] + [0, 5, 0]
    directions = Projection.fit(torch.from_numpy(tokens), 2).directions
    assert directions.shape == (3, 2)
    assert abs(directions[0, 0].item()) > 0.9
    assert abs(directions[2, 1].item()) > 0.9


def test_context_free_predictions_are_means_with_a_prior() -> None:
    east, north = [1.0, 0], [0, 1.0]
    alone = Targets(np.arange(2), np.ones(2, np.int64), np.array([east, north], dtype=np.float16))
    seen = Targets(np.array([0, 0]), np.array([2]), np.array([north, north], dtype=np.float16))
    table, scale = context_free(seen, alone, dim=2, prior=2)
    found = table * scale
    # Token 0: two times itself alone and two times north, half of each; token 1 was not seen, and is as it is alone.
    np.testing.assert_allclose(found / found[1, 1], [[0.5, 0.5], [0, 1]], atol=0.01)
    assert table.dtype == np.int8


def test_a_small_student_learns_what_depends_on_the_neighbour() -> None:
    """The target of a token is the static vector of the token before it: no table can know it."""
    rng = np.random.default_rng(0)
    table, scale = (array.T for array in quantise(rng.normal(size=(8, 20)).astype(np.float32)))
    stored = Table(np.ascontiguousarray(table), scale[:, None], np.ones((20, 1), np.float32))
    static = stored.table * stored.scale
    lengths = rng.integers(2, 9, 600)
    ids = rng.integers(0, 20, lengths.sum())
    tokens = static[np.roll(ids, 1)].astype(np.float16)
    taught = Taught(Sentences(ids, lengths), tokens)
    alone = Taught(Sentences(np.arange(20), np.ones(20, np.int64)), static.astype(np.float16))
    sizes = StudentConfig(
        width=32, n_heads=2, key_width=8, n_layers=1, hidden=32, stem_hidden=32, reach=2, dim=8, extra=4
    )
    config = DistillConfig(epochs=25, batch_tokens=256, learning_rate=1e-2, warm_up=10, n_held_out=100)
    tensors = make_student(taught, alone, static, sizes, config)
    found = StudentEncoder(read_student(tensors), stored)(Sentences(ids, lengths))
    targets = make_targets(taught, Projection.fit(torch.from_numpy(tokens), 8))
    inner = np.ones(len(ids), dtype=bool)
    inner[np.cumsum(lengths)[:-1]] = inner[0] = False  # the first of each sentence has none before it
    assert (found * targets.tokens).sum(-1)[inner].mean() > 0.8
    assert tensors["extra"].shape == (20, 4)


def test_a_stopped_training_is_resumed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    static = rng.normal(size=(20, 8)).astype(np.float32)
    lengths = np.full(200, 4)
    ids = rng.integers(0, 20, 800)
    taught = Taught(Sentences(ids, lengths), static[ids].astype(np.float16))
    alone = Taught(Sentences(np.arange(20), np.ones(20, np.int64)), static.astype(np.float16))
    sizes = StudentConfig(
        width=16, n_heads=1, key_width=4, n_layers=1, hidden=8, stem_hidden=8, reach=1, dim=4, extra=2
    )
    config = DistillConfig(epochs=2, batch_tokens=64, warm_up=2, n_held_out=20, log_steps=5)
    path = tmp_path / "student.checkpoint"
    first = make_student(taught, alone, static, sizes, config, path)
    with caplog.at_level(logging.INFO):
        again = make_student(taught, alone, static, sizes, config, path)  # nothing is left to do
    assert not caplog.records
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]  # replaced as a whole, with nothing left over


def test_a_checkpoint_is_no_pickle_and_has_the_state_of_the_optimizer(tmp_path: Path) -> None:
    sizes = StudentConfig(
        width=16, n_heads=1, key_width=4, n_layers=1, hidden=8, stem_hidden=8, reach=1, dim=4, extra=2
    )

    def make(seed: int) -> tuple[StudentModule, torch.optim.Optimizer]:
        torch.manual_seed(seed)
        module = StudentModule(sizes, np.ones((20, 10), np.float32))
        return module, torch.optim.AdamW(module.parameters())

    def train(module: StudentModule, optimizer: torch.optim.Optimizer) -> None:
        ids = torch.arange(6).reshape(2, 3)
        module.zero_grad()
        module(ids, torch.ones(2, 3, dtype=torch.bool)).square().sum().backward()
        optimizer.step()

    path = tmp_path / "student.checkpoint"
    (module, optimizer), (other, its_optimizer) = make(0), make(1)
    train(module, optimizer)
    save_checkpoint(path, module, optimizer, 7)
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == {"step": "7"}
    assert load_checkpoint(path, other, its_optimizer) == 7
    for each in ((module, optimizer), (other, its_optimizer)):
        train(*each)  # the same step only if the moments are the same, too
    for first, second in zip(module.parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second)


def test_a_checkpoint_that_was_cut_short_is_named(tmp_path: Path) -> None:
    path = tmp_path / "student.checkpoint"
    path.write_bytes(b"\x80\x02}q\x00.")
    module = StudentModule(StudentConfig(extra=2), np.ones((20, 10), np.float32))
    with pytest.raises(DataError, match=r"student\.checkpoint: cannot be read .*Delete the file to start again\."):
        load_checkpoint(path, module, torch.optim.AdamW(module.parameters()))
