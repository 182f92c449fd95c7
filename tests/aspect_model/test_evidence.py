"""Classifiers, evidence and networks: against plain loops, between numpy and torch, and what must not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from awatt.arrays import segment_sums, unit
from awatt.aspect_model import classifiers, evidence
from awatt.aspect_model.classifiers import Settings
from awatt.aspect_model.evidence import FEATURES, LearnedEvidence, compute_evidence, learn_evidence
from awatt.aspect_model.network import FACTS, SCORES, Layer, Network, compute_logits, condition
from awatt.aspect_model.packing import pack, unpack
from awatt.aspect_model.plain_network import PLAIN_FEATURES, PlainNetwork, compute_plain_logits
from awatt.aspect_model.vectors import EmbeddedSentences, embed

DIM = 6
RNG = np.random.default_rng(0)
SETTINGS = Settings(2.7, 2.7, 2.7, 0.4, 0.14, 0.22, 0.37, RNG.normal(0, 0.1, DIM).astype(np.float32))
PLAIN = PlainNetwork(
    *(
        RNG.normal(0, 1, shape).astype(np.float32)
        for shape in [(len(PLAIN_FEATURES), 5), (5,), (5, 4), (4,), (4, 1), (1,)]
    )
)


def make_layer(n_units: int, n_inputs: int) -> Layer:
    shapes = [(n_units, n_inputs), (n_units, len(FACTS)), (n_units, 3), (n_units,)]
    weights, facts, file, bias = (RNG.normal(0, 1, shape) for shape in shapes)
    return Layer(np.abs(weights), facts, file, bias)


NETWORK = Network(
    make_layer(6, len(SCORES)),
    make_layer(4, 6),
    make_layer(1, 4 + len(SCORES)),
    RNG.normal(size=(3, len(SCORES))),
    RNG.normal(size=3),
    np.full(len(FACTS), -1.0),
    np.full(len(FACTS), 1.0),
)


def make_sentences(lengths: list[int], seed: int) -> EmbeddedSentences:
    rng = np.random.default_rng(seed)
    tokens = unit(rng.normal(0, 1, (sum(lengths), DIM)).astype(np.float32))
    norms = rng.uniform(0.5, 2, (sum(lengths), 1)).astype(np.float32)
    return embed(tokens, norms, np.arange(len(tokens)), np.array(lengths))


EXAMPLES, BACKGROUND, SENTENCES, FILE = (
    make_sentences([3, 1, 5, 2, 4], 1),
    make_sentences([4, 2, 6], 2),
    make_sentences([2, 7, 1], 3),
    make_sentences([3, 3, 5, 1, 2, 4], 5),
)
LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=np.float32)
NAMES = unit(np.random.default_rng(4).normal(0, 1, (3, DIM)).astype(np.float32))


def learn(labels: Any = LABELS, names: Any = NAMES, file: EmbeddedSentences | None = FILE) -> LearnedEvidence:
    return learn_evidence(SETTINGS, EXAMPLES, labels, BACKGROUND, names, file)


def logits(
    examples: EmbeddedSentences = EXAMPLES,
    labels: Any = LABELS,
    names: Any = NAMES,
    sentences: EmbeddedSentences = SENTENCES,
    file: EmbeddedSentences | None = FILE,
) -> np.ndarray[Any, Any]:
    """Of both networks, one after the other. (2, n_sentences, n_aspects)"""
    learned = learn_evidence(SETTINGS, examples, labels, BACKGROUND, names, file)
    found = compute_evidence(SETTINGS, learned, sentences)
    of_file = None if file is None else compute_evidence(SETTINGS, learned, file).astype(np.float64)
    biases = condition(NETWORK, found[:1].astype(np.float64), of_file)
    return np.stack([compute_plain_logits(PLAIN, found), compute_logits(NETWORK, biases, found.astype(np.float64))])


def take(line: EmbeddedSentences, numbers: list[int]) -> EmbeddedSentences:
    ends = np.cumsum(line.lengths)
    rows = np.concatenate([np.arange(ends[number] - line.lengths[number], ends[number]) for number in numbers])
    return EmbeddedSentences(line.tokens, line.rows[rows], line.means[numbers], line.lengths[numbers])


def in_torch(value: Any) -> Any:
    torch = pytest.importorskip("torch")
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    return type(value)(*map(in_torch, value))


@pytest.mark.parametrize("file", [FILE, None])
def test_numpy_and_torch_agree(file: EmbeddedSentences | None) -> None:
    learned = learn(file=file)
    found = compute_evidence(SETTINGS, learned, SENTENCES)
    np.testing.assert_allclose(
        compute_plain_logits(in_torch(PLAIN), in_torch(found)).numpy(), compute_plain_logits(PLAIN, found), atol=1e-5
    )
    double = found.astype(np.float64)
    of_file = None if file is None else compute_evidence(SETTINGS, learned, file).astype(np.float64)
    biases = condition(NETWORK, double[:1], of_file)
    theirs = condition(in_torch(NETWORK), in_torch(double[:1]), None if of_file is None else in_torch(of_file))
    np.testing.assert_allclose(
        compute_logits(in_torch(NETWORK), theirs, in_torch(double)).numpy(),
        compute_logits(NETWORK, biases, double),
        atol=1e-9,
    )


@pytest.mark.parametrize("file", [FILE, None])
def test_the_order_of_aspects_does_not_matter(file: EmbeddedSentences | None) -> None:
    order = [2, 0, 1]
    found = logits(labels=LABELS[:, order], names=NAMES[order], file=file)
    np.testing.assert_allclose(found, logits(file=file)[..., order], atol=1e-4)


def test_the_order_of_examples_does_not_matter() -> None:
    order = [3, 0, 4, 2, 1]
    np.testing.assert_allclose(logits(take(EXAMPLES, order), LABELS[order]), logits(), atol=1e-4)


def test_the_order_of_the_file_does_not_matter() -> None:
    np.testing.assert_allclose(logits(file=take(FILE, [5, 2, 0, 1, 4, 3])), logits(), atol=1e-4)


def test_a_sentence_is_judged_alone() -> None:
    whole = logits()
    for number in range(3):
        alone = learn()
        found = compute_evidence(SETTINGS, alone, take(SENTENCES, [number]))
        np.testing.assert_allclose(compute_plain_logits(PLAIN, found)[0], whole[0, number], atol=1e-5)


def test_many_aspects_are_fitted_in_groups_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = logits()
    monkeypatch.setattr(classifiers, "_CELLS", 1)
    np.testing.assert_allclose(logits(), whole, atol=1e-4)


def test_one_aspect_and_one_example_give_numbers() -> None:
    found = logits(take(EXAMPLES, [0]), LABELS[:1, :1], NAMES[:1])
    assert found.shape == (2, 3, 1)
    assert np.isfinite(found).all()


def test_without_a_file_nothing_is_said_of_it() -> None:
    found = compute_evidence(SETTINGS, learn(file=None), SENTENCES)
    assert not found[..., [FEATURES.index(name) for name in FEATURES if "file" in name]].any()


def test_the_attended_score_is_the_last_classifiers_of_what_the_aspect_sees() -> None:
    fitted = learn().classifiers
    seen = np.empty((len(NAMES), len(SENTENCES.lengths), fitted.attention.shape[1]), dtype=np.float32)
    classifiers.attend(SETTINGS, SENTENCES, fitted.attention, seen)
    expected = np.einsum("asd,ad->sa", seen, fitted.attended)
    found = classifiers.score(SETTINGS, fitted, learn().examples, NAMES, SENTENCES)
    np.testing.assert_allclose(found.attended, expected, atol=1e-5)


def test_attention_is_a_share_of_each_sentence() -> None:
    weights = classifiers.shown_attention(SETTINGS, learn().classifiers, SENTENCES)
    assert (weights > 0).all()
    np.testing.assert_allclose(segment_sums(weights, SENTENCES.lengths), 1, atol=1e-5)


def test_only_the_first_examples_are_compared_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifiers, "NEAREST", 1)
    # Of the first aspect the first example, of the second aspect the second, of the third the fourth.
    np.testing.assert_array_equal(learn().examples.labels, LABELS[[0, 1, 3]])


def test_what_an_aspect_sees_against_a_loop() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 9, 150)  # more than a block
    tokens = unit(rng.normal(size=(40, 3))).astype(np.float32)
    sentences = embed(tokens, np.ones((40, 1), np.float32), rng.integers(0, 40, lengths.sum()), lengths)
    fitted = rng.normal(size=(2, 4)).astype(np.float32)
    seen = np.empty((2, 150, 4), dtype=np.float32)
    classifiers.attend(SETTINGS, sentences, fitted, seen)
    for number, rows in enumerate(np.split(sentences.rows, np.cumsum(lengths)[:-1])):
        weights = np.exp(SETTINGS.attention_temperature * tokens[rows] @ unit(fitted[:, :-1]).T)
        attended = (weights / weights.sum(0)).T @ tokens[rows]
        expected = (1 - SETTINGS.mean_share) * attended + SETTINGS.mean_share * sentences.means[number]
        np.testing.assert_allclose(seen[:, number], np.concatenate([expected, [[1], [1]]], 1), atol=1e-5)


def test_aspects_with_the_same_examples_have_no_lead_over_each_other() -> None:
    np.testing.assert_allclose(evidence._lead(np.array([[0.5, 0.5], [0.2, 0.7]])), [[0, 0], [-0.5, 0.5]])
    np.testing.assert_allclose(evidence._lead(np.array([[0.5, 0.5, 0.1]])), [[0, 0, -0.4]])


@pytest.mark.parametrize("file", [FILE, None])
def test_what_was_learned_is_packed_under_the_names_that_the_code_uses(file: EmbeddedSentences | None) -> None:
    learned = learn(file=file)
    packed = pack(learned)
    assert {"classifiers.attended", "facts.positives", "background.mean.word", "file_attended"} <= packed.keys()
    again = pack(unpack(LearnedEvidence, packed))
    assert again.keys() == packed.keys()
    for name, array in packed.items():
        np.testing.assert_array_equal(again[name], array)
