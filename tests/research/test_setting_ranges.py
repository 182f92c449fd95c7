"""Every number among the settings: a value that cannot work is one line, before any work is done."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from awatt.aspect_model.train_networks import TrainDetectorConfig
from awatt.config import build
from awatt.data.corpus import load_corpus
from awatt.data.sampler import EpisodeShape
from awatt.encoders import ENCODERS
from awatt.errors import AwattError
from awatt.models import MODELS
from awatt.research.run_model import RunModel
from awatt.research.runs import TrainingConfig
from awatt.research.scoring import score_episodes
from awatt.research.settings import resolve_run
from awatt.research.system import System
from awatt.thresholds.kinds import THRESHOLDS

VALUES = ("0", "-1", "nan", "inf", "1e400")


def cases() -> Iterator[tuple[str, str, str, str]]:
    """(section, kind, field, value): each number of each part."""
    parts = {"model": MODELS, "encoder": {name: ENCODERS[name] for name in ("glove-cnn", "glove-lstm")}}
    for section, kinds in {**parts, "threshold": THRESHOLDS}.items():
        for kind, part in kinds.items():
            for field in dataclasses.fields(part.config_type):
                if field.type in ("int", "float"):
                    yield from ((section, kind, field.name, value) for value in VALUES)


def score_with(toy_data: Path, section: str, kind: str, **settings: str) -> None:
    """Score two episodes with these settings of one part."""
    option = {"model": "method"}.get(section, section)
    values = {"encoder.vectors": str(toy_data / "glove.txt"), "encoder.hidden": "8"}
    values |= {f"{section}.{field}": value for field, value in settings.items()}
    overrides = [f"{name}={value}" for name, value in values.items()]
    config = resolve_run(None, {option: kind}, {"n_way": 3, "n_shot": 4, "n_query": 3}, overrides)
    corpus = load_corpus(toy_data, "test")
    system = System.create(config.system, corpus.sentences).eval()
    assert len(list(score_episodes(system, corpus, EpisodeShape(3, 4, 3), 2, 1))) > 0


@pytest.mark.parametrize(("section", "kind"), list(dict.fromkeys(case[:2] for case in cases())))
def test_the_defaults_of_a_part_work(toy_data: Path, section: str, kind: str) -> None:
    score_with(toy_data, section, kind)


@pytest.mark.parametrize(("section", "kind", "field", "value"), list(cases()))
def test_a_number_of_a_part_works_or_is_refused_by_its_name(
    toy_data: Path, section: str, kind: str, field: str, value: str
) -> None:
    refused = ""
    try:
        score_with(toy_data, section, kind, **{field: value})
    except AwattError as error:  # anything else fails the test
        refused = str(error)
    assert not refused or f"{section}.{field}" in refused


@pytest.mark.parametrize("kind", [TrainDetectorConfig, TrainingConfig])
def test_numbers_of_a_training_are_checked(kind: type) -> None:
    for field in dataclasses.fields(kind):
        if field.type in ("int", "float"):
            for value in (-1, *([float("nan"), float("inf")] if field.type == "float" else [])):
                with pytest.raises(AwattError, match=rf"training\.{field.name}'? is"):
                    build(kind, {field.name: value}, "training")


@pytest.mark.parametrize("wanted", ["-1", "-0.5", "2", "nan", "inf"])
def test_a_threshold_outside_0_to_1_is_refused(make_run: Callable[..., Path], tmp_path: Path, wanted: str) -> None:
    model = RunModel.load(make_run(tmp_path / "run"))
    with pytest.raises(AwattError, match=f"the threshold is {wanted}, needs a number from 0 to 1"):
        model.with_threshold(wanted, tmp_path, EpisodeShape(), 5)
