"""Names as first examples, and input that teaches nothing."""

from __future__ import annotations

import numpy as np
import pytest

from awatt.arrays import Sentences
from awatt.aspect_model.checks import check_examples
from awatt.aspect_model.names import LabelledSentences, add_names, name_words
from awatt.errors import AwattError


@pytest.mark.parametrize(
    ("name", "words"),
    [("battery", "battery"), ("food#style_options", "food style options"), ("BatteryLife", "Battery Life"), ("2", "")],
)
def test_a_name_in_words(name: str, words: str) -> None:
    assert name_words(name) == words


def _tokenize(texts: list[str]) -> Sentences:
    return Sentences(np.array([len(text) for text in texts]), np.ones(len(texts), dtype=np.int64))


def test_names_stand_behind_the_examples() -> None:
    given = LabelledSentences(Sentences(np.array([7, 8]), np.array([2])), np.array([[True, False]]))
    found = add_names(given, ["food", "3"], np.array([True, False]), _tokenize)
    assert found.sentences.ids.tolist() == [7, 8, 4]
    assert found.labels.tolist() == [[True, False], [True, False]]


def test_a_name_alone_is_enough() -> None:
    nothing = LabelledSentences(
        Sentences(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)), np.zeros((0, 1), dtype=bool)
    )
    assert add_names(nothing, ["food"], np.array([True]), _tokenize).labels.tolist() == [[True]]


def _unknown(name: str) -> bool:
    return False


def test_an_only_example_without_words_is_named() -> None:
    with pytest.raises(AwattError, match=r"'\?\?\?' of aspect 'food' has no words"):
        check_examples(["???", "A bus."], np.array([[True, False], [False, True]]), ["food", "b"], _unknown)


def test_an_example_without_words_beside_others_or_a_name_is_accepted() -> None:
    check_examples(["Good pizza.", "👍"], np.ones((2, 1), dtype=bool), ["food"], _unknown)
    check_examples(["👍"], np.ones((1, 1), dtype=bool), ["food"], lambda name: name == "food")


def test_an_off_topic_sentence_without_words_is_accepted_and_tells_nothing_apart() -> None:
    check_examples(["Good pizza.", "👍"], np.array([[True], [False]]), ["food"], _unknown)
    labels = np.array([[True, True], [False, False]])
    with pytest.raises(AwattError, match="every example mentions both"):
        check_examples(["Nice pizza, nice waiter.", "👍"], labels, ["food", "service"], _unknown)


def test_examples_that_all_carry_every_aspect_tell_nothing_apart() -> None:
    with pytest.raises(AwattError, match="every example mentions both 'food' and 'service'"):
        check_examples(["Nice pizza, nice waiter."], np.ones((1, 2), dtype=bool), ["food", "service"], _unknown)


def test_one_aspect_may_be_in_every_example() -> None:
    check_examples(["Good pizza."], np.ones((1, 1), dtype=bool), ["food"], _unknown)


def test_two_aspects_may_share_their_examples_beside_a_third() -> None:
    labels = np.array([[1, 1, 0], [0, 0, 1]], dtype=bool)
    check_examples(["One thing.", "Another thing."], labels, ["a", "b", "c"], _unknown)
