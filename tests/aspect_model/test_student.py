"""The student: the same numbers as in torch, in any batch, and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file

from awatt.aspect_model import student as student_module
from awatt.aspect_model.student import Layer, Linear, Student, encode, quantise, read_student
from awatt.matcher import BUNDLED, Matcher
from awatt.packed import Sentences, ranges, starts

torch = pytest.importorskip("torch")

from awatt.aspect_model.student_module import StudentConfig, StudentModule, dequantised, export  # noqa: E402

WORDS = 300
CONFIG = StudentConfig(
    width=32, n_heads=2, key_width=8, n_layers=3, hidden=48, stem_hidden=40, reach=3, dim=16, extra=8
)


@pytest.fixture(scope="module")
def parts() -> tuple[StudentModule, Student, npt.NDArray[np.float32]]:
    """A student with random weights: in torch, in numpy, and the static vectors."""
    rng = np.random.default_rng(1)
    static = rng.normal(size=(WORDS, 24)).astype(np.float32)
    table, scale = quantise(rng.normal(size=(8, WORDS)).astype(np.float32))
    extra, extra_scale = np.ascontiguousarray(table.T), scale[:, None]
    torch.manual_seed(1)
    module = StudentModule(CONFIG, np.concatenate([static, extra * extra_scale], 1))
    for value in module.parameters():
        value.data.normal_(0, 0.3)
    tensors = {**export(module), "extra": extra, "extra_scale": extra_scale}
    return dequantised(module), read_student(tensors), static


def draw(n_sentences: int) -> Sentences:
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 40, n_sentences)
    return Sentences(rng.integers(0, WORDS, lengths.sum()), lengths)


def run(student: Student, static: npt.NDArray[np.float32], sentences: Sentences) -> npt.NDArray[np.float32]:
    ids, places = np.unique(sentences.ids, return_inverse=True)
    return encode(student, ids, static[ids], places, sentences.lengths)


def test_numpy_and_torch_give_the_same_vectors(parts):
    module, student, static = parts
    sentences = draw(40)
    found = run(student, static, sentences)
    assert found.shape == (len(sentences.ids), 16)
    np.testing.assert_allclose((found**2).sum(-1), 1, atol=1e-5)
    with torch.inference_mode():
        for number, (begin, length) in enumerate(zip(starts(sentences.lengths), sentences.lengths, strict=True)):
            ids = torch.from_numpy(sentences.ids[begin : begin + length])[None]
            wanted = torch.nn.functional.normalize(module(ids, torch.ones_like(ids).bool())[0], dim=-1)
            np.testing.assert_allclose(found[begin : begin + length], wanted, atol=1e-5, err_msg=str(number))


def test_torch_ignores_padding(parts):
    module, _, _ = parts
    ids = torch.arange(12).reshape(2, 6)
    inside = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    with torch.inference_mode():
        padded = module(ids, inside)[1, :4]
        torch.testing.assert_close(padded, module(ids[1:, :4], inside[1:, :4])[0], atol=1e-5, rtol=1e-5)


def test_a_sentence_has_the_same_vectors_to_the_last_bit_in_every_batch(parts):
    _, student, static = parts
    sentences = draw(400)
    everything = run(student, static, sentences)
    first = starts(sentences.lengths)
    rng = np.random.default_rng(3)
    for size in (1, 2, 7, 60, 150):
        numbers = rng.choice(400, size, replace=False)
        found = run(student, static, sentences.take(numbers))
        assert np.array_equal(found, everything[ranges(first[numbers], sentences.lengths[numbers])])


def test_a_repeated_sentence_is_computed_once_and_given_every_time(parts):
    _, student, static = parts
    numbers = np.array([3, 1, 3, 3, 0, 1])
    sentences = draw(5)
    everything = run(student, static, sentences)
    first = starts(sentences.lengths)
    found = run(student, static, sentences.take(numbers))
    assert np.array_equal(found, everything[ranges(first[numbers], sentences.lengths[numbers])])


def test_no_sentences(parts):
    _, student, static = parts
    nothing = np.zeros(0, dtype=np.int64)
    assert encode(student, nothing, static[:0], nothing, nothing).shape == (0, 16)


def test_quantised_weights_are_within_half_a_step():
    weight = np.array([[1.0, -0.5], [0.3, 0.25]], dtype=np.float32)
    eighth, scale = quantise(weight)
    assert eighth.tolist() == [[127, -127], [38, 64]]  # 0.3 * 127 = 38.1 and 0.25 / 0.5 * 127 = 63.5, to even
    np.testing.assert_allclose(scale, [1 / 127, 0.5 / 127], rtol=1e-6)


def test_attention_by_hand():
    """One layer that only attends: equal scores but for the distance, so weights are known in advance."""
    eye, nothing = np.eye(2, dtype=np.float32), np.zeros((2, 2), dtype=np.float32)
    none = np.zeros(2, dtype=np.float32)
    zero = Linear(nothing, none)
    # No queries or keys: scores are the bias alone, log 3 for a token's own place and 0 for the others.
    read = Linear(np.concatenate([nothing, eye], 1), np.zeros(4, dtype=np.float32))
    bias = np.log(np.array([[1, 3, 1]], dtype=np.float32))
    identity = Linear(eye, none)
    layer = Layer(read, bias, identity, zero, zero)
    table = (np.zeros((2, 0), np.int8), np.ones((2, 1), np.float32))
    student = Student(*table, identity, zero, zero, (layer,), identity)
    # Rows of root mean square 1: the normalised input is the input. Token 0 is (s, 0), token 1 (0, s), s = sqrt 2.
    static = np.sqrt(2).astype(np.float32) * eye
    found = encode(student, np.arange(2), static, np.array([0, 1]), np.array([2]))
    # Token 0: (s, 0) + (3/4) (s, 0) + (1/4) (0, s), which points to (7, 1).
    np.testing.assert_allclose(found[0], np.array([7, 1]) / np.sqrt(50), atol=1e-5)
    np.testing.assert_allclose(found[1], np.array([1, 7]) / np.sqrt(50), atol=1e-5)


WEIGHTS = Path(student_module.__file__).parent / "weights" / "student.safetensors"


def test_the_shipped_student_and_the_static_vectors_are_at_most_16_mb():
    files = [WEIGHTS, *(BUNDLED / name for name in ("model.safetensors", "tokenizer.json"))]
    assert sum(file.stat().st_size for file in files) <= 16e6


def test_the_shipped_student_gives_unit_vectors_that_depend_on_the_context():
    matcher = Matcher.load()
    student = read_student(load_file(WEIGHTS))
    sentences = matcher.tokenize(["the bank charged my account twice", "we sat on the bank of the river"])
    ids, places = np.unique(sentences.ids, return_inverse=True)
    vectors, norms = matcher.vectors(ids)
    found = encode(student, ids, vectors * norms, places, sentences.lengths)
    np.testing.assert_allclose((found**2).sum(-1), 1, atol=1e-4)
    money, river = found[sentences.ids == matcher.tokenizer.token_to_id("bank")]
    assert money @ river < 0.99
