"""The learner on the bundled vectors: what must hold whatever the weights are."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from awatt.arrays import logistic
from awatt.aspect_model.classifiers import shown_attention
from awatt.aspect_model.estimates import estimate_quality
from awatt.aspect_model.learner import (
    MOST_TABULATED,
    LearnedAspects,
    TrainedParts,
    learn,
    left_out_probabilities,
    probabilities,
    tabulate_words,
)
from awatt.aspect_model.model import AspectModel
from awatt.aspect_model.names import LabelledSentences
from awatt.aspect_model.network import SCORE_COLUMNS, compute_logits, condition
from awatt.aspect_model.packing import pack, unpack
from awatt.data.corpus import load_sample

ASPECTS = ["food", "service", "price"]
TEXTS = [
    "The pizza was delicious.",
    "Our waiter was rude.",
    "Far too expensive for what it is.",
    "We came on a Monday.",
]
LABELS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)


@cache
def model() -> TrainedParts:
    return AspectModel.load().parts


@cache
def reviews() -> tuple[str, ...]:
    return load_sample().sentences[:60]


def teach(texts: list[str], labels: np.ndarray, names: list[str], with_file: bool = True) -> LearnedAspects:  # type: ignore[type-arg]
    tokenize = model().vectors.tokenize
    file = tokenize(reviews()) if with_file else None
    return learn(model(), LabelledSentences(tokenize(texts), labels), names, file)


def scores(learned: LearnedAspects, texts: list[str]) -> np.ndarray:  # type: ignore[type-arg]
    return probabilities(model(), learned, model().vectors.tokenize(texts))


@pytest.mark.parametrize("with_file", [True, False])
def test_examples_are_recognised(with_file: bool) -> None:
    found = scores(teach(TEXTS, LABELS, ASPECTS, with_file), ["The pasta was tasty.", "The waitress was friendly."])
    assert found[0].argmax() == 0
    assert found[1].argmax() == 1


def test_names_alone_detect() -> None:
    learned = teach([], np.zeros((0, 3), dtype=bool), ASPECTS)
    assert scores(learned, ["The food was great."])[0].argmax() == 0


def test_an_aspect_with_a_name_and_no_example_stands_beside_others() -> None:
    learned = teach(TEXTS[:2], LABELS[:2], ASPECTS)
    assert scores(learned, ["What a price!"])[0].argmax() == 2


def test_a_score_does_not_depend_on_the_batch() -> None:
    learned = teach(TEXTS, LABELS, ASPECTS)
    together = scores(learned, list(reviews()))
    alone = np.concatenate([scores(learned, [text]) for text in reviews()])
    np.testing.assert_allclose(together, alone, atol=1e-7)


@pytest.mark.parametrize("with_file", [True, False])
def test_looking_up_what_words_say_gives_the_same_scores_and_the_same_deciding_words(with_file: bool) -> None:
    learned, bundled = teach(TEXTS, LABELS, ASPECTS, with_file), AspectModel.load()
    table = tabulate_words(model(), learned)
    assert table is not None
    for texts in (list(reviews()), list(reviews()[:7]), ["", "Unheard-of zyzzyva soup"]):  # known words and new ones
        sentences = model().vectors.tokenize(texts)
        np.testing.assert_allclose(
            probabilities(model(), learned, sentences, table), scores(learned, texts), rtol=0, atol=1e-7
        )
        embedded = model().vectors.embed(sentences)
        np.testing.assert_array_equal(model().vectors.mean_vectors(sentences), embedded.means)
        computed = shown_attention(model().settings, learned.evidence.classifiers, embedded)
        np.testing.assert_allclose(bundled.word_weights(learned, sentences), computed, rtol=0, atol=1e-6)


def test_many_aspects_have_no_table_of_the_whole_vocabulary() -> None:
    names = [f"aspect {chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(MOST_TABULATED + 1)]
    learned = teach([], np.zeros((0, len(names)), dtype=bool), names, with_file=False)
    assert tabulate_words(model(), learned) is None


def test_the_same_input_gives_the_same_scores() -> None:
    first, second = (scores(teach(TEXTS, LABELS, ASPECTS), list(reviews())) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_more_of_a_score_is_never_less_likely() -> None:
    rng = np.random.default_rng(0)
    evidence = rng.normal(size=(50, 3, model().network.first.weights.shape[1] + 14))
    biases = condition(model().network, evidence[:1], None)
    before = compute_logits(model().network, biases, evidence)
    for column in SCORE_COLUMNS:
        more = evidence.copy()
        more[..., column] += 0.5
        assert (compute_logits(model().network, biases, more) >= before - 1e-9).all()


def test_thorough_expects_to_find_nine_in_ten() -> None:
    learned = teach(TEXTS, LABELS, ASPECTS)
    likely = logistic(learned.calibration.logits(learned.known_values))
    accepted = likely >= learned.thresholds.thorough
    assert ((likely * accepted).sum(0) >= 0.9 * likely.sum(0) - 1e-9).all()


def test_labels_as_they_come_calibrate() -> None:
    """Every fifth sentence of a file is labelled; the others are the file. With examples alone nothing changes."""
    sample = load_sample()
    columns = [sample.aspects.index(aspect) for aspect in ASPECTS]
    tokenize = model().vectors.tokenize
    file = tokenize([text for number, text in enumerate(sample.sentences) if number % 5])
    labelled = LabelledSentences(tokenize(sample.sentences[::5]), sample.mentions[::5][:, columns])
    learned = learn(model(), labelled, ASPECTS, file)
    assert learned.n_drawn > len(labelled.labels) / 2
    assert learned.calibration.shift.any()
    examples = learn(model(), LabelledSentences(tokenize(TEXTS[:3]), LABELS[:3]), ASPECTS, file)
    assert examples.n_drawn == 0
    assert not examples.calibration.shift.any()


def test_labelled_sentences_of_the_file_tell_how_frequent_aspects_are() -> None:
    """Every second sentence of a small file is labelled. Left to itself, the model expects too little of it."""
    sample = load_sample()
    texts, columns = list(reviews()), [sample.aspects.index(aspect) for aspect in ASPECTS]
    labels, tokenize = sample.mentions[: len(texts), columns], model().vectors.tokenize
    given, others = LabelledSentences(tokenize(texts[::2]), labels[::2]), tokenize(texts[1::2])
    with_labelled, without = (learn(model(), given, ASPECTS, file) for file in (tokenize(texts), others))
    assert with_labelled.n_drawn > without.n_drawn > 0
    expected = [probabilities(model(), learned, others).sum() for learned in (with_labelled, without)]
    assert expected[1] < expected[0] < labels[1::2].sum()


def test_precise_is_the_models_own_threshold_in_a_file_without_labels() -> None:
    """It used to ask for an expected precision of 90 % of probabilities that nothing has calibrated."""
    learned = teach(TEXTS, LABELS, ASPECTS)
    assert learned.thresholds.precise == pytest.approx(0.75)


@pytest.mark.parametrize("with_file", [True, False])
@pytest.mark.parametrize("n_labelled", [0, 12, 40])
def test_thorough_is_never_stricter_than_balanced_nor_that_than_precise(n_labelled: int, with_file: bool) -> None:
    sample = load_sample()
    columns = [sample.aspects.index(aspect) for aspect in ASPECTS]
    texts = [*TEXTS, *sample.sentences[60 : 60 + n_labelled]]
    labels = np.concatenate([LABELS, sample.mentions[60 : 60 + n_labelled][:, columns]])
    cuts = teach(texts, labels, ASPECTS, with_file).thresholds
    assert (cuts.thorough <= cuts.balanced).all()
    assert (cuts.balanced <= cuts.precise).all()


def test_a_handful_of_examples_cannot_tell_how_good_it_is() -> None:
    learned = teach(TEXTS[:1], LABELS[:1, :1], ["food"], with_file=False)
    assert estimate_quality(learned, learned.thresholds.balanced) is None


def test_names_alone_cannot_tell_how_good_they_are() -> None:
    learned = teach([], np.zeros((0, 3), dtype=bool), ASPECTS)
    quality = estimate_quality(learned, learned.thresholds.balanced)
    assert quality is not None
    assert quality.macro_f1.low < quality.macro_f1.median < quality.macro_f1.high
    assert quality.macro_f1.high - quality.macro_f1.low > 0.25


@pytest.mark.parametrize("with_file", [True, False])
def test_what_was_learned_can_be_saved(with_file: bool) -> None:
    learned = teach(TEXTS, LABELS, ASPECTS, with_file)
    again = unpack(LearnedAspects, pack(learned))
    np.testing.assert_array_equal(scores(again, list(reviews())), scores(learned, list(reviews())))
    np.testing.assert_array_equal(again.thresholds.balanced, learned.thresholds.balanced)


def test_a_file_of_a_few_sentences_says_nothing() -> None:
    tokenize = model().vectors.tokenize
    given = LabelledSentences(tokenize(TEXTS), LABELS)
    few, none = (learn(model(), given, ASPECTS, file) for file in (tokenize(TEXTS[:3]), None))
    np.testing.assert_array_equal(scores(few, TEXTS), scores(none, TEXTS))


def test_the_same_sentence_in_capitals_does_not_predict_itself() -> None:
    corpus, parts = load_sample(), model()
    texts, labels = corpus.sentences[:60], corpus.mentions[:60]
    used = np.flatnonzero(labels.sum(0) > 1)
    labels, names = labels[:, used], [corpus.aspects[number] for number in used]
    once = LabelledSentences(parts.vectors.tokenize(texts), labels)
    twice = LabelledSentences(
        parts.vectors.tokenize([*texts, *map(str.upper, texts)]), np.concatenate([labels, labels])
    )
    found = []
    for given in (once, twice):
        learned = learn(parts, given, names)
        found.append(left_out_probabilities(parts, learned, given, names, None, lambda done, total: None)[:60])
    errors = [float(np.abs(each - labels).mean()) for each in found]
    assert errors[1] > 0.7 * errors[0]  # it was near 0
