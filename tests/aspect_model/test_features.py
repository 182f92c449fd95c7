"""The bundled model's equations, compared with plain loops and between numpy and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from awatt.arrays import segment_sums, unit, weighted_sums
from awatt.aspect_model import features as module
from awatt.aspect_model.features import (
    EmbeddedSentences,
    Features,
    Fitted,
    Parameters,
    embed,
    features,
    fit,
    logits,
)

DIM = 6


def make_parameters(seed: int = 0) -> Parameters:
    rng = np.random.default_rng(seed)
    sizes = [(len(Features._fields), 5), (5, 4), (4, 1)]
    centre = rng.normal(0, 0.1, DIM)
    layers = [(rng.normal(0, 1, (width, height)), rng.normal(0, 1, height)) for width, height in sizes]
    (weight_1, bias_1), (weight_2, bias_2), (weight_3, bias_3) = layers
    found = Parameters(
        mean_share=-0.4,
        log_attention=1.0,
        log_word=1.0,
        log_nearest=1.0,
        log_penalty=-2.0,
        log_attended_penalty=-1.5,
        log_background=-1.0,
        centre=centre,
        weight_1=weight_1,
        bias_1=bias_1,
        weight_2=weight_2,
        bias_2=bias_2,
        weight_3=weight_3,
        bias_3=bias_3,
    )
    return Parameters(*(np.asarray(value, dtype=np.float32) for value in found))


def make_sentences(lengths: list[int], seed: int) -> EmbeddedSentences:
    rng = np.random.default_rng(seed)
    tokens = unit(rng.normal(0, 1, (sum(lengths), DIM)).astype(np.float32))
    norms = rng.uniform(0.5, 2, (sum(lengths), 1)).astype(np.float32)
    return embed(tokens, norms, np.arange(len(tokens)), np.array(lengths))


PARAMETERS = make_parameters()
EXAMPLES, BACKGROUND, SENTENCES = (
    make_sentences([3, 1, 5, 2, 4], 1),
    make_sentences([4, 2, 6], 2),
    make_sentences([2, 7, 1], 3),
)
LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=np.float32)
NAMES = unit(np.random.default_rng(4).normal(0, 1, (3, DIM)).astype(np.float32))


def probabilities(
    examples: EmbeddedSentences = EXAMPLES,
    labels: Any = LABELS,
    names: Any = NAMES,
    sentences: EmbeddedSentences = SENTENCES,
) -> np.ndarray[Any, Any]:
    fitted = fit(PARAMETERS, examples, labels, BACKGROUND, names)
    return logits(PARAMETERS, features(PARAMETERS, fitted, sentences))


def take(line: EmbeddedSentences, numbers: list[int]) -> EmbeddedSentences:
    ends = np.cumsum(line.lengths)
    rows = np.concatenate([np.arange(ends[number] - line.lengths[number], ends[number]) for number in numbers])
    return EmbeddedSentences(line.tokens, line.rows[rows], line.means[numbers], line.lengths[numbers])


def in_torch(line: EmbeddedSentences) -> EmbeddedSentences:
    return line._replace(tokens=torch.from_numpy(line.tokens), means=torch.from_numpy(line.means))


@pytest.mark.parametrize(("rows", "dim"), [(12, 30), (40, 9)])
def test_ridge_and_left_out_predictions_equal_those_of_refitting(rows: int, dim: int) -> None:
    rng = np.random.default_rng(0)
    seen, truth = rng.normal(size=(2, rows, dim)), np.sign(rng.normal(size=(2, rows)))
    weights, penalty = rng.uniform(0.1, 1, (2, rows)), np.float64(0.3)
    found, left_out = module._ridge(seen, truth, weights, penalty, 4)

    def plain(x: Any, y: Any, w: Any) -> Any:
        return np.linalg.solve((x.T * w) @ x + penalty * np.eye(dim), (x.T * w) @ y)

    for number in range(2):
        np.testing.assert_allclose(found[number], plain(seen[number], truth[number], weights[number]), rtol=1e-8)
        for row in range(4):
            rest = np.arange(rows) != row
            without = plain(seen[number][rest], truth[number][rest], weights[number][rest])
            assert left_out[number, row] == pytest.approx(seen[number, row] @ without, rel=1e-6, abs=1e-9)


def test_numpy_and_torch_agree() -> None:
    parameters = Parameters(*(torch.from_numpy(value) for value in PARAMETERS))
    lines = [in_torch(line) for line in (EXAMPLES, BACKGROUND, SENTENCES)]
    fitted = fit(parameters, lines[0], torch.from_numpy(LABELS), lines[1], torch.from_numpy(NAMES))
    found = logits(parameters, features(parameters, fitted, lines[2]))
    np.testing.assert_allclose(found.numpy(), probabilities(), atol=1e-5)


def test_every_parameter_has_a_gradient() -> None:
    parameters = Parameters(*(torch.tensor(value, requires_grad=True) for value in PARAMETERS))
    lines = [in_torch(line) for line in (EXAMPLES, BACKGROUND, SENTENCES)]
    # Without names too: missing ones must not turn gradients into NaN.
    for names in (NAMES, 0 * NAMES):
        fitted = fit(parameters, lines[0], torch.from_numpy(LABELS), lines[1], torch.from_numpy(names))
        logits(parameters, features(parameters, fitted, lines[2])).square().sum().backward()
        assert all(torch.isfinite(value.grad).all() for value in parameters if value.grad is not None)
    assert [name for name, value in parameters._asdict().items() if value.grad is None or not value.grad.any()] == []


def test_the_order_of_aspects_does_not_matter() -> None:
    order = [2, 0, 1]
    np.testing.assert_allclose(
        probabilities(labels=LABELS[:, order], names=NAMES[order]), probabilities()[:, order], atol=1e-4
    )


def test_the_order_of_examples_does_not_matter() -> None:
    order = [3, 0, 4, 2, 1]
    found = probabilities(examples=take(EXAMPLES, order), labels=LABELS[order])
    np.testing.assert_allclose(found, probabilities(), atol=1e-4)


def test_a_sentence_does_not_depend_on_the_others() -> None:
    whole = probabilities()
    for number in range(3):
        np.testing.assert_allclose(probabilities(sentences=take(SENTENCES, [number]))[0], whole[number], atol=1e-5)


def test_fitting_many_aspects_in_groups_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = probabilities()
    monkeypatch.setattr(module, "_MAX_NUMBERS", 1)
    np.testing.assert_allclose(probabilities(), whole, atol=1e-5)


def test_one_aspect_with_one_example_gives_finite_scores() -> None:
    found = probabilities(take(EXAMPLES, [0]), LABELS[:1, :1], NAMES[:1])
    assert found.shape == (3, 1)
    assert np.isfinite(found).all()


def test_the_attended_score_applies_the_classifier_to_attended_vectors() -> None:
    fitted = fit(PARAMETERS, EXAMPLES, LABELS, BACKGROUND, NAMES)
    seen = module._attended_vectors(
        PARAMETERS, SENTENCES, fitted.attention_classifier
    )  # (n_aspects, n_sentences, dim + 1)
    expected = np.einsum("asd,ad->sa", seen, fitted.classifier)
    np.testing.assert_allclose(module.raw_scores(PARAMETERS, fitted, SENTENCES).attended, expected, atol=1e-5)


def test_attention_sums_to_one_over_a_sentence() -> None:
    fitted = fit(PARAMETERS, EXAMPLES, LABELS, BACKGROUND, NAMES)
    weights = module.attention(PARAMETERS, fitted, SENTENCES)
    assert (weights > 0).all()
    np.testing.assert_allclose(segment_sums(weights, SENTENCES.lengths), 1, atol=1e-5)


def test_only_the_first_examples_are_compared_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NEAREST", 1)
    fitted: Fitted = fit(PARAMETERS, EXAMPLES, LABELS, BACKGROUND, NAMES)
    # The first example for the first aspect, the second for the second, the fourth for the third.
    np.testing.assert_array_equal(fitted.example_labels, LABELS[[0, 1, 3]])


def test_weighted_sums_against_a_loop() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 9, 150)  # more than a block
    weights, vectors = rng.normal(size=(lengths.sum(), 2)), rng.normal(size=(lengths.sum(), 3))
    ends = np.cumsum(lengths)
    expected = np.stack(
        [weights[end - n : end].T @ vectors[end - n : end] for end, n in zip(ends, lengths, strict=True)], 1
    )
    np.testing.assert_allclose(weighted_sums(weights, vectors, lengths), expected, atol=1e-12)
    np.testing.assert_allclose(
        weighted_sums(torch.from_numpy(weights), torch.from_numpy(vectors), lengths).numpy(), expected, atol=1e-12
    )


def test_aspects_with_the_same_examples_have_no_lead_over_each_other() -> None:
    values = np.array([[0.5, 0.5], [0.2, 0.7]])
    np.testing.assert_allclose(module._lead(values), [[0, 0], [-0.5, 0.5]])
    np.testing.assert_allclose(module._lead(np.array([[0.5, 0.5, 0.1]])), [[0, 0, -0.4]])
    np.testing.assert_allclose(module._lead(torch.from_numpy(values)).numpy(), [[0, 0], [-0.5, 0.5]])
