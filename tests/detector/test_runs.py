"""A run of ``awatt train`` as a detector's model: every method gives the same scores as ``awatt evaluate``."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from awatt import AspectDetector
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.detector.examples import Examples
from awatt.errors import AwattError
from awatt.models import MODELS, DistanceModel
from awatt.research.scoring import predictions, score_episodes
from awatt.research.system import System
from awatt.thresholds.kinds import THRESHOLDS

torch.set_num_threads(1)

SHAPE = EpisodeShape(3, 4, 3)  # that of make_run
MakeRun = Callable[..., Path]


@pytest.fixture(scope="module")
def corpus(toy_data: Path) -> Corpus:
    return load_corpus(toy_data, "test")


def from_episode(folder: Path, corpus: Corpus, number: int) -> tuple[AspectDetector, list[str], Any]:
    """A detector that learned from an episode's support, the queries, and an evaluation's predictions for them."""
    episode = EpisodeSampler(corpus, SHAPE, 5).batch(number, 1)[0]
    support = episode.support.reshape(-1)
    labels = corpus.mentions[support[:, None], episode.aspects]
    own = np.eye(SHAPE.n_way, dtype=bool).repeat(SHAPE.n_shot, 0)
    assert (labels == own).all()  # as in the paper, an example stands for one aspect only
    texts = [corpus.sentences[place] for place in support]
    names = [corpus.aspects[aspect] for aspect in episode.aspects]
    detector = AspectDetector.from_examples(Examples.from_indicators(texts, own, names), model=folder)
    system = System.load(folder)
    evaluated = list(predictions(system, score_episodes(system, corpus, SHAPE, number + 1, 5)))
    queries = [corpus.sentences[place] for place in episode.query]
    return detector, queries, [np.concatenate(column)[number] for column in list(zip(*evaluated, strict=True))[:4]]


def find_episode(corpus: Corpus) -> int:
    """The first episode whose examples mention one of its aspects each."""
    batch = EpisodeSampler(corpus, SHAPE, 5).batch(0, 200)
    mentioned = corpus.mentions[batch.support[..., None], batch.aspects[:, None, None, :]].sum((1, 2, 3))
    return int(np.flatnonzero(mentioned == SHAPE.n_way * SHAPE.n_shot)[0])


COMBINATIONS = [(method, "static") for method in MODELS] + [("proto-awatt", name) for name in THRESHOLDS]


@pytest.mark.parametrize(("method", "threshold"), COMBINATIONS)
def test_scores_and_decisions_equal_those_of_an_evaluation(
    make_run: MakeRun, corpus: Corpus, tmp_path: Path, method: str, threshold: str
) -> None:
    folder = make_run(tmp_path / "run", method, threshold)
    detector, queries, (ranking, evidence, selected, _) = from_episode(folder, corpus, find_episode(corpus))
    wanted = evidence if THRESHOLDS[threshold].probabilistic else ranking
    found = detector.predictions(queries)
    np.testing.assert_allclose(found.scores, wanted, atol=1e-5)
    np.testing.assert_array_equal(found.accepted, selected)
    assert len(np.unique(found.scores.round(5))) > 3


@pytest.mark.parametrize("method", MODELS)
def test_any_number_of_aspects_and_examples(make_run: MakeRun, corpus: Corpus, tmp_path: Path, method: str) -> None:
    folder = make_run(tmp_path / "run", method)
    texts = list(corpus.sentences)
    for examples in ({"a": texts[:1]}, {"a": texts[:5], "b": texts[5:6], "c": texts[6:9], "d": texts[9:16]}):
        detector = AspectDetector.from_examples(examples, model=folder)
        found = detector.detect_many([*texts[20:23], "", "unknown 😀"])
        assert all(list(each.scores) == list(examples) for each in found)
        assert found[3].aspects == []
        loaded = AspectDetector.from_pretrained(detector.save_pretrained(tmp_path / f"saved{len(examples)}"))
        assert loaded.detect_many(texts[20:30]) == detector.detect_many(texts[20:30])
    assert detector.add_aspect("e", texts[30:32]).detect(texts[30]).scores.keys() == {"a", "b", "c", "d", "e"}
    assert detector.report().n_examples > 10
    assert len(detector.suggest(texts[40:50], 3)) == 3


def test_a_method_that_cannot_serve_so_many_aspects_names_one_that_can(
    make_run: MakeRun, corpus: Corpus, tmp_path: Path
) -> None:
    folder = make_run(tmp_path / "run", "graph")
    examples = {f"aspect {number}": [corpus.sentences[number]] for number in range(11)}
    with pytest.raises(AwattError, match=r"at most 10 aspects, found 11\..* or use graph-shared, which takes any"):
        AspectDetector.from_examples(examples, model=folder)


@pytest.mark.parametrize("method", MODELS)
def test_words_come_from_the_methods_own_attention(
    make_run: MakeRun, corpus: Corpus, tmp_path: Path, method: str
) -> None:
    folder = make_run(tmp_path / "run", method)
    texts = list(corpus.sentences)
    found = AspectDetector.from_examples({"a": texts[:3], "b": texts[3:6]}, model=folder).detect(texts[10], 0.0)
    if method not in ("proto-awatt", "proto-hatt"):
        assert found.words == {}
        return
    assert set(found.words) == {"a", "b"}
    for words in found.words.values():
        assert words
        assert all(found.text[word.start : word.end] == word.text for word in words)


def three_aspects(texts: list[str]) -> dict[str, list[str]]:
    return {name: texts[place : place + 2] for place, name in enumerate("abc")}


def test_the_policy_threshold_is_made_for_one_number_of_aspects(
    make_run: MakeRun, corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_run(tmp_path / "run", "proto-awatt", "policy")
    texts = list(corpus.sentences)
    with caplog.at_level(logging.WARNING):
        three = AspectDetector.from_examples(
            {name: texts[place : place + 2] for place, name in enumerate("abc")}, model=folder
        )
    assert caplog.text == ""
    assert np.isnan(three.thresholds()).all()  # decided per sentence
    with caplog.at_level(logging.WARNING):
        two = AspectDetector.from_examples({"a": texts[:2], "b": texts[2:4]}, model=folder)
    assert "was trained for 3 aspects, found 2. Using the paper's static threshold for 2 aspects (0.50)" in caplog.text
    assert two.thresholds().tolist() == [0.5, 0.5]
    found = two.predictions(texts[10:20])
    np.testing.assert_array_equal(found.accepted, found.scores >= 0.5)


def test_a_given_threshold_applies_to_the_scores(make_run: MakeRun, corpus: Corpus, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "proto-awatt", "policy")
    texts = list(corpus.sentences)
    detector = AspectDetector.from_examples(
        {name: texts[place : place + 2] for place, name in enumerate("abc")}, model=folder
    )
    found = detector.predictions(texts[10:40], threshold={"a": 0.4})
    own = detector.predictions(texts[10:40])
    np.testing.assert_array_equal(found.accepted[:, 0], found.scores[:, 0] >= 0.4)
    np.testing.assert_array_equal(found.accepted[:, 1:], own.accepted[:, 1:])


def test_the_modes_of_a_run(make_run: MakeRun, corpus: Corpus, tmp_path: Path) -> None:
    texts = list(corpus.sentences)
    examples = {"a": texts[:3], "b": texts[3:6]}
    static = make_run(tmp_path / "static", "proto-awatt")
    with pytest.raises(AwattError, match=r"mode acceptance needs probabilities, but .* has the static threshold"):
        AspectDetector.from_examples(examples, model=static, mode="acceptance").detect(texts[10])
    folder = make_run(tmp_path / "acceptance", "proto-awatt", "acceptance")
    paper = AspectDetector.from_examples(examples, model=folder, mode="paper")
    np.testing.assert_allclose(paper.predict_proba(texts[10:20]).sum(1), 1, atol=1e-6)
    assert paper.thresholds().tolist() == [0.5, 0.5]
    accepted = AspectDetector.from_examples(examples, model=folder, mode="acceptance")
    assert abs(accepted.predict_proba(texts[10:20]).sum(1) - 1).max() > 1e-3


@pytest.mark.parametrize("method", MODELS)
def test_the_commands_accept_a_run(
    make_run: MakeRun,
    corpus: Corpus,
    tmp_path: Path,
    method: str,
    run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    threshold = "policy" if issubclass(MODELS[method], DistanceModel) else "static"
    make_run(Path("run"), method, threshold)
    texts = list(corpus.sentences)
    Path("aspects.json").write_text(json.dumps({"a": texts[:4], "b": texts[4:6], "c": texts[6:9]}))
    Path("reviews.txt").write_text("\n".join(texts[10:30]))
    given = ("--examples", "aspects.json", "--model", "run")
    assert run("detect", "reviews.txt", *given, "--out", "found.jsonl").code == 0
    rows = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == texts[10:30]
    assert all(list(row["scores"]) == ["a", "b", "c"] for row in rows)
    assert run("explain", texts[12], *given).code == 0
    assert run("report", *given).code == 0
    alone = run("detect", "reviews.txt", "--model", "run")
    assert (alone.code, alone.err) == (
        2,
        "awatt: run is a run of 'awatt train', which has no aspects yet. Add --examples FILE.\n",
    )


def to_format_1(folder: Path, method: str) -> None:
    """Rewrite a run's folder in format 1: no kind, one digest, the episode in ``run.json`` only."""
    config = json.loads((folder / "config.json").read_text())
    old = {name: value for name, value in config.items() if name not in ("kind", "episode", "seed")}
    old |= {"format": 1, "sha256": config["sha256"]["model.safetensors"], "method": method}
    old["settings"]["model"].pop("form", None)
    (folder / "config.json").write_text(json.dumps(old))
    (folder / "run.json").write_text(json.dumps({"episode": config["episode"], "seed": config["seed"]}))


@pytest.mark.parametrize(
    ("method", "old_name"),
    [("proto-awatt", "proto-awatt"), ("relation-softmax", "relation"), ("graph-shared", "graph"), ("imp", "imp")],
)
def test_a_run_of_format_1_is_still_read(
    make_run: MakeRun, corpus: Corpus, tmp_path: Path, method: str, old_name: str
) -> None:
    folder, texts = make_run(tmp_path / "run", method), list(corpus.sentences)
    examples = {"a": texts[:3], "b": texts[3:5]}
    wanted = AspectDetector.from_examples(examples, model=folder).predict_proba(texts[10:20])
    to_format_1(folder, old_name)
    detector = AspectDetector.from_examples(examples, model=folder)
    np.testing.assert_array_equal(detector.predict_proba(texts[10:20]), wanted)
    saved = detector.save_pretrained(tmp_path / "saved")
    assert AspectDetector.from_pretrained(saved).loaded_model.trained_with == (SHAPE, 5)  # comes along


def test_a_proto_hatt_run_of_format_1_is_refused_with_the_command(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "proto-hatt")
    to_format_1(folder, "proto-hatt")
    with pytest.raises(AwattError, match=r"does not have\. Train it again: awatt train --method proto-hatt"):
        System.load(folder)
