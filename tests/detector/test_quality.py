"""Measured precision, recall and F1, by hand-computed numbers."""

from __future__ import annotations

import numpy as np
import pytest

from awatt.detector.quality import Measure, measure, random_order, wilson
from awatt.errors import AwattError


def test_wilson_gives_the_known_interval() -> None:
    found = wilson(8, 10)
    assert found is not None
    assert (found.value, round(found.low, 4), round(found.high, 4)) == (0.8, 0.4902, 0.9433)
    perfect = wilson(10, 10)
    assert perfect is not None
    assert perfect.low == pytest.approx(0.7225, abs=1e-4)  # ten of ten do not prove perfection
    assert perfect.high == pytest.approx(1)
    assert wilson(0, 0) is None


def test_measures_count_right_found_and_mentioned() -> None:
    truth = np.array([[1, 0], [1, 0], [1, 0], [0, 0], [0, 0]], dtype=bool)
    found = np.array([[1, 0], [1, 0], [0, 0], [1, 0], [0, 0]], dtype=bool)
    quality = measure(truth, found, ["food", "price"])
    food, price = quality.aspects
    assert (food.mentioned, food.found, food.right) == (3, 3, 2)
    assert [round(each.value, 4) for each in (food.precision, food.recall, food.f1) if each] == [0.6667] * 3
    assert food.f1 is not None
    assert 0 < food.f1.low < food.f1.value < food.f1.high < 1
    assert (price.precision, price.recall, price.f1) == (None, None, None)  # never found nor mentioned: unknown
    assert quality.overall.f1 == food.f1
    assert "food" in str(quality)
    assert str(Measure(0.5, 0.25, 0.75)) == "0.50 (0.25 to 0.75)"


def test_without_labels_there_is_nothing_to_measure() -> None:
    with pytest.raises(AwattError, match="no labelled sentence"):
        measure(np.zeros((0, 1), dtype=bool), np.zeros((0, 1), dtype=bool), ["food"])


def test_a_sample_is_random_but_stays_the_same() -> None:
    texts = [f"Sentence {number}." for number in range(200)]
    order = random_order([*texts, "Sentence 0.", " "])
    assert sorted(order) == sorted(texts)
    assert random_order(reversed(texts)) == order
    assert order != sorted(texts)
    more = random_order([*texts, "Another one."])
    assert [text for text in more if text != "Another one."] == order
