"""More labels make a better detector: over many draws of three small files, and never much worse in one of them."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np

from awatt.aspect_model.estimates import estimate_quality
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


def test_without_a_file_labels_expected_hardly_anything() -> None:
    """Sentences that came as they were, most of them off-topic: an F1 of 0.1 was expected, and 0.6 measured."""
    rows = [json.loads(line) for line in (files("awatt.data") / "sample.jsonl").read_text("utf-8").splitlines()]
    model = AspectModel.load()
    sentences, held, shares, f1 = model.tokenize([row["text"] for row in rows]), [], [], []
    for domain in ("restaurant", "hotel", "laptop"):
        aspects = sorted({aspect for row in rows for aspect in row["aspects"] if row["domain"] == domain})
        labels = np.array([[aspect in row["aspects"] for aspect in aspects] for row in rows])
        order = np.random.default_rng(len(domain)).permutation(len(rows))
        test = order[140:]
        for count in (0, 100):
            known = order[:count]
            learned = learn(model.parts, LabelledSentences(sentences.take(known), labels[known]), aspects)
            scores = probabilities(model.parts, learned, sentences.take(test))
            f1.append(macro_f1(scores >= learned.thresholds.balanced, labels[test]))
            quality = estimate_quality(learned, learned.thresholds.balanced)
            assert (quality is None) == (count == 0)
            if quality is not None:
                held.append(quality.macro_f1.low <= f1[-1] <= quality.macro_f1.high)
                shares.append(scores.sum() / labels[test].sum())
    assert sum(held) >= 2
    assert 0.6 < np.mean(shares) < 1.4  # 0.35 before
    names, many = np.reshape(f1, (3, 2)).mean(0)
    assert many > names + 0.02
