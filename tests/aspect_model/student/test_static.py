"""Static vectors of several encoders in one table, and a student that reads it."""

import numpy as np
import pytest

from awatt.arrays import Sentences, unit
from awatt.aspect_model.student.encoder import StudentEncoder, quantise, read_student
from awatt.aspect_model.student.static import join_tables, read_other_vectors
from awatt.aspect_model.vectors import Table

torch = pytest.importorskip("torch")

from awatt.aspect_model.student.module import StudentConfig, StudentModule, export  # noqa: E402

N, DIM, EXTRA = 60, 8, 4


def random_table(width: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, width)).astype(np.float32)


def test_a_joined_table_keeps_the_mean_of_the_cosines() -> None:
    first, second = random_table(5, 0), random_table(3, 1)
    joined = join_tables([first, second], np.ones((N, 1), np.float32), 8)  # all directions: nothing is lost
    wanted = (unit(first) @ unit(first).T + unit(second) @ unit(second).T) / 2
    np.testing.assert_allclose(joined @ joined.T, wanted, atol=1e-5)


def test_heavy_tokens_choose_the_directions_of_a_joined_table() -> None:
    table = np.eye(4, dtype=np.float32)
    joined = join_tables([table], np.array([[1], [5], [1], [5]], np.float32), 2)
    assert np.abs(joined[[1, 3]]).max(1) == pytest.approx(1)


def as_table(vectors: np.ndarray) -> Table:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    stored, scale = quantise(np.ascontiguousarray(vectors.T))  # a scale per token
    lengths = np.linalg.norm(stored.T.astype(np.float32), axis=1, keepdims=True)
    assert scale.shape == (len(vectors),)
    return Table(stored.T, (1 / lengths).astype(np.float32), norms.astype(np.float32))


def full(table: Table) -> np.ndarray:
    return table.table * table.scale * table.norm


@pytest.mark.parametrize(("n_extra", "least"), [(DIM + EXTRA, 0.995), (EXTRA, 0.6)])
def test_a_student_reads_other_vectors_as_its_own(n_extra: int, least: float) -> None:
    old, new = as_table(random_table(DIM, 0)), as_table(random_table(DIM, 1))
    config = StudentConfig(
        width=16, n_heads=2, key_width=4, n_layers=2, hidden=16, stem_hidden=16, reach=2, dim=6, extra=EXTRA
    )
    torch.manual_seed(0)
    extra = np.random.default_rng(2).integers(-127, 127, size=(N, EXTRA)).astype(np.int8)
    scale = np.full((N, 1), 0.01, np.float32)
    module = StudentModule(config, np.concatenate([full(old), extra * scale], 1))
    tensors = {**export(module), "extra": extra, "extra_scale": scale}
    moved = read_other_vectors(tensors, full(old), full(new), np.arange(N), n_extra)
    assert moved["extra"].shape == (N, n_extra)
    sentences = Sentences(np.arange(N), np.full(N // 5, 5))
    before, after = (
        StudentEncoder(read_student(each), table)(sentences) for each, table in ((tensors, old), (moved, new))
    )
    assert (before * after).sum(1).mean() > least
    if n_extra == EXTRA:  # the table says what the vectors cannot
        without = StudentEncoder(read_student(tensors), new)(sentences)
        assert (before * after).sum(1).mean() > (before * without).sum(1).mean()
