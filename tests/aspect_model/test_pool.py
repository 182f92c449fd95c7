"""The text that the student is distilled on."""

from __future__ import annotations

import json

import numpy as np

from awatt.aspect_model import pool
from awatt.data.fewasp import DATASETS


def write_shared(folder):
    for name in ("yelp_aspect", "intents", "unlabelled"):
        (folder / name).mkdir()
    rows = "1\tGreat soup .\tfood\tpositive\n2\tKept for testing\tfood\tpositive\n"
    (folder / "yelp_aspect" / "restaurant.txt").write_text(rows)
    (folder / "intents" / "bank.jsonl").write_text(json.dumps({"text": "Where is my card?", "aspects": []}) + "\n")
    (folder / "unlabelled" / "movies.txt").write_text("A fine film.\n\ngreat soup!\n")


def write_datasets(folder):
    for dataset in DATASETS:
        (folder / dataset).mkdir(parents=True)
        for split, text in (("train", "Nice room"), ("val", "kept for testing"), ("test", "kept for testing")):
            (folder / dataset / f"{split}.json").write_text(json.dumps({"food": [[text.split(), ["food"]]]}))


def test_the_pool_has_every_sentence_once_and_none_that_is_held_out(tmp_path):
    write_shared(tmp_path)
    write_datasets(tmp_path / "datasets")
    found = pool.read_pool(tmp_path, tmp_path / "datasets")
    assert found == ["Nice room", "Great soup .", "Where is my card?", "A fine film."]


def test_a_piece_is_neighbouring_words():
    rng = np.random.default_rng(0)
    text = " ".join(map(str, range(20)))
    for _ in range(20):
        piece = list(map(int, pool.cut(text, rng).split()))
        assert piece == list(range(piece[0], piece[-1] + 1))
        assert 2 <= len(piece) <= 12


def test_a_typing_error_changes_letters_of_one_word_only():
    rng = np.random.default_rng(0)
    found = {pool.misspell("ab", rng) for _ in range(40)}
    # Left out, doubled or swapped, once or twice.
    assert found <= {"b", "aab", "ba", "aaab", "abab", "aba", "ab", "bba", "a", "baab"}
    assert {"b", "aab", "ba"} <= found


def test_variations_depend_on_the_seed_only():
    texts = ["the soup was great", "where is my card", "a fine film"]
    words = ["lamp", "river"]
    first = pool.vary(texts, words, 50, seed=1)
    assert first == pool.vary(texts, words, 50, seed=1)
    assert first != pool.vary(texts, words, 50, seed=2)
    assert len(first) == 50
