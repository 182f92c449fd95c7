"""The page and the service with a run of ``awatt train`` in place of the bundled model."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'awatt[train]'")

from awatt import AspectDetector
from awatt.aspect_model.model import ACCURATE, AspectModel
from awatt.errors import AwattError
from awatt.server.measuring import measure_course
from awatt.server.run import make_server, threshold_note
from awatt.server.store import ProjectStore
from awatt.server.workbench import Workbench

from .conftest import make_client

EXAMPLES = {"one": ["noise1 test1word0", "test1word2 noise3"], "two": ["test2word0 noise5"], "three": ["test3word1"]}
TEXTS = ["noise2 test1word1 noise4", "test2word2", "noise7 noise8"]


@pytest.mark.parametrize("threshold", ["static", "policy", "acceptance"])
def test_the_service_detects_with_a_run(make_run: Callable[..., Path], tmp_path: Path, threshold: str) -> None:
    folder = make_run(tmp_path / "run", threshold=threshold)
    with make_client(tmp_path, model=folder) as client:
        for name, examples in EXAMPLES.items():
            assert client.post("/v1/aspects", json={"name": name, "examples": examples}).status_code == 200
        found = client.post("/v1/detect", json={"texts": TEXTS}).json()["detections"]
        direct = AspectDetector.from_examples(EXAMPLES, model=folder)
        auto = client.get("/v1/project").json()["auto_threshold"]
        if threshold == "policy":  # decided per sentence, which the page's sliders cannot show
            assert auto == pytest.approx(0.404, abs=1e-3)
            direct.set_params(threshold=auto)
        assert found == [asdict(each) for each in direct.detect_many(TEXTS)]
        assert any(each["aspects"] for each in found)
        assert client.get("/v1/report").status_code == 200
        raw, lines = {"content-type": "application/octet-stream"}, "\n".join(TEXTS).encode()
        query = {"format": "txt", "split": "false"}
        assert client.post("/v1/project/reviews", params=query, content=lines, headers=raw).status_code == 200
        scores = np.frombuffer(client.get("/v1/project/scores").content, np.float32).reshape(3, 3)
        np.testing.assert_allclose(scores, direct.predict_proba(TEXTS), atol=1e-6)
        assert client.get("/v1/project/map").status_code == 200


def test_the_service_detects_with_the_accurate_model(tmp_path: Path) -> None:
    examples = {"food": ["the pizza was cold", "tasty soup"], "staff": ["a rude waiter", "the waitress smiled"]}
    with make_client(tmp_path, model="accurate") as client:
        for name, texts in examples.items():
            client.post("/v1/aspects", json={"name": name, "examples": texts})
        found = client.post("/v1/detect", json={"texts": ["cold soup"]}).json()["detections"]
        assert client.get("/v1/project").json()["model"] == "accurate"
    direct = AspectDetector.from_examples(examples, model="accurate")
    assert found == [asdict(direct.detect("cold soup"))]
    assert found != [asdict(AspectDetector.from_examples(examples).detect("cold soup"))]


def test_a_threshold_that_decides_per_sentence_is_announced(make_run: Callable[..., Path], tmp_path: Path) -> None:
    note = threshold_note(make_run(tmp_path / "policy", threshold="policy"))
    assert note is not None
    assert "the policy threshold decides for each sentence anew. The page and the API use the paper's static" in note
    assert threshold_note(make_run(tmp_path / "static")) is None
    assert threshold_note("accurate") is None


def test_a_model_that_is_not_there_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(AwattError, match=r"nowhere/config\.json does not exist"):
        make_server("127.0.0.1", 0, tmp_path / "project.sqlite", [], tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_is_replaced_or_deleted_changes_a_running_server(tmp_path: Path, replaced: bool) -> None:
    folder, store = tmp_path / "model", ProjectStore(tmp_path / "project.sqlite")
    AspectModel.load().save(folder)
    food, _ = store.add_aspect("food", ["Cold soup."]), store.add_aspect("staff", ["A rude waiter."])
    store.load_reviews([({}, ["The soup was cold."]), ({}, ["The waiter was kind."])])
    workbench = Workbench(store, folder)
    workbench.scores()
    shutil.rmtree(folder)
    if replaced:
        shutil.copytree(ACCURATE, folder)
    store.add_examples(food, ["Tasty bread."])
    _, _, scores = workbench.scores()
    np.testing.assert_array_equal(scores, Workbench(store).scores()[2])
    assert workbench.detector().loaded_model is workbench.model
    assert measure_course(workbench).points == []
    store.label_sentence("The soup was cold.", [food])
    store.label_sentence("The waiter was kind.", [])
    assert len(measure_course(workbench).points) > 1
