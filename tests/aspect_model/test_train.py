"""Training the bundled model on toy data, end to end; its folder; its predictions on episodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from awatt.aspect_model import train as training
from awatt.aspect_model.model import AspectModel
from awatt.aspect_model.train import DATASETS, TaskSampler, TrainDetectorConfig, load_merged, train
from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError
from awatt.metrics import reliability
from awatt.research.evaluation import evaluate

SMALL = TrainDetectorConfig(tasks=60, hidden=8, n_background=12, max_examples=24, validation_episodes=4)


@pytest.fixture(scope="module")
def data(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("three")
    for name in DATASETS:
        (folder / name).symlink_to(toy_data)
    return folder


@pytest.fixture(scope="module")
def vectors(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy data's word vectors as a model2vec folder."""
    folder = tmp_path_factory.mktemp("static")
    rows = [line.split() for line in (toy_data / "glove.txt").read_text().splitlines()]
    words = {"[UNK]": 0} | {row[0]: number for number, row in enumerate(rows, start=1)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.array([[0.0] * 8, *([float(value) for value in row[1:]] for row in rows)], dtype=np.float32)
    save_file({"embeddings": table}, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def trained(data: Path, vectors: Path) -> AspectModel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "default_folder", lambda: vectors)
        patch.setattr(training, "VALIDATION", (EpisodeShape(3, 2, 2), EpisodeShape(3, 2, 2, 0.3)))
        return train(data, SMALL)


# ---- tasks


def test_tasks_are_consistent(data: Path) -> None:
    corpus = load_merged(data, "train")
    sampler = TaskSampler(corpus, SMALL)
    for _ in range(50):
        task = sampler.draw()
        assert 1 <= len(task.names) <= len(corpus.aspects)
        assert len(task.support) <= SMALL.max_examples
        assert task.labels.any(0).all()  # every aspect has an example
        assert task.labels.any(1).all()
        assert not set(task.support) & set(task.query)
        wanted = [corpus.aspects.index(name) for name in task.names]
        np.testing.assert_array_equal(task.labels, corpus.mentions[task.support][:, wanted])
        np.testing.assert_array_equal(task.targets, corpus.mentions[task.query][:, wanted])


def test_an_inner_node_includes_all_its_children(data: Path) -> None:
    corpus = load_merged(data, "train")
    renamed = type(corpus)(
        corpus.split, corpus.sentences, tuple(f"node{place // 4}_{place}" for place in range(8)), corpus.mentions, ()
    )
    sampler = TaskSampler(renamed, TrainDetectorConfig(inner_nodes=1.0))
    assert sampler.inner == {"node0": [0, 1, 2, 3], "node1": [4, 5, 6, 7]}
    for _ in range(20):
        task = sampler.draw()
        for place, name in enumerate(task.names):
            children = [number for number, aspect in enumerate(renamed.aspects) if aspect.startswith(name)]
            np.testing.assert_array_equal(task.targets[:, place], renamed.mentions[task.query][:, children].any(1))


# ---- training


def test_the_trained_model_finds_unseen_aspects(trained: AspectModel, data: Path) -> None:
    found = evaluate(trained, data / "FewAsp", episodes=30, n_way=3, n_shot=3, n_query=2, none_rate=0.3)
    assert found["auc"] > 0.9
    assert found["none_auroc"] > 0.7


def test_the_same_seed_gives_the_same_numbers(trained: AspectModel, data: Path, vectors: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "default_folder", lambda: vectors)
        patch.setattr(training, "VALIDATION", (EpisodeShape(3, 2, 2), EpisodeShape(3, 2, 2, 0.3)))
        again = train(data, SMALL)
    assert again.threshold == trained.threshold
    for value, other in zip(trained.parameters, again.parameters, strict=True):
        np.testing.assert_array_equal(other, value)


def test_the_command(
    data: Path, vectors: Path, tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "default_folder", lambda: vectors)
    monkeypatch.setattr(training, "VALIDATION", (EpisodeShape(3, 2, 2),))
    settings = ("tasks=4", "hidden=4", "n_background=6", "max_examples=24", "validation_episodes=2")
    options = [part for item in settings for part in ("--set", item)]
    assert run("train-detector", "--data", data, "--out", tmp_path / "model", *options).code == 0
    assert AspectModel.load(tmp_path / "model").settings["training"]["tasks"] == 4


# ---- the folder


def test_a_saved_model_is_loaded_unchanged(trained: AspectModel, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    again = AspectModel.load(tmp_path / "model")
    sentences = trained.tokenize(["noise1 test0word1 noise2", "", "train1word0"])
    labels = np.array([[True, False], [False, True], [True, True]])
    for model in (trained, again):
        fitted = model.fit(sentences, labels, ["noise1", "2"])
        found = model.probabilities(fitted, sentences)
        assert found.shape == (3, 2)
        assert ((found >= 0) & (found <= 1)).all()
        if model is trained:
            first = found
    np.testing.assert_array_equal(found, first)


def test_a_meaningless_name_has_no_vector(trained: AspectModel) -> None:
    found = trained.name_vectors(["noise1", "7", "", "#_", "noise2_noise3"])
    np.testing.assert_array_equal((found != 0).any(1), [True, False, False, False, True])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"other", "does not match its sha256"),
        ("config.json", b"{}", "not an awatt model folder"),
        ("config.json", b'{"format": 99}', "has format 99, but this version.*pip install --upgrade awatt"),
        ("config.json", None, r"config\.json does not exist. A model is a folder with"),
        ("tokenizer.json", None, r"tokenizer\.json: is missing"),
    ],
)
def test_an_incomplete_model_is_an_error(
    trained: AspectModel, tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    trained.save(tmp_path)
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    with pytest.raises(AwattError, match=message):
        AspectModel.load(tmp_path)


def test_the_bundled_model_is_complete_and_small() -> None:
    folder = Path(training.__file__).parent / "weights"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12e6
    model = AspectModel.load()
    assert 0 < model.threshold < 1
    assert json.loads((folder / "config.json").read_text())["training"]["tasks"] >= 2000  # not a trial run


# ---- judging


def test_reliability_by_hand() -> None:
    probabilities = np.array([[[0.05, 0.95], [0.05, 0.85]]])
    targets = np.array([[[False, True], [True, True]]])
    assert reliability(probabilities, targets) == [
        (pytest.approx(0.05), pytest.approx(0.5), 2),
        (pytest.approx(0.85), pytest.approx(1.0), 1),
        (pytest.approx(0.95), pytest.approx(1.0), 1),
    ]
