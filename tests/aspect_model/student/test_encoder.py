"""The student: the same numbers as in torch, in any batch, and by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from awatt.arrays import Sentences, ranges, starts
from awatt.aspect_model.model import ACCURATE, BUNDLED, AspectModel
from awatt.aspect_model.student import encoder as encoder_module
from awatt.aspect_model.student.encoder import (
    Linear,
    StoredLayers,
    StoredLinear,
    Student,
    StudentEncoder,
    quantise,
    read_student,
)
from awatt.aspect_model.vectors import Table

torch = pytest.importorskip("torch")

from awatt.aspect_model.student.module import StudentConfig, StudentModule, export  # noqa: E402

Parts = tuple[StudentModule, StudentEncoder]
WORDS = 300
CONFIG = StudentConfig(
    width=32, n_heads=2, key_width=8, n_layers=3, hidden=48, stem_hidden=40, reach=3, dim=16, extra=8
)


def dequantise(module: StudentModule) -> StudentModule:
    """Round the weights to eight bits, as `read_student` gets them."""
    with torch.no_grad():
        for part in module.eval().modules():
            if isinstance(part, torch.nn.Linear):
                weight, scale = quantise(part.weight.numpy().T)
                part.weight.copy_(torch.from_numpy((weight * scale).T))
    return module


@pytest.fixture(scope="module")
def parts() -> Parts:
    return make_parts()


def make_parts() -> Parts:
    """A student with random weights: in torch and in numpy."""
    rng = np.random.default_rng(1)
    static = Table(rng.integers(-127, 128, (WORDS, 24)).astype(np.int8), *np.full((2, WORDS, 1), 0.1, np.float32))
    table, scale = quantise(rng.normal(size=(8, WORDS)).astype(np.float32))
    extra, extra_scale = np.ascontiguousarray(table.T), scale[:, None]
    torch.manual_seed(1)
    vectors = np.concatenate([static.table * np.float32(0.01), extra * extra_scale], 1)
    module = StudentModule(CONFIG, vectors)
    for value in module.parameters():
        value.data.normal_(0, 0.3)
    tensors = {**export(module), "extra": extra, "extra_scale": extra_scale}
    return dequantise(module), StudentEncoder(read_student(tensors), static)


def draw(n_sentences: int) -> Sentences:
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 40, n_sentences)
    return Sentences(rng.integers(0, WORDS, lengths.sum()), lengths)


@pytest.mark.parametrize(("largest_sum", "tolerance"), [(None, 2e-3), (2.0**40, 1e-5)])
def test_numpy_and_torch_give_the_same_vectors(
    largest_sum: float | None, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As exactly as the rounding of rows allows, and to 1e-5 with rows that are hardly rounded."""
    if largest_sum is not None:
        monkeypatch.setattr(encoder_module, "_EXACT", largest_sum)
    module, encoder = make_parts()
    sentences = draw(40)
    found = encoder(sentences)
    assert found.shape == (len(sentences.ids), 16)
    np.testing.assert_allclose((found**2).sum(-1), 1, atol=1e-5)
    with torch.inference_mode():
        for number, (begin, length) in enumerate(zip(starts(sentences.lengths), sentences.lengths, strict=True)):
            ids = torch.from_numpy(sentences.ids[begin : begin + length])[None]
            wanted = torch.nn.functional.normalize(module(ids, torch.ones_like(ids).bool())[0], dim=-1)
            np.testing.assert_allclose(found[begin : begin + length], wanted, atol=tolerance, err_msg=str(number))


@pytest.mark.parametrize("n_in", [1, 33, 512])
def test_products_are_exact_wherever_a_row_stands(n_in: int) -> None:
    """BLAS adds in another order for rows at other places, and in other batches."""
    rng = np.random.default_rng(n_in)
    weight, scale = quantise(rng.standard_normal((n_in, 40)).astype(np.float32))
    weight[:, 0] = 127
    linear = Linear.of(StoredLinear(weight, scale, np.zeros(40, np.float32)))
    rows = rng.standard_normal((200, n_in)).astype(np.float32) ** 3
    rows[0], rows[1] = 1e4, 0  # one sign in the whole row, as in the first column of weights: the largest sum
    for method in (linear, linear.of_normalised):
        found = method(rows)
        for first, count in ((0, 1), (0, 2), (1, 1), (3, 7), (50, 64), (99, 101)):
            assert np.array_equal(method(rows[first : first + count]), found[first : first + count])
    # bounds of the rounding: half a step of each number of a row, times the weights
    step = np.linalg.norm(rows, axis=1, keepdims=True) / linear.norm
    wanted = rows.astype(np.float64) @ (weight * scale.astype(np.float64))
    bound = (np.abs(weight) * scale).sum(0) * step / 2
    assert (np.abs(linear(rows) - wanted) <= bound + 1e-6 * np.abs(wanted) + 1e-3).all()


def test_torch_ignores_padding(parts: Parts) -> None:
    module, _ = parts
    ids = torch.arange(12).reshape(2, 6)
    inside = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    with torch.inference_mode():
        padded = module(ids, inside)[1, :4]
        torch.testing.assert_close(padded, module(ids[1:, :4], inside[1:, :4])[0], atol=1e-5, rtol=1e-5)


def test_a_sentence_has_the_same_vectors_to_the_last_bit_in_every_batch(parts: Parts) -> None:
    _, encoder = parts
    sentences = draw(400)
    everything = encoder(sentences)
    first = starts(sentences.lengths)
    rng = np.random.default_rng(3)
    for size in (1, 2, 7, 60, 150):
        numbers = rng.choice(400, size, replace=False)
        found = encoder(sentences.take(numbers))
        assert np.array_equal(found, everything[ranges(first[numbers], sentences.lengths[numbers])])


def test_no_sentences(parts: Parts) -> None:
    _, encoder = parts
    nothing = np.zeros(0, dtype=np.int64)
    assert encoder(Sentences(nothing, nothing)).shape == (0, 16)


def test_quantised_weights_are_within_half_a_step() -> None:
    weight = np.array([[1.0, -0.5], [0.3, 0.25]], dtype=np.float32)
    eighth, scale = quantise(weight)
    assert eighth.tolist() == [[127, -127], [38, 64]]  # 0.3 * 127 = 38.1 and 0.25 / 0.5 * 127 = 63.5, to even
    np.testing.assert_allclose(scale, [1 / 127, 0.5 / 127], rtol=1e-6)


def linear(weight: npt.NDArray[np.int8]) -> StoredLinear:
    shape = (*weight.shape[:-2], weight.shape[-1])
    return StoredLinear(weight, np.ones(shape, np.float32), np.zeros(shape, np.float32))


def test_attention_by_hand() -> None:
    """One layer that only attends: equal scores but for the distance, so weights are known in advance."""
    eye, nothing = np.eye(2, dtype=np.int8), np.zeros((2, 2), dtype=np.int8)
    # No queries or keys: scores are the bias alone, log 3 for a token's own place and 0 for the others.
    read = linear(np.concatenate([nothing, eye], 1)[None])
    bias = np.log(np.array([[[1, 3, 1]]], dtype=np.float32))
    layers = StoredLayers(read, bias, linear(eye[None]), linear(nothing[None]), linear(nothing[None]))
    extra = (np.zeros((2, 0), np.int8), np.ones((2, 1), np.float32))
    student = Student(*extra, linear(eye), linear(nothing), linear(nothing), layers, linear(eye))
    # Rows of root mean square 1: the normalised input is the input. Token 0 is (s, 0), token 1 (0, s), s = sqrt 2.
    static = Table(eye, np.ones((2, 1), np.float32), np.full((2, 1), np.sqrt(2), np.float32))
    found = StudentEncoder(student, static)(Sentences(np.array([0, 1]), np.array([2])))
    # Token 0: (s, 0) + (3/4) (s, 0) + (1/4) (0, s), which points to (7, 1).
    np.testing.assert_allclose(found[0], np.array([7, 1]) / np.sqrt(50), atol=1e-5)
    np.testing.assert_allclose(found[1], np.array([1, 7]) / np.sqrt(50), atol=1e-5)


def test_both_models_of_the_package_are_at_most_16_mb() -> None:
    files = [path for folder in (BUNDLED, ACCURATE) for path in folder.iterdir()]
    assert sum(path.stat().st_size for path in files) <= 16e6


def test_the_shipped_student_gives_unit_vectors_that_depend_on_the_context() -> None:
    model = AspectModel.load(ACCURATE)
    sentences = model.tokenize(["the bank charged my account twice", "we sat on the bank of the river"])
    assert model.weights.student is not None
    found = StudentEncoder(model.weights.student, model.weights.vectors)(sentences)
    np.testing.assert_allclose((found**2).sum(-1), 1, atol=1e-4)
    money, river = found[sentences.ids == model.tokenizer.token_to_id("bank")]
    assert money @ river < 0.99
