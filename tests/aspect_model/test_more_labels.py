"""More labels make a better detector: over many draws of three small files, and never much worse in one of them."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np

from awatt.aspect_model.learner import learn, probabilities
from awatt.aspect_model.model import AspectModel
from awatt.aspect_model.names import LabelledSentences
from awatt.metrics import macro_f1

DRAWS = 10
TESTED = 30
MORE = (0, 10, 20)  # labelled sentences, as they come, beside three examples per aspect


def test_f1_does_not_fall_with_more_labels() -> None:
    rows = [json.loads(line) for line in (files("awatt.data") / "sample.jsonl").read_text("utf-8").splitlines()]
    measured = [
        f1_of_budgets(rows, domain, draw) for domain in ("restaurant", "hotel", "laptop") for draw in range(DRAWS)
    ]
    means = np.mean(measured, 0)
    assert (np.diff(means) > -0.01).all(), means
    assert means[-1] > means[0] + 0.01, means
    assert np.quantile(np.subtract(measured, np.array(measured)[:, :1]), 0.1) > -0.05


def f1_of_budgets(rows: list[dict[str, object]], domain: str, draw: int) -> list[float]:
    """Macro-F1 on the same sentences, for each number of further labels."""
    model = AspectModel.load()
    rng = np.random.default_rng([draw, len(domain)])
    mine = [rows[number] for number in rng.permutation(len(rows)) if rows[number]["domain"] == domain]
    aspects = sorted({aspect for row in mine for aspect in row["aspects"]})  # type: ignore[attr-defined]
    labels = np.array([[aspect in row["aspects"] for aspect in aspects] for row in mine])  # type: ignore[operator]
    sentences = model.tokenize([str(row["text"]) for row in mine])
    test = np.arange(TESTED)
    examples = np.unique(np.concatenate([TESTED + np.flatnonzero(column)[:3] for column in labels[TESTED:].T]))
    rest = np.setdiff1d(np.arange(TESTED, len(mine)), examples)
    found = []
    for more in MORE:
        known = np.concatenate([examples, rest[:more]])
        learned = learn(model.parts, LabelledSentences(sentences.take(known), labels[known]), aspects, sentences)
        accepted = probabilities(model.parts, learned, sentences.take(test)) >= learned.thresholds.balanced
        found.append(float(macro_f1(accepted, labels[test])))
    return found
