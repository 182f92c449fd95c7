"""Whether texts are English."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from awatt.detector.language import seems_english

OTHERS = {
    "German": "Das Essen war sehr gut, aber Kellner {} hat uns lange warten lassen und so war es in Ordnung.",
    "Dutch": "We hebben een uur of twee gewacht op ober {} en het eten was koud, maar de kamer is mooi.",
    "French": "La soupe était froide et le serveur {} a oublié notre commande, on ne reviendra pas ici.",
    "Spanish": "La comida estaba muy rica pero el camarero {} no nos hizo caso en toda la noche.",
    "Russian": "Еда была очень вкусной, но официант {} забыл про наш заказ и не извинился.",
}


def test_english_reviews_seem_english() -> None:
    lines = (files("awatt.data") / "sample.jsonl").read_text(encoding="utf-8").splitlines()
    assert seems_english(json.loads(line)["text"] for line in lines)


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages_do_not(language: str) -> None:
    assert not seems_english(OTHERS[language].format(name) for name in "abcdefghijkl")


def test_of_a_few_or_short_sentences_nothing_is_said() -> None:
    assert seems_english([OTHERS["German"].format("a")] * 20)
    assert seems_english(f"Sehr gut {number}!" for number in range(100))
