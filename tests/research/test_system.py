"""Encoder, model and threshold together: equal scores after saving and loading; every kind of damage is an error."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from awatt.data.corpus import Corpus
from awatt.data.episode import Episode
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.errors import AwattError, DataError
from awatt.folders import FORMAT
from awatt.models import MODELS
from awatt.research.scoring import score_episodes
from awatt.research.system import System, SystemConfig
from awatt.thresholds.base import Scored
from awatt.thresholds.kinds import THRESHOLDS

torch.set_num_threads(1)

WORDS = [f"word{number}" for number in range(20)]
FIELDS = ("probabilities", "scores", "differences", "query", "support", "support_targets", "targets", "support_scores")
FILES = {"config.json", "model.safetensors", "tokenizer.json", "README.md"}


def make_corpus() -> Corpus:
    """Sentences of 1 to 6 words; every third mentions a second aspect."""
    chance = np.random.default_rng(0)
    rows = []
    for number in range(48):
        text = " ".join(chance.choice(WORDS, 1 + number % 6)) + f" {number}"
        more = (f"a{(number + 1) % 4}",) if number % 3 == 0 else ()
        rows.append((text, (f"a{number % 4}",), more))
    return Corpus.from_rows("test", rows)


CORPUS = make_corpus()


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    chance = np.random.default_rng(1)
    path = tmp_path / "glove.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, chance.normal(0, 1, 5).round(3)))}\n" for word in WORDS))
    return path


def configure(vectors: Path, method: str = "proto-awatt", threshold: str = "static") -> SystemConfig:
    settings = {"encoder": {"hidden": 6, "vectors": str(vectors)}}
    return SystemConfig.from_mapping(
        {"method": method, "encoder": "glove-cnn", "threshold": threshold, "n_way": 3, "settings": settings}
    )


def make(vectors: Path, method: str = "proto-awatt", threshold: str = "static", seed: int = 0) -> System:
    torch.manual_seed(seed)
    return System.create(configure(vectors, method, threshold), CORPUS.sentences).eval()


@torch.no_grad()
def score(system: System, first: int = 0, count: int = 3) -> Scored:
    sentences = system.encoder.tokenize(CORPUS.sentences)
    episode = EpisodeSampler(CORPUS, EpisodeShape(3, 2, 2), 5).batch(first, count)
    return system.score(system.encode(sentences), sentences.lengths, CORPUS, episode)


def equal(left: Scored, right: Scored) -> bool:
    pairs = ((getattr(left, name), getattr(right, name)) for name in FIELDS)
    return all(one is other if one is None else torch.equal(one, other) for one, other in pairs)


@pytest.fixture
def saved(vectors: Path, tmp_path: Path) -> Path:
    make(vectors).save(tmp_path / "model", "# A card\n")
    vectors.unlink()  # a saved model needs no vectors
    return tmp_path / "model"


# ---- scores


def test_scored_episodes_have_the_right_shapes_and_targets(vectors: Path) -> None:
    scored = score(make(vectors, threshold="kernel-regression"), count=3)
    shapes = {name: tuple(getattr(scored, name).shape) for name in FIELDS if name != "support_scores"}
    assert shapes == {
        "probabilities": (3, 6, 3),
        "scores": (3, 6, 3),
        "differences": (3, 6, 3, 6),
        "query": (3, 6, 6),
        "support": (3, 6, 6),
        "support_targets": (3, 6, 3),
        "targets": (3, 6, 3),
    }
    episode = EpisodeSampler(CORPUS, EpisodeShape(3, 2, 2), 5).batch(0, 3)
    for number in range(3):
        examples = episode.support[number].reshape(-1)
        mentioned = CORPUS.mentions[examples][:, episode.aspects[number]]
        np.testing.assert_array_equal(scored.support_targets[number].numpy(), mentioned)
        assert mentioned.reshape(3, 2, 3)[np.arange(3), :, np.arange(3)].all()  # each example mentions its own aspect
    np.testing.assert_array_equal(scored.targets.numpy(), episode.targets)
    torch.testing.assert_close(scored.probabilities.sum(-1), torch.ones(3, 6))
    assert scored.differences is not None
    torch.testing.assert_close(scored.scores, -scored.differences.sum(-1))


def test_a_method_without_distances_has_no_differences(vectors: Path) -> None:
    assert score(make(vectors, "matching")).differences is None


@pytest.mark.parametrize("method", ["proto-awatt", "matching"])
def test_the_training_step_gives_the_same_scores_as_evaluation(vectors: Path, method: str) -> None:
    system = make(vectors, method)
    sentences = system.encoder.tokenize(CORPUS.sentences)
    episode = EpisodeSampler(CORPUS, EpisodeShape(3, 2, 2), 5).batch(0, 4)
    fresh = system.score_fresh(sentences, CORPUS, episode)
    cached = score(system, count=4)
    for name in ("probabilities", "scores", "differences", "support_targets", "targets"):
        if getattr(cached, name) is not None:
            torch.testing.assert_close(getattr(fresh, name), getattr(cached, name), rtol=1e-5, atol=1e-6)
    assert fresh.scores.requires_grad
    assert fresh.query is None  # no threshold uses it in training
    assert fresh.support is None


def test_sentence_vectors_are_the_means_of_their_words(vectors: Path) -> None:
    system = make(vectors, threshold="kernel-regression")
    scored = score(system, count=3)
    episode = EpisodeSampler(CORPUS, EpisodeShape(3, 2, 2), 5).batch(0, 3)
    for found, numbers in ((scored.query, episode.query), (scored.support, episode.support.reshape(3, 6))):
        assert found is not None
        for place in np.ndindex(3, 6):
            alone = system.encode(system.encoder.tokenize([CORPUS.sentences[numbers[place]]]))
            torch.testing.assert_close(found[place], alone.mean(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", MODELS)
def test_examples_are_scored_like_queries(vectors: Path, method: str) -> None:
    assert score(make(vectors, method)).support_scores is None  # static does not use them
    system = make(vectors, method, "acceptance")
    sentences = system.encoder.tokenize(CORPUS.sentences)
    episode = EpisodeSampler(CORPUS, EpisodeShape(3, 2, 2), 5).batch(0, 3)
    examples = episode.support.reshape(3, 6)
    asked = Episode(
        episode.aspects, episode.support, examples, CORPUS.mentions[examples[..., None], episode.aspects[:, None]]
    )
    tokens = system.encode(sentences)
    with torch.no_grad():
        found, expected = (system.score(tokens, sentences.lengths, CORPUS, given) for given in (episode, asked))
    assert found.support_scores is not None
    torch.testing.assert_close(found.support_scores, expected.scores, rtol=1e-5, atol=1e-6)
    assert torch.equal(found.support_targets, expected.targets)


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("shape", [(1, 1, 2, 0.5), (1, 4, 2, 0.0), (3, 2, 1, 0.3), (4, 3, 1, 0.0)], ids=str)
def test_every_method_works_with_every_shape(vectors: Path, method: str, shape: tuple[int, int, int, float]) -> None:
    system = make(vectors, method, "acceptance")
    (scored,) = score_episodes(system, CORPUS, EpisodeShape(*shape), 3, 5)
    evidence = system.threshold.evidence(scored)
    assert evidence.shape == scored.targets.shape
    assert ((evidence > 0) & (evidence < 1)).all()
    assert torch.isfinite(system.threshold.loss(scored))
    system.threshold.calibrate([scored])
    assert system.threshold.select(scored).dtype == torch.bool


def test_many_sentences_are_encoded_in_chunks(vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = make(vectors)
    sentences = system.encoder.tokenize(CORPUS.sentences)
    whole = system.encode(sentences)
    monkeypatch.setattr("awatt.research.system._CHUNK", 7)
    torch.testing.assert_close(system.encode(sentences), whole)
    assert not whole.requires_grad


# ---- saving and loading


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_loaded_model_gives_equal_scores_and_selections(vectors: Path, tmp_path: Path, threshold: str) -> None:
    system = make(vectors, threshold=threshold)
    if system.threshold.calibrated:
        system.threshold.calibrate([score(system, 0, 20)])
    system.save(tmp_path / "model", "card")
    torch.manual_seed(99)
    loaded = System.load(tmp_path / "model")
    assert loaded.config == system.config
    assert not loaded.training
    assert loaded.state_dict().keys() == system.state_dict().keys()
    before, after = score(system), score(loaded)
    assert equal(before, after)
    assert torch.equal(system.threshold.select(before), loaded.threshold.select(after))
    assert not equal(before, score(make(vectors, threshold=threshold, seed=1)))


def test_a_model_is_four_files_and_no_pickle(saved: Path) -> None:
    assert {path.name for path in saved.iterdir()} == FILES
    assert (saved / "README.md").read_text("utf-8") == "# A card\n"
    weights = (saved / "model.safetensors").read_bytes()
    header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])  # JSON and raw numbers, nothing else
    assert {entry["dtype"] for entry in header.values()} == {"F32"}
    content = json.loads((saved / "config.json").read_bytes())
    assert content["format"] == FORMAT
    assert content["settings"]["encoder"]["window"] == 3  # defaults are written out
    assert content["kind"] == "run"
    assert content["sha256"]["model.safetensors"] == hashlib.sha256(weights).hexdigest()


def test_saving_again_writes_the_same_bytes(vectors: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(vectors).save(tmp_path / name, "card")
    for file in FILES:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_settings_go_to_a_mapping_and_back(vectors: Path) -> None:
    config = configure(vectors, threshold="kernel-regression")
    assert SystemConfig.from_mapping(json.loads(json.dumps(config.to_mapping()))) == config


# ---- damages


def rewrite(**changes: Any) -> Callable[[Path], None]:
    """Change entries of config.json; None removes one."""

    def damage(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_bytes()) | changes
        content = {name: value for name, value in content.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(content))

    return damage


def reweigh(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change the weights and correct their sha256."""

    def damage(folder: Path) -> None:
        path = folder / "model.safetensors"
        state = safetensors.torch.load(path.read_bytes())
        content = change(state)
        path.write_bytes(content if isinstance(content, bytes) else safetensors.torch.save(state))
        seal(folder)

    return damage


def seal(folder: Path) -> None:
    """Correct the digests to match the files."""
    names = json.loads((folder / "config.json").read_bytes())["sha256"]
    rewrite(sha256={name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names})(folder)


def content_of(name: str, content: bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(content)
        if name != "config.json":
            seal(folder)

    return damage


def without(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink()

    return damage


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "file", "words"),
    [
        (without("config.json"), "config.json", "does not exist. A model is a folder with"),
        (without("model.safetensors"), "model.safetensors", "is missing or cannot be read"),
        (without("tokenizer.json"), "tokenizer.json", "is missing or cannot be read"),
        (content_of("config.json", b"{nonsense"), "config.json", "is not valid JSON"),
        (content_of("config.json", b"\xff\xfe"), "config.json", "is not valid JSON"),
        (content_of("config.json", b"[]"), "config.json", "is not a JSON object"),
        (rewrite(method=None), "config.json", "has no 'method', so it does not describe a run of"),
        (rewrite(n_way=True), "config.json", "has 'True' for 'n_way'"),
        (rewrite(kind="zip"), "config.json", "has kind 'zip', but needs one of: run, aspect-model, detector"),
        (rewrite(format=3), "config.json", "has format 3, but this version of awatt"),
        (rewrite(format="1"), "config.json", "has format '1', but this version of awatt"),
        (rewrite(method="proto-nope"), "config.json", "there is no method 'proto-nope'. Choose one of: matching,"),
        (rewrite(encoder="nope"), "config.json", "there is no encoder 'nope'. Choose one of: glove-cnn,"),
        (rewrite(threshold="nope"), "config.json", "there is no threshold 'nope'. Choose one of: static,"),
        (rewrite(settings={"model": {"x": 1}}), "config.json", "there is no setting 'model.x'. Valid here: model.e_m"),
        (rewrite(settings={"encoder": {"hidden": "6"}}), "config.json", "setting 'encoder.hidden' is '6', needs int."),
        (rewrite(settings=[]), "config.json", "does not describe a run of"),
        (rewrite(method=["proto-awatt"]), "config.json", "does not describe a run of"),
        (rewrite(threshold="policy", n_way="3", settings={}), "config.json", "does not describe a run of"),
        (rewrite(encoder_details={}), "config.json", "does not describe a run of"),
        (
            rewrite(sha256={"model.safetensors": "0" * 64, "tokenizer.json": "0" * 64}),
            "model.safetensors",
            "does not match its sha256 in config.json.",
        ),
        (rewrite(sha256="0" * 64), "config.json", "has no valid 'sha256'"),
        (rewrite(sha256={}), "config.json", "has no sha256 for model.safetensors"),
        (rewrite(sha256={"model.safetensors": "0" * 64, "../x": "0" * 64}), "config.json", "has no valid 'sha256'"),
        (cut, "model.safetensors", "does not match its sha256 in config.json."),
        (reweigh(lambda state: b"\x80\x04pickle"), "model.safetensors", "is not a safetensors file"),
        (reweigh(lambda state: b""), "model.safetensors", "is not a safetensors file"),
        (
            reweigh(lambda state: state.update({"model.bias": torch.zeros(9)})),
            "model.safetensors",
            "has float32 (9,) for 'model.bias', but its config.json needs float32 (6,).",
        ),
        (
            reweigh(lambda state: state.pop("model.bias")),
            "model.safetensors",
            "has no such tensor for 'model.bias', but its config.json needs float32 (6,).",
        ),
        (
            reweigh(lambda state: state.update(more=torch.zeros(2))),
            "model.safetensors",
            "has float32 (2,) for 'more', but its config.json needs no such tensor.",
        ),
        (content_of("tokenizer.json", b"{}"), "tokenizer.json", "is not a tokenizer"),
        (content_of("tokenizer.json", b"\xff"), "tokenizer.json", "is not a tokenizer"),
    ],
)
def test_a_damaged_model_is_an_error_with_its_place_and_reason(
    saved: Path, damage: Callable[[Path], None], file: str, words: str
) -> None:
    System.load(saved)
    damage(saved)
    with pytest.raises(AwattError) as caught:
        System.load(saved)
    message = str(caught.value)
    assert message.startswith(str(saved / file))
    assert words in message
    assert "\n" not in message


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(AwattError, match=r"nowhere/config\.json does not exist"):
        System.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(AwattError, match=r"file/config\.json does not exist"):
        System.load(tmp_path / "file")


def test_settings_that_do_not_fit_the_weights_are_an_error(saved: Path) -> None:
    settings = json.loads((saved / "config.json").read_bytes())["settings"]
    settings["model"]["e_m"] = 7
    rewrite(settings=settings)(saved)
    with pytest.raises(
        DataError, match=r"has float32 \(6, 4\) for 'model\.weight', but its config\.json needs float32 \(6, 7\)"
    ):
        System.load(saved)
