"""Suggested aspects: what do these sentences talk about?"""

from __future__ import annotations

from typing import Any

import pytest

from awatt import AspectDetector, suggest_aspects
from awatt.detector.models import load_model
from awatt.detector.new_aspects import Topics
from awatt.errors import AwattError

TEXTS = [
    *["The waiter was rude.", "Our waitress forgot us.", "A waiter spilled the wine.", "The waitress was very kind."],
    *["The waiters were slow.", "We loved our waitress."],
    *["The battery died.", "A new battery is expensive.", "My battery lasts a week.", "The battery was great."],
    *["It was great.", "We loved it.", "So good!", "I will come again.", "The front desk was closed."],
    *["The front desk called us.", "We asked the front desk."],
]


def test_words_that_mean_the_same_are_one_suggestion_and_praise_is_none() -> None:
    found = suggest_aspects(TEXTS)
    assert [each.name for each in found] == ["waitress", "battery", "front desk"]
    assert set(found[0].words) == {"waiter", "waitress"}  # "waiters" occurs once
    assert [each.count for each in found] == [5, 4, 3]


def test_a_suggestion_has_three_different_sentences_with_its_words() -> None:
    twice = [*TEXTS, TEXTS[6], TEXTS[6]]
    for each in suggest_aspects(twice):
        shown = [twice[number] for number in each.sentences]
        assert len(set(shown)) == 3
        assert all(any(word in text.lower() for word in each.words) for text in shown)


def test_the_number_of_suggestions_is_as_asked_and_some_can_be_skipped() -> None:
    assert len(suggest_aspects(TEXTS, count=1)) == 1
    model = load_model()
    topics = Topics.of(TEXTS, model)
    rest = topics.suggest(model, 2, skip=lambda name, members: name == "battery" and len(members) == 4)
    assert [each.name for each in rest] == ["waitress", "front desk"]
    with pytest.raises(AwattError, match="at least 1"):
        suggest_aspects(TEXTS, count=0)


@pytest.mark.parametrize("number", [1.5, "3", None, True, 0, -1])
def test_a_number_of_suggestions_that_is_none_was_rounded_or_a_raw_error(number: Any) -> None:
    needed = rf"is {number!r}, but needs a whole number, at least 1\.$"
    with pytest.raises(AwattError, match=f"^the number of aspects {needed}"):
        suggest_aspects(TEXTS, number)
    with pytest.raises(AwattError, match=f"^k {needed}"):
        AspectDetector.from_names(["food"]).suggest(TEXTS, k=number)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("abc", "found the single text 'abc', but a list of texts is needed"),
        (type("Table", (list,), {"columns": ["text"]})(["text"]), "found a table, but a list of texts is needed"),
        ([None], "text number 0 is None, but a string is needed"),
        (b"abc", "found b'abc', but a list of texts is needed"),
    ],
)
def test_nothing_was_suggested_from_what_is_no_list_of_texts(texts: Any, message: str) -> None:
    with pytest.raises(AwattError, match=message):
        suggest_aspects(texts)


@pytest.mark.parametrize("texts", [[], [""], ["!!!", "42"], ["Nice."] * 3])
def test_nothing_is_suggested_where_there_is_nothing(texts: list[str]) -> None:
    assert suggest_aspects(texts) == []


def test_other_languages_are_grouped_without_knowing_their_nouns() -> None:
    texts = ["Der Akku ist schwach.", "Akku leer, leider.", "Mein Akku hält lange.", "Das Display ist hell."]
    assert "akku" in [each.name for each in suggest_aspects(texts)]


def test_the_same_sentences_give_the_same_suggestions_with_the_accurate_model_too() -> None:
    names = [each.name for each in suggest_aspects(TEXTS, model="accurate")]
    assert "battery" in names
    assert suggest_aspects(TEXTS) == suggest_aspects(text for text in TEXTS)
