"""The bundled sample keeps its promises: enough of each kind, none twice, few that name their aspect."""

import json
import re
from importlib.resources import files
from itertools import combinations
from typing import Any

import pytest

ASPECTS = {
    "restaurant": ["food", "drinks", "service", "price", "ambience", "location"],
    "hotel": ["room cleanliness", "bed", "bathroom", "breakfast", "pool", "staff"],
    "laptop": ["battery life", "keyboard", "screen", "performance", "customer support"],
}
PAIRS = [(domain, aspect) for domain, aspects in ASPECTS.items() for aspect in aspects]

RAW = (files("awatt") / "data" / "sample.jsonl").read_bytes().decode("utf-8")
RECORDS: list[dict[str, Any]] = [json.loads(line) for line in RAW.splitlines()]


def words(text: str) -> set[str]:
    """Lower-case words without a plural s, so that `drink` counts as the name of `drinks`."""
    return {word.removesuffix("s") for word in re.findall(r"[\w']+", text.casefold())}


def of_domain(domain: str) -> list[dict[str, Any]]:
    return [record for record in RECORDS if record["domain"] == domain]


def of_aspect(domain: str, aspect: str) -> list[dict[str, Any]]:
    return [record for record in of_domain(domain) if aspect in record["aspects"]]


def test_file_has_one_object_a_line_and_ends_with_a_newline() -> None:
    assert RAW.endswith("}\n")
    assert "\r" not in RAW
    assert "\n\n" not in RAW
    assert not RAW.startswith("\ufeff")


def test_schema() -> None:
    for record in RECORDS:
        assert list(record) == ["domain", "text", "aspects"], record
        assert record["domain"] in ASPECTS, record
        assert isinstance(record["text"], str), record
        # Known, none twice, and always in the same order.
        known = ASPECTS[record["domain"]]
        assert record["aspects"] == [aspect for aspect in known if aspect in record["aspects"]], record


def test_text_is_a_tidy_sentence_of_4_to_40_words() -> None:
    for record in RECORDS:
        text = record["text"]
        assert text == " ".join(text.split()), record
        assert 4 <= len([token for token in text.split() if re.search(r"\w", token)]) <= 40, record


def test_no_text_twice() -> None:
    folded = [" ".join(record["text"].casefold().split()) for record in RECORDS]
    assert len(folded) == len(set(folded))


def test_no_near_copies() -> None:
    """Two sentences share less than half of their words (Jaccard)."""
    sentences = [(record["text"], words(record["text"])) for record in RECORDS]
    near = [
        (text_a, text_b)
        for (text_a, words_a), (text_b, words_b) in combinations(sentences, 2)
        if len(words_a & words_b) >= 0.5 * len(words_a | words_b)
    ]
    assert not near


@pytest.mark.parametrize(("domain", "aspect"), PAIRS)
def test_each_aspect_has_14_sentences_and_10_of_its_own(domain: str, aspect: str) -> None:
    found = of_aspect(domain, aspect)
    assert len(found) >= 14
    assert sum(record["aspects"] == [aspect] for record in found) >= 10


@pytest.mark.parametrize("domain", ASPECTS)
def test_each_domain_has_sentences_with_several_aspects_and_with_none(domain: str) -> None:
    sizes = [len(record["aspects"]) for record in of_domain(domain)]
    assert sum(size >= 2 for size in sizes) >= 15
    assert sizes.count(0) >= 12


@pytest.mark.parametrize(("domain", "aspect"), PAIRS)
def test_fewer_than_half_of_the_sentences_say_the_aspects_name(domain: str, aspect: str) -> None:
    """Any word of the name counts as the name: `battery` alone gives `battery life` away."""
    found = of_aspect(domain, aspect)
    named = [record["text"] for record in found if words(aspect) & words(record["text"])]
    assert len(named) < len(found) / 2


@pytest.mark.parametrize("domain", ASPECTS)
def test_sentences_without_an_aspect_name_none(domain: str) -> None:
    names = set().union(*(words(aspect) for aspect in ASPECTS[domain]))
    assert not [r["text"] for r in of_domain(domain) if not r["aspects"] and words(r["text"]) & names]
