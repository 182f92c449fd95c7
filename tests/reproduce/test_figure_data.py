"""Data for the figures from a trained model, on a toy dataset."""

from pathlib import Path

import numpy as np
import pytest

from awatt.config import build
from awatt.data.corpus import load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.reproduce import figure_data
from awatt.reproduce.figure_data import THRESHOLDS, prototypes, queries, threshold_curve
from awatt.research.scoring import measure_system, score_episodes
from awatt.research.system import System, SystemConfig
from awatt.thresholds.static import Static, StaticConfig

SHAPE = EpisodeShape(5, 2, 2)


def make(method: str, toy_data: Path) -> System:
    settings = {"encoder": {"vectors": str(toy_data / "glove.txt"), "hidden": 8}}
    names = {"method": method, "encoder": "glove-cnn", "threshold": "static", "n_way": 5}
    config = SystemConfig.from_mapping({**names, "settings": settings})
    return System.create(config, load_corpus(toy_data, "test").sentences)


def test_the_curve_agrees_with_the_static_threshold(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_data, "TEST_EPISODES", 20)
    system = make("proto-hatt", toy_data)
    found = threshold_curve(system, toy_data, SHAPE, 5)
    assert found["threshold"] == THRESHOLDS
    system.threshold = Static(build(StaticConfig, {"value": 0.2}, "threshold"), 5, 8)
    expected = measure_system(system, score_episodes(system, load_corpus(toy_data, "test"), SHAPE, 20, 5))["macro_f1"]
    assert found["macro_f1"][THRESHOLDS.index(0.2)] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", ["proto-hatt", "proto-awatt"])
def test_each_point_has_a_class_a_position_and_a_silhouette(method: str, toy_data: Path) -> None:
    system = make(method, toy_data)
    for points, count in (
        (prototypes(system, toy_data, SHAPE, 5), 50 * 5),
        (queries(system, toy_data, SHAPE, 5), 20 * 5 * SHAPE.n_query),
    ):
        assert {name: len(values) for name, values in points.items()} == dict.fromkeys(points, count)
        names, counts = np.unique(points["aspect"], return_counts=True)
        assert len(names) == 5
        assert set(counts) == {count // 5}
        assert all(-1 <= value <= 1 for value in points["silhouette"])


def test_the_same_seed_gives_the_same_points(toy_data: Path) -> None:
    system = make("proto-awatt", toy_data)
    assert prototypes(system, toy_data, SHAPE, 5) == prototypes(system, toy_data, SHAPE, 5)
