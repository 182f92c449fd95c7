"""The text that the student is distilled on: sentences of many kinds, and variations of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from awatt.data.corpus import load_corpus
from awatt.data.fewasp import DATASETS
from awatt.data.yelp_aspect import read_yelp_aspect

Rng = np.random.Generator

_CONNECTORS = (" ", " ", ". ", ". ", ", ", " and ", " but ", " because ", "! ", " - ")
_WORD = re.compile(r"\w+")


def read_texts(shared: Path, datasets: Path, more: Sequence[Path] = ()) -> list[str]:
    """Every distinct sentence that weights may be trained on, in a fixed order.

    Yelp_aspect without the sentences of FewAsp's validation and test splits, the requests of ``intents``, the
    sentences of ``unlabelled``, and the lines of the files ``more``. ``domains`` and MAMS are left out: they are
    evaluation data.
    """
    held_out = {
        _key(text)
        for dataset in DATASETS
        for split in ("val", "test")
        for text in load_corpus(datasets / dataset, split).sentences
    }
    texts = [text for dataset in DATASETS for text in load_corpus(datasets / dataset, "train").sentences]
    texts += [" ".join(tokens) for tokens in read_yelp_aspect(shared / "yelp_aspect")]
    for path in sorted((shared / "intents").glob("*.jsonl")):
        texts += [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]
    for path in [*sorted((shared / "unlabelled").glob("*.txt")), *more]:
        texts += path.read_text("utf-8").splitlines()
    found: dict[str, str] = {}
    for text in texts:
        key = _key(text)
        if key and key not in held_out:
            found.setdefault(key, text)
    return list(found.values())


def _key(text: str) -> str:
    """A text without its case, blanks and punctuation."""
    return re.sub(r"[\W_]+", "", text.lower())


def vary(texts: Sequence[str], count: int, seed: int) -> list[str]:
    """New sentences made from old ones: the student must see more contexts than the texts have."""
    words = sorted({word for text in texts for word in text.split() if word.isalpha()})
    rng = np.random.default_rng(seed)
    ways: tuple[Callable[[], str], ...] = (
        lambda: join(_draw(texts, rng), _draw(texts, rng), rng),
        lambda: cut(_draw(texts, rng), rng),
        lambda: misspell(_draw(texts, rng), rng),
        lambda: swap_words(_draw(texts, rng), _draw(texts, rng), words, rng),
        lambda: join(cut(_draw(texts, rng), rng), cut(_draw(texts, rng), rng), rng),
    )
    return [ways[int(rng.integers(len(ways)))]() for _ in range(count)]


def _draw(texts: Sequence[str], rng: Rng) -> str:
    return texts[int(rng.integers(len(texts)))]


def join(first: str, second: str, rng: Rng) -> str:
    """Two sentences as one, with a connector between them."""
    return first.rstrip(" .") + _draw(_CONNECTORS, rng) + second


def cut(text: str, rng: Rng) -> str:
    """Some 2 to 12 neighbouring words of a sentence."""
    words = text.split()
    length = int(rng.integers(2, 13))
    first = int(rng.integers(max(1, len(words) - length + 1)))
    return " ".join(words[first : first + length])


def misspell(text: str, rng: Rng) -> str:
    """A sentence with one or two typing errors: a letter left out, doubled, or swapped with the next one."""
    for _ in range(int(rng.integers(1, 3))):
        places = [match.start() for match in re.finditer(r"\w(?=\w)", text)]
        if not places:
            break
        place = places[int(rng.integers(len(places)))]
        pair = text[place : place + 2]
        text = text[:place] + (pair[1], pair[0] + pair, pair[::-1])[int(rng.integers(3))] + text[place + 2 :]
    return text


def swap_words(text: str, other: str, words: Sequence[str], rng: Rng) -> str:
    """A sentence with one in six of its words replaced: by a word of another sentence or of the vocabulary."""
    others = _WORD.findall(other) or list(words[:1])

    def replace(match: re.Match[str]) -> str:
        draw = rng.random()
        if draw < 0.08:
            return _draw(words, rng)
        return _draw(others, rng) if draw < 0.16 else match.group()

    return _WORD.sub(replace, text)
