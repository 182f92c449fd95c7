"""Deciding words with arrays: those that `deciding_words` finds text by text."""

import numpy as np
import pytest
from tokenizers import Tokenizer

from awatt.arrays import Sentences
from awatt.aspect_model.model import BUNDLED
from awatt.detector import marks
from awatt.detector.marks import Marker
from awatt.detector.words import deciding_words
from awatt.folders import TOKENIZER

TEXTS = [
    "The cheesecake is tasty, and the staff are friendly!",
    "It didn't cost $5.50 (check-in was 3.5/5) - naïve café 字",
    "two  spaces",
    " one before",
    "a",
    "!!!",
    "a tab\there, and zero\u200bwidth",
    "e\u0301clair \U0001f600 good_food ##ing [SEP]",
    "the best best best best best best best best burger",
    "x" * 150 + " long",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(BUNDLED / TOKENIZER))


def found_one_by_one(
    tokenizer: Tokenizer, sentences: Sentences, weights: np.ndarray, accepted: np.ndarray
) -> list[tuple[object, ...]]:
    parts = np.split(weights, np.cumsum(sentences.lengths)[:-1])
    return [
        (number, aspect, word.start, word.end, word.weight)
        for number, text in enumerate(TEXTS)
        for aspect in np.flatnonzero(accepted[number]).tolist()
        for word in deciding_words(text, tokenizer.encode(text).offsets[: len(parts[number])], parts[number][:, aspect])
    ]


@pytest.mark.parametrize("most_characters", [10, 400_000])
@pytest.mark.parametrize("max_length", [4, 256])
def test_the_words_are_those_of_single_texts(
    tokenizer: Tokenizer, max_length: int, most_characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "MOST_CHARACTERS", most_characters)
    marker, rng = Marker(tokenizer), np.random.default_rng(2)
    sentences = Sentences.from_texts(tokenizer, TEXTS, max_length, empty=0)
    for _ in range(5):
        weights = rng.random((len(sentences.ids), 3)).astype(np.float32) ** 8
        accepted = rng.random((len(TEXTS), 3)) < 0.6
        found = marker.mark(TEXTS, sentences, weights, accepted)
        columns = [column.tolist() for column in found[:4]]
        assert list(zip(*columns, found.weights, strict=True)) == found_one_by_one(
            tokenizer, sentences, weights, accepted
        )
