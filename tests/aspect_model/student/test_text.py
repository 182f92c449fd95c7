"""The text that the student is distilled on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from awatt.aspect_model.student.text import cut, misspell, read_texts, vary
from awatt.data.fewasp import DATASETS


def write_shared(folder: Path) -> None:
    for name in ("yelp_aspect", "intents", "unlabelled"):
        (folder / name).mkdir()
    rows = "1\tGreat soup .\tfood\tpositive\n2\tKept for testing\tfood\tpositive\n"
    (folder / "yelp_aspect" / "restaurant.txt").write_text(rows)
    (folder / "intents" / "bank.jsonl").write_text(json.dumps({"text": "Where is my card?", "aspects": []}) + "\n")
    (folder / "unlabelled" / "movies.txt").write_text("A fine film.\n\ngreat soup!\n")


def write_datasets(folder: Path) -> None:
    for dataset in DATASETS:
        (folder / dataset).mkdir(parents=True)
        for split, text in (("train", "Nice room"), ("val", "kept for testing"), ("test", "kept for testing")):
            (folder / dataset / f"{split}.json").write_text(json.dumps({"food": [[text.split(), ["food"]]]}))


def test_the_text_has_every_sentence_once_and_none_that_is_held_out(tmp_path: Path) -> None:
    write_shared(tmp_path)
    write_datasets(tmp_path / "datasets")
    (tmp_path / "more.txt").write_text("A bank beside a river\nKept for testing.\na fine film\n")
    found = read_texts(tmp_path, tmp_path / "datasets", [tmp_path / "more.txt"])
    assert found == ["Nice room", "Great soup .", "Where is my card?", "A fine film.", "A bank beside a river"]


def test_a_piece_is_neighbouring_words() -> None:
    rng = np.random.default_rng(0)
    text = " ".join(map(str, range(20)))
    for _ in range(20):
        piece = list(map(int, cut(text, rng).split()))
        assert piece == list(range(piece[0], piece[-1] + 1))
        assert 2 <= len(piece) <= 12


def test_a_typing_error_changes_letters_of_one_word_only() -> None:
    rng = np.random.default_rng(0)
    found = {misspell("ab", rng) for _ in range(40)}
    # Left out, doubled or swapped, once or twice.
    assert found <= {"b", "aab", "ba", "aaab", "abab", "aba", "ab", "bba", "a", "baab"}
    assert {"b", "aab", "ba"} <= found


def test_variations_depend_on_the_seed_only() -> None:
    texts = ["the soup was great", "where is my card", "a fine film"]
    first = vary(texts, 50, seed=1)
    assert first == vary(texts, 50, seed=1)
    assert first != vary(texts, 50, seed=2)
    assert len(first) == 50
