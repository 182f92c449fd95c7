"""Vectors in context: laid beside the static ones by hand, and computed once per sentence."""

from __future__ import annotations

import numpy as np

from awatt.arrays import Sentences
from awatt.aspect_model.context import Memory
from awatt.aspect_model.model import ACCURATE, AspectModel
from awatt.aspect_model.vectors import lay_beside


def test_vectors_side_by_side_have_norm_1() -> None:
    words, norms = np.eye(2, dtype=np.float32), np.array([[1.0], [3]], dtype=np.float32)
    context = np.array([[1.0], [1], [-1]], dtype=np.float32)
    found = lay_beside(words, norms, np.array([0, 1, 1]), context, np.array([2, 1]))
    half = 0.5**0.5
    np.testing.assert_allclose(found.tokens, [[half, 0, half], [0, half, half], [0, half, -half]], atol=1e-6)
    # The first mean: (1, 3) / sqrt 10 in words, 1 in context, each times sqrt 1/2.
    np.testing.assert_allclose(found.means[0], [half / 10**0.5, 3 * half / 10**0.5, half], atol=1e-6)
    assert found.rows.tolist() == [0, 1, 2]


def test_sentences_to_score_have_the_vectors_of_those_to_learn_from() -> None:
    vectors = AspectModel.load(ACCURATE).vectors
    sentences = vectors.tokenize(["the soup was cold", "cold", "the waiter was cold and the soup was not"])
    to_score, to_learn = vectors.read(sentences), vectors.embed(sentences)
    np.testing.assert_array_equal(to_score.means, to_learn.means)
    directions = to_learn.means  # any unit vectors
    found = to_score.spread(to_score.cosines(directions))
    np.testing.assert_allclose(found, to_learn.spread(to_learn.cosines(directions)), atol=1e-7)


class Counted:
    """The first id of the sentence, for each of its tokens."""

    def __init__(self) -> None:
        self.sentences: list[list[int]] = []

    def __call__(self, sentences: Sentences) -> np.ndarray:  # type: ignore[type-arg]
        parts = np.split(sentences.ids, np.cumsum(sentences.lengths)[:-1]) if len(sentences.lengths) else []
        self.sentences += [part.tolist() for part in parts]
        rows = [np.full((len(part), 1), part[0], np.float32) for part in parts]
        return np.concatenate([np.zeros((0, 1), np.float32), *rows])


def pack(*sentences: list[int]) -> Sentences:
    lengths = np.array([len(each) for each in sentences], dtype=np.int64)
    return Sentences(np.array([number for each in sentences for number in each], dtype=np.int64), lengths)


def test_a_repeated_sentence_is_computed_once_and_given_every_time() -> None:
    context = Counted()
    memory = Memory(context)
    assert memory(pack([1, 2], [3], [1, 2])).tolist() == [[1], [1], [3], [1], [1]]
    assert memory(pack([3], [4, 1], [1, 2])).tolist() == [[3], [4], [4], [1], [1]]
    assert sorted(context.sentences) == [[1, 2], [3], [4, 1]]
    assert memory(pack()).shape == (0, 1)


def test_the_oldest_sentences_are_forgotten() -> None:
    context = Counted()
    memory = Memory(context, n_tokens=3)
    for sentence in ([1, 2], [3], [4], [3], [1, 2]):
        assert memory(pack(sentence))[0] == sentence[0]
    assert context.sentences == [[1, 2], [3], [4], [1, 2]]
    assert memory(pack([5] * 9)).shape == (9, 1)  # more than it can keep
