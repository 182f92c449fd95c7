"""Whether texts are English."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

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


def test_detect_did_not_mention_that_texts_are_not_english(run: Callable[..., Any], tmp_path: Path) -> None:
    (reviews := tmp_path / "reviews.txt").write_text(
        "\n".join(OTHERS["German"].format(name) for name in "abcdefghijkl")
    )
    assert run("save", tmp_path / "saved", "--aspects", "food").code == 0
    for given in (("--aspects", "food"), ("--model", tmp_path / "saved")):
        code, _, err = run("detect", reviews, *given)
        assert (code, "awatt: most sentences do not seem to be English" in err) == (0, True)
    reviews.write_text("\n".join(f"The soup of table {number} was cold." for number in range(12)))
    assert "English" not in run("detect", reviews, "--aspects", "food").err
