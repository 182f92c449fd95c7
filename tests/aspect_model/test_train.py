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
from awatt.aspect_model.packing import pack
from awatt.aspect_model.student.module import StudentConfig, StudentModule, export
from awatt.aspect_model.tasks import INTENTS, UNLABELLED, Pool, TaskConfig, draw_task, read_pool
from awatt.aspect_model.train import load_merged, train
from awatt.aspect_model.train_networks import TrainDetectorConfig
from awatt.data.fewasp import DATASETS
from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError
from awatt.metrics import reliability
from awatt.research.evaluation import evaluate

TASK = TaskConfig(n_file=30, n_query=20, n_background=12, max_cells=120)
SMALL = TrainDetectorConfig(
    tasks=60,
    plain_tasks=60,
    hidden=8,
    plain_background=12,
    background=16,
    validation_episodes=4,
    task=TASK,
)


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
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Intents and sentences of other kinds."""
    folder = tmp_path_factory.mktemp("shared")
    rng = np.random.default_rng(0)
    for kind, names in (("intents", INTENTS), ("unlabelled", UNLABELLED)):
        (folder / "data" / kind).mkdir(parents=True)
        for name in names:
            texts = [" ".join(f"noise{number}" for number in rng.integers(1, 20, 4)) for _ in range(40)]
            rows = [
                json.dumps({"text": f"{text} train{row % 2}word0", "aspects": [f"topic_{row % 2}"]})
                for row, text in enumerate(texts)
            ]
            suffix, lines = ("jsonl", rows) if kind == "intents" else ("txt", texts)
            (folder / "data" / kind / f"{name}.{suffix}").write_text("\n".join(lines))
    return folder


def toy_pool(data: Path, shared: Path) -> Pool:
    corpus = load_merged(data, "train")
    rows = [
        (text, [corpus.aspects[column] for column in np.flatnonzero(row)])
        for text, row in zip(corpus.sentences, corpus.mentions, strict=True)
    ]
    return read_pool(rows, shared / "data")


@pytest.fixture(scope="module")
def trained(data: Path, vectors: Path, shared: Path) -> AspectModel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWATT_SHARED", str(shared))
        patch.setattr(training, "VALIDATION", (EpisodeShape(3, 2, 2), EpisodeShape(3, 2, 2, 0.3)))
        return train(data, SMALL, static=vectors)


# ---- tasks


def test_tasks_are_consistent(data: Path, shared: Path) -> None:
    pool = toy_pool(data, shared)
    truth = {text: set() for text in pool.texts}
    for source in pool.sources:
        for number, row in zip(source.numbers, source.mentions, strict=True):
            truth[pool.texts[number]] |= {source.aspects[column] for column in np.flatnonzero(row)}
    for number in range(50):
        task = draw_task(
            pool, TaskConfig(**{**vars(TASK), "names": 1.0, "wrong_names": 0.0}), np.random.default_rng(number)
        )
        assert not set(task.labelled) & set(task.query)
        assert not set(task.file) & set(task.query)
        names = [name.replace(" ", "_") for name in task.names]
        for numbers, labels in ((task.labelled, task.labels), (task.query, task.targets)):
            for text, row in zip((pool.texts[each] for each in numbers), labels, strict=True):
                wanted = [
                    any(aspect == name or aspect.startswith(f"{name}_") for aspect in truth[text]) for name in names
                ]
                assert row.tolist() == wanted


def test_tasks_like_episodes_have_no_file_and_examples_of_every_aspect(data: Path, shared: Path) -> None:
    pool = toy_pool(data, shared).only_reviews()
    for number in range(30):
        task = draw_task(pool, TaskConfig(**{**vars(TASK), "episodes": 1.0}), np.random.default_rng(number))
        assert not len(task.file)
        assert task.labels.any(0).all()
        assert task.labels.any(1).all()


# ---- training


def test_the_trained_model_finds_unseen_aspects(trained: AspectModel, data: Path) -> None:
    found = evaluate(trained, data / "FewAsp", episodes=30, n_way=3, n_shot=3, n_query=2, none_rate=0.3)
    assert found["auc"] > 0.9
    assert found["none_auroc"] > 0.7


def test_the_same_seed_gives_the_same_numbers(trained: AspectModel, data: Path, vectors: Path, shared: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWATT_SHARED", str(shared))
        patch.setattr(training, "VALIDATION", (EpisodeShape(3, 2, 2), EpisodeShape(3, 2, 2, 0.3)))
        again = train(data, SMALL, static=vectors)
    assert again.threshold == trained.threshold
    for name, value in pack(trained.weights).items():
        np.testing.assert_array_equal(pack(again.weights)[name], value)


def toy_student(n_words: int) -> dict[str, Any]:
    """The tensors of a student with random weights."""
    config = StudentConfig(
        width=8, n_heads=1, key_width=4, n_layers=2, hidden=8, stem_hidden=8, reach=2, dim=6, extra=2
    )
    extra = np.ones((n_words, 2), dtype=np.int8)
    module = StudentModule(config, np.ones((n_words, 8 + 2), dtype=np.float32))
    return {**export(module), "extra": extra, "extra_scale": np.ones((n_words, 1), dtype=np.float32)}


def test_the_command(
    data: Path, vectors: Path, shared: Path, tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWATT_SHARED", str(shared))
    monkeypatch.setattr(training, "VALIDATION", (EpisodeShape(3, 2, 2),))
    settings = ("tasks=12", "plain_tasks=4", "hidden=4", "plain_background=6", "background=8")
    settings += ("validation_episodes=2",)
    options = [part for item in settings for part in ("--set", item)] + ["--vectors", vectors]
    assert run("train-detector", "--data", data, "--out", tmp_path / "model", *options).code == 0
    assert AspectModel.load(tmp_path / "model").settings["training"]["tasks"] == 12
    n_words = len(AspectModel.load(tmp_path / "model").weights.vectors.table)

    student = tmp_path / "student.safetensors"
    save_file(toy_student(n_words), student)
    command = ("train-detector", "--data", data, "--out", tmp_path / "in-context", *options, "--encoder")
    assert run(*command, student).code == 0
    loaded = AspectModel.load(tmp_path / "in-context")
    assert loaded.weights.settings.centre.shape == (8 + 6,)  # static and context
    fitted = loaded.fit(loaded.tokenize(["train1word0"]), np.ones((1, 1), dtype=bool))
    assert np.isfinite(loaded.probabilities(fitted, loaded.tokenize(["noise1 train1word0"]))).all()

    save_file(toy_student(n_words + 1), student)
    code, _, err = run(*command, student)
    assert (code, f"knows {n_words + 1} tokens, but there are {n_words}." in err) == (2, True)
    code, _, err = run(*command, "student")
    assert (code, "reads the package's static vectors, not others. Leave out --vectors" in err) == (2, True)
    code, _, err = run(*command, vectors / "model.safetensors")
    assert (code, "is not a student" in err) == (2, True)
    code, _, err = run(*command, tmp_path / "none.safetensors")
    assert (code, "none.safetensors: cannot be read" in err) == (2, True)


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
    found = trained.vectors.name_vectors(["noise1", "7", "", "#_", "noise2_noise3"])
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
    folder = Path(training.__file__).parent / "weights" / "fast"
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
