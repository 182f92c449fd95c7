"""Splitting into sentences, and from tokens to whole words."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from awatt.detector.words import deciding_words, split_sentences


def test_the_weights_of_a_words_tokens_are_summed() -> None:
    text = "The cheesecake is tasty!"
    offsets = [(0, 3), (4, 10), (10, 14), (15, 17), (18, 20), (20, 23), (23, 24)]
    words = deciding_words(text, offsets, np.array([0.1, 0.2, 0.1, 0.1, 0.1, 0.2, 0.2]))
    assert [(word.text, word.start, word.end) for word in words] == [("cheesecake", 4, 14), ("tasty", 18, 23)]
    assert [word.weight for word in words] == [0.375, 0.375]  # of 0.8: punctuation does not count


def test_words_are_at_most_five() -> None:
    text = "a b c d e f g h i j k l m n"
    offsets = [(place, place + 1) for place in range(0, 27, 2)]
    words = deciding_words(text, offsets, np.full(14, 1 / 14))
    assert [(word.start, word.end) for word in words] == [(2 * n, 2 * n + 1) for n in range(5)]


def test_texts_without_deciding_words() -> None:
    assert deciding_words("", [], np.zeros(0)) == []
    assert deciding_words("?!", [(0, 1), (1, 2)], np.array([0.5, 0.5])) == []
    assert deciding_words("ab", [(0, 2)], np.array([0.0])) == []


def test_an_emoji_can_be_a_deciding_word() -> None:
    assert [word.text for word in deciding_words("ok 😀", [(0, 2), (3, 4)], np.array([0.1, 0.9]))] == ["😀"]


def test_the_last_word_of_a_truncated_text_stays_whole() -> None:
    words = deciding_words("good cheesecake here", [(0, 4), (5, 11)], np.array([0.2, 0.8]))
    assert [word.text for word in words] == ["cheesecake"]


def test_sentences_have_the_right_offsets() -> None:
    text = "  Dr. Yu paid $3.50. Great!\r\n\n no end\nlast one? "
    assert list(split_sentences(text)) == [
        (2, "Dr. Yu paid $3.50."),
        (21, "Great!"),
        (31, "no end"),
        (38, "last one?"),
    ]
    assert all(text[start : start + len(part)] == part for start, part in split_sentences(text))
    assert list(split_sentences(" \n ")) == []


@given(
    st.lists(st.sampled_from(["A", "seat B", ".", "!", " ", "\u00a0", "\u2003", "\u3000", "é", "😀", "\n"])).map(
        "".join
    )
)
@example("We got seat B\u00a0. It was good.")  # sentencex panicked
def test_blanks_of_any_width_are_kept(text: str) -> None:
    found = list(split_sentences(text))
    assert all(text[start : start + len(part)] == part == part.strip() for start, part in found)
    assert "".join("".join(part.split()) for _, part in found) == "".join(text.split())
