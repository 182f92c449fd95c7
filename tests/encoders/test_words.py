"""The word tokeniser splits as the benchmark does, and its offsets point into the text as it was given."""

import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from awatt.data.fewasp import read_fewasp
from awatt.encoders.words import UNKNOWN, build_vocabulary, split_words, word_tokenizer

TOKENIZER = word_tokenizer([UNKNOWN, "the", "staff", "i"])


def covered(text: str) -> list[str]:
    return [text[start:end] for start, end in TOKENIZER.encode(text).offsets]


def test_joined_tokens_of_each_benchmark_file_split_the_same(shared: Path) -> None:
    paths = sorted((shared / "data" / "fewasp").glob("*/*.json"))
    assert paths
    for path in paths:
        instances = [instance.tokens for group in read_fewasp(path).values() for instance in group]
        same = sum(split_words(TOKENIZER, " ".join(tokens)) == list(tokens) for tokens in instances)
        assert same / len(instances) >= 0.999, path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I didn't like it, the staff's rude!", "i did n't like it , the staff 's rude !"),
        ("I didn’t like it, the staff’s rude!", "i did n't like it , the staff 's rude !"),
        ("It's GREAT. We'll be back.", "it 's great . we 'll be back ."),
        (
            "They've said we can't; I'd say I'm sure they're wrong",
            "they 've said we ca n't ; i 'd say i 'm sure they 're wrong",
        ),
        ('The "best" “soup” ever', "the `` best `` `` soup `` ever"),
        ("Cannot wait, gonna eat (again)", "can not wait , gon na eat ( again )"),
        ("Dr. Lee charged $5.99 at 10:30, 20% off", "dr. lee charged $ 5.99 at 10:30 , 20 % off"),
        ("Hmm... so-so -- meh", "hmm ... so-so -- meh"),
        ("the guests' rooms", "the guests ' rooms"),
        ("all you can eat 1,000 dishes", "all you can eat 1,000 dishes"),
        ("Great food 😀 really", "great food 😀 really"),
    ],
)
def test_raw_text_splits_as_the_benchmark_would(text: str, words: str) -> None:
    assert split_words(TOKENIZER, text) == words.split(" ")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("I didn't like it!", ["I", "did", "n't", "like", "it", "!"]),
        ("The STAFF’s “rude”.", ["The", "STAFF", "’s", "“", "rude", "”", "."]),
        ("😀😀 The staff's 🍕!", ["😀😀", "The", "staff", "'s", "🍕", "!"]),
        ("  Café İstanbul’s\tnaïve\n", ["Café", "İstanbul", "’s", "naïve"]),
        ('He said "no".', ["He", "said", '"', "no", '"', "."]),
        ("👩‍🍳 didn't cook", ["👩‍🍳", "did", "n't", "cook"]),
    ],
)
def test_offsets_point_into_the_text_as_given(text: str, pieces: list[str]) -> None:
    assert covered(text) == pieces


def test_ids_are_places_in_the_vocabulary_whatever_the_case() -> None:
    assert TOKENIZER.encode("The STAFF saw I the").ids == [1, 2, 0, 3, 1]


@pytest.mark.parametrize("text", ["", " ", "\n", " \t\r\n  "])
def test_empty_and_blank_text_has_no_words(text: str) -> None:
    assert split_words(TOKENIZER, text) == []
    assert TOKENIZER.encode(text).ids == []


@pytest.mark.parametrize(
    "unit", ["a", ".", "a. ", "'", '"', "n't", " ", "a.'", "a.) ", "😀", "It's so good, I can't! "]
)
def test_a_line_of_100000_characters_is_split(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    offsets = TOKENIZER.encode(text).offsets
    assert sum(end - begin for begin, end in offsets) <= 100_000
    assert bool(offsets) == bool(text.strip())


# Whitespace as Unicode and the tokeniser know it; Python's isspace adds the separators U+001C to U+001F.
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="`\x1c\x1d\x1e\x1f"), max_size=60)
REVIEWS = st.lists(
    st.sampled_from(
        ["I", "didn't", "can’t", "staff's", '"', "''", "“", "”", "...", ".", ",", "!", "(", ")", "😀", "É", "İ"]
    ),
    max_size=12,
).flatmap(lambda words: st.sampled_from([" ", "", "\t", "  "]).map(lambda gap: gap.join(words)))


@settings(max_examples=300)
@given(st.one_of(TEXTS, REVIEWS))
def test_offsets_increase_stay_inside_and_cover_no_whitespace(text: str) -> None:
    place = 0
    for start, end in TOKENIZER.encode(text).offsets:
        assert place <= start < end <= len(text)
        assert not any(letter.isspace() for letter in text[start:end])
        place = end


@settings(max_examples=200)
@given(st.one_of(TEXTS, REVIEWS))
def test_encoding_and_splitting_see_the_same_words(text: str) -> None:
    assert len(split_words(TOKENIZER, text)) == len(TOKENIZER.encode(text).ids)


@settings(max_examples=200)
@given(st.text(string.ascii_letters + string.digits + " ,!?()'", max_size=60))
def test_plain_text_is_covered_completely(text: str) -> None:
    if "''" not in text:  # two apostrophes are a quote, of which the offsets keep the last
        assert "".join(covered(text)) == "".join(text.split())


def test_the_tokeniser_survives_saving() -> None:
    text = "The staff’s “rude”, I didn't go."
    again = Tokenizer.from_str(TOKENIZER.to_str())
    assert again.encode(text).ids == TOKENIZER.encode(text).ids
    assert again.encode(text).offsets == TOKENIZER.encode(text).offsets


@pytest.mark.parametrize("vocabulary", [[], ["the", UNKNOWN]])
def test_a_vocabulary_that_does_not_begin_with_unknown_is_refused(vocabulary: list[str]) -> None:
    with pytest.raises(ValueError, match=r"a vocabulary must begin with '\[UNK\]', found "):
        word_tokenizer(vocabulary)


def test_vocabulary_begins_with_unknown_then_needed_then_frequent_words() -> None:
    found = build_vocabulary(["the", "of", "and", "soup", "waiter"], {"waiter", "soup"}, limit=5)
    assert found == [UNKNOWN, "soup", "waiter", "the", "of"]


def test_needed_words_stay_whatever_the_limit() -> None:
    assert build_vocabulary(["the", "soup", "waiter"], ["soup", "waiter"], limit=1) == [UNKNOWN, "soup", "waiter"]


def test_needed_words_without_a_vector_are_unknown() -> None:
    assert build_vocabulary(["the", "of"], ["xyzzy", "of"], limit=10) == [UNKNOWN, "of", "the"]


@given(st.lists(st.sampled_from(string.ascii_lowercase), unique=True), st.sets(st.sampled_from(string.ascii_lowercase)),
       st.integers(1, 40))  # fmt: skip
def test_vocabulary_has_no_word_twice_and_keeps_its_limit(frequent: list[str], needed: set[str], limit: int) -> None:
    found = build_vocabulary(frequent, needed, limit)
    known = needed & set(frequent)
    assert found[0] == UNKNOWN
    assert len(set(found)) == len(found)
    assert known <= set(found) <= {UNKNOWN, *frequent}
    assert len(found) == max(1 + len(known), min(limit, 1 + len(frequent)))
