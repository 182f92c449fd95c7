"""The memory of words: the ids of the tokenizer, whatever the text, in little memory."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers

from awatt.aspect_model import word_cache
from awatt.aspect_model.model import BUNDLED
from awatt.aspect_model.word_cache import WordCache
from awatt.files import shared_folder
from awatt.folders import TOKENIZER

PIECES = ["food", "Food,", "[UNK]", "a[SEP]b", "didn't", "...", "check-in", "$5.50", "x" * 60, "y" * 150, " ", "  "]
PIECES += ["\t", "\n", "\x00", "\x0b", "\x1c", "\x7f", "\ufffd", "\u00a0", "\u200d", "e\u0301", "é", "字", "\U0001f600"]
PLAIN = st.text("aB1 .,'[]#", max_size=12)
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8), PLAIN)).map("".join)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(BUNDLED / TOKENIZER))


@pytest.fixture(scope="module")
def cache(tokenizer: Tokenizer) -> WordCache:
    return WordCache(tokenizer)


def ids_of(cache: WordCache, texts: list[str]) -> list[list[int]]:
    found = cache.tokenize(texts)
    return [part.tolist() for part in np.split(found.ids, np.cumsum(found.lengths))[: len(texts)]]


def expected(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in tokenizer.encode_batch(texts)]


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXTS, max_size=4))
def test_the_ids_are_those_of_the_tokenizer(tokenizer: Tokenizer, cache: WordCache, texts: list[str]) -> None:
    assert ids_of(cache, texts) == expected(tokenizer, texts)


def test_every_piece_alone_and_beside_others(tokenizer: Tokenizer, cache: WordCache) -> None:
    texts = [*PIECES, *(f"The {piece}was good{piece} today" for piece in PIECES), "", " ", " ".join(PIECES)]
    assert ids_of(cache, texts) == expected(tokenizer, texts) == ids_of(cache, texts)


def sentences() -> Iterator[str]:
    folder = shared_folder() / "data"
    for path in (*folder.glob("unlabelled/*.txt"), *folder.glob("yelp_aspect/*.txt")):
        with path.open(encoding="utf-8") as lines:
            yield from islice(map(str.strip, lines), 1000)


def test_sentences_of_real_files_have_the_ids_of_the_tokenizer(tokenizer: Tokenizer, cache: WordCache) -> None:
    texts = list(sentences())
    if not texts:
        pytest.skip("needs the benchmark's files; set AWATT_SHARED to their folder")
    assert ids_of(cache, texts) == expected(tokenizer, texts)


def test_the_memory_is_bounded(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "MOST_CHARACTERS", 200)
    cache = WordCache(tokenizer)
    for first in range(0, 60, 7):
        texts = [f"word{number} again {'z' * 51} word{number + 1}" for number in range(first, first + 4)]
        assert ids_of(cache, texts) == expected(tokenizer, texts)
        assert sum(map(len, cache._numbers)) <= 201


def test_another_kind_of_tokenizer_reads_the_text_itself(tokenizer: Tokenizer) -> None:
    other = Tokenizer.from_str(tokenizer.to_str())
    other.normalizer = normalizers.Sequence([normalizers.Replace("good food", "soup"), normalizers.Lowercase()])
    cache = WordCache(other)
    assert not cache.usable
    assert ids_of(cache, ["Very good food here"]) == expected(other, ["Very good food here"])
