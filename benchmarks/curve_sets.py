"""The sets of the learning curve: real sentences at natural shares with all their aspects, and draws of labels."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.files import shared_folder

SENTENCES = 4000  # kept of a set: 3,000 to test on, the others to label
TEST = 3000
FEWEST_TESTED = 50
BUDGETS = ("names", "1", "5", "5+50", "5+200", "5+500")
CHOOSING = ("courses", "feedback")  # the sets on which a design may be chosen
YELP_ASPECTS = 12

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LabelledSet:
    """Different sentences, and which aspects each mentions."""

    name: str
    texts: tuple[str, ...]
    aspects: tuple[str, ...]
    labels: Bools  # (n_sentences, n_aspects)


class Draw(NamedTuple):
    """One random choice of what is labelled and what is tested. Numbers are those of the set's sentences."""

    aspects: Integers  # columns of the set's labels
    examples: list[Integers]  # of each aspect, five where it has so many
    random: Integers  # sentences in random order, the first 50, 200 or 500 of which are labelled
    test: Integers


def labelled(draw: Draw, budget: str) -> Integers | None:
    """The sentences that are labelled at a budget; None where the set is too small for it."""
    if budget == "names":
        return np.zeros(0, dtype=np.int64)
    n_examples, _, n_random = budget.partition("+")
    chosen = [examples[: int(n_examples)] for examples in draw.examples]
    if len(draw.random) < int(n_random or 0):
        return None
    return np.unique(np.concatenate([*chosen, draw.random[: int(n_random or 0)]]))


def draw_labels(data: LabelledSet, number: int, n_aspects: int | None = None) -> Draw:
    """Draw number ``number``: the same one for every row of the table. ``n_aspects`` of the aspects, or all."""
    rng = np.random.default_rng([zlib.crc32(data.name.encode()), number])
    columns = np.arange(len(data.aspects))
    if n_aspects is not None:
        columns = np.sort(rng.choice(columns, n_aspects, replace=False))
    examples = [rng.permutation(np.flatnonzero(data.labels[:, column]))[:5] for column in columns]
    rest = rng.permutation(np.setdiff1d(np.arange(len(data.texts)), np.concatenate(examples)))
    # A small set keeps its sentences for the test.
    n_random = next((n for n in (500, 200, 50) if len(rest) - n >= max(FEWEST_TESTED, 2 * n)), 0)
    return Draw(columns, examples, rest[:n_random], rest[n_random:][:TEST])


def load_sets() -> dict[str, Callable[[], LabelledSet]]:
    """Each set by its name; read when it is called."""
    data = shared_folder() / "data"
    sets = {name: lambda name=name: _read_jsonl(name, data / "domains" / f"{name}.jsonl") for name in CHOOSING}
    sets["mams"] = lambda: _read_mams(data / "mams")
    sets["mams-4-of-7"] = lambda: replace(_read_mams(data / "mams"), name="mams-4-of-7")
    for domain in ("restaurant", "hotel", "laptop"):
        sets[f"sample-{domain}"] = lambda domain=domain: _read_sample(domain)
    for domain in ("restaurant", "hotel", "beautyspa"):
        sets[f"yelp-{domain}"] = lambda domain=domain: _read_yelp(data / "yelp_aspect" / f"{domain}.txt")
    return sets


def n_aspects_drawn(name: str) -> int | None:
    """How many aspects a draw of this set has; None for all."""
    return 4 if name == "mams-4-of-7" else None


def _make(name: str, rows: Iterable[tuple[str, Iterable[str]]], aspects: Iterable[str] | None = None) -> LabelledSet:
    joined: dict[str, set[str]] = {}
    for text, mentioned in rows:
        joined.setdefault(text, set()).update(mentioned)
    texts = list(joined)
    order = np.random.default_rng(0).permutation(len(texts))[:SENTENCES]
    names = sorted({aspect for row in joined.values() for aspect in row} if aspects is None else aspects)
    labels = np.array([[aspect in joined[texts[number]] for aspect in names] for number in order])
    return LabelledSet(name, tuple(texts[number] for number in order), tuple(names), labels)


def _read_jsonl(name: str, path: Path) -> LabelledSet:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return _make(name, ((row["text"], row["aspects"]) for row in rows if row["text"].strip()))


def _read_mams(folder: Path) -> LabelledSet:
    rows = []
    for split in ("train", "val", "test"):
        for sentence in ET.parse(folder / f"{split}.xml").getroot():
            categories = {node.get("category") or "" for node in sentence.iter("aspectCategory")} - {"miscellaneous"}
            rows.append((sentence.findtext("text") or "", categories))
    return _make("mams", rows)


def _read_sample(domain: str) -> LabelledSet:
    from importlib.resources import files

    rows = [json.loads(line) for line in (files("awatt.data") / "sample.jsonl").read_text("utf-8").splitlines()]
    return _make(f"sample-{domain}", ((row["text"], row["aspects"]) for row in rows if row["domain"] == domain))


def _read_yelp(path: Path) -> LabelledSet:
    """The most frequent categories; sentences of the others are off-topic."""
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    pairs = [(row[1], row[2].lower()) for row in rows]
    common = [aspect for aspect, _ in Counter(aspect for _, aspect in pairs).most_common(YELP_ASPECTS)]
    return _make(f"yelp-{path.stem}", ((text, {aspect}) for text, aspect in pairs), common)
