"""The two models of the package, by name: fast and accurate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from awatt import AspectDetector
from awatt.arrays import Sentences
from awatt.aspect_model.model import ACCURATE, BUNDLED, AspectModel
from awatt.aspect_model.packing import pack
from awatt.aspect_model.student.encoder import StudentEncoder
from awatt.data.corpus import load_sample
from awatt.detector.models import load_model, model_folder, read_model
from awatt.errors import AwattError
from awatt.folders import write_folder

EXAMPLES = {"food": ["the pizza was cold", "tasty soup"], "staff": ["a rude waiter", "the waitress smiled"]}
TEXTS = ["cold soup", "the waiter smiled", "", "nothing of the kind", "The soup was tasty, but the waiter was rude."]
MODELS = ("fast", "accurate")


def test_names_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_folder("fast") == model_folder(None) == BUNDLED
    assert model_folder("accurate") == ACCURATE
    monkeypatch.chdir(tmp_path)
    load_model("accurate").save(Path("fast"))  # type: ignore[attr-defined]
    assert model_folder("./fast") == Path("fast")
    own = AspectDetector.from_examples(EXAMPLES, model="./fast")
    accurate = AspectDetector.from_examples(EXAMPLES, model="accurate")
    assert own.detect_many(TEXTS) == accurate.detect_many(TEXTS)


def test_a_wrong_name_is_told_the_right_ones() -> None:
    with pytest.raises(
        AwattError, match=r"acurate/config.json does not exist.*or one of the package: fast or accurate"
    ):
        AspectDetector.from_examples(EXAMPLES, model="acurate")


def test_loading_a_model_by_its_name_was_told_that_it_is_one_of_the_package() -> None:
    with pytest.raises(AwattError, match=r"not a saved detector. Fit one: .*from_examples\(examples, model='fast'\)"):
        AspectDetector.from_pretrained("fast")


def test_the_models_differ_and_fast_is_the_default() -> None:
    scores = [AspectDetector.from_examples(EXAMPLES, model=name).predict_proba(TEXTS) for name in MODELS]
    np.testing.assert_array_equal(scores[0], AspectDetector.from_examples(EXAMPLES).predict_proba(TEXTS))
    assert np.abs(scores[0] - scores[1]).max() > 0.01
    assert repr(AspectDetector()) == "AspectDetector()"
    assert repr(AspectDetector(model="accurate")) == "AspectDetector(model='accurate')"


@pytest.mark.parametrize("name", MODELS)
def test_a_score_is_the_same_alone_and_in_a_batch(name: str) -> None:
    one, all_at_once = read_model(name), read_model(name)  # of which neither remembers what the other has computed
    reviews = one.tokenize(load_sample().sentences[:60])
    examples = one.tokenize([text for texts in EXAMPLES.values() for text in texts])
    labels = np.repeat(np.eye(2, dtype=bool), 2, 0)
    fitted = one.fit(examples, labels, list(EXAMPLES), reviews)
    sentences = one.tokenize(load_sample().sentences[60:160])
    together = all_at_once.predict(fitted, sentences).scores
    alone = [one.predict(fitted, sentences.take(np.array([number]))).scores for number in range(100)]
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_detector_is_complete_and_loads_again(name: str, tmp_path: Path) -> None:
    reviews = load_sample().sentences[:40]
    detector = AspectDetector.from_examples(EXAMPLES, reviews=reviews, model=name)
    folder = detector.save_pretrained(tmp_path / "saved")
    loaded = AspectDetector.from_pretrained(folder)
    assert loaded.detect_many(TEXTS) == detector.detect_many(TEXTS)
    assert loaded.add_examples("food", ["stale bread"]).detect_many(TEXTS) == (
        detector.add_examples("food", ["stale bread"]).detect_many(TEXTS)
    )
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert sizes["tokenizer.json"] > 1e5
    assert sizes["model.safetensors"] > 7e6


def test_a_student_that_does_not_fit_its_vectors_is_an_error(tmp_path: Path) -> None:
    model = AspectModel.load(ACCURATE)
    assert model.weights.student is not None
    student = model.weights.student._replace(extra=model.weights.student.extra[:9])
    files = {**model.files(), "model.safetensors": save(pack(model.weights._replace(student=student)))}
    write_folder(tmp_path / "model", "aspect-model", model.config(), files)
    with pytest.raises(AwattError, match=r"model: cannot be read as a model .*Copy the folder again"):
        load_model(tmp_path / "model")


def test_learning_and_showing_words_encode_each_sentence_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[bytes] = []
    encode = StudentEncoder.__call__

    def count(self: StudentEncoder, sentences: Sentences) -> Any:
        encoded.extend(sentences.keys())
        return encode(self, sentences)

    model = load_model("accurate")
    model.vectors.context.clear()  # type: ignore[attr-defined]
    monkeypatch.setattr(StudentEncoder, "__call__", count)
    texts = load_sample().sentences
    off_topic, reviews = texts[:30], texts[30:90]
    detector = AspectDetector.from_examples({**EXAMPLES, None: off_topic}, reviews=reviews, model="accurate")
    detector.detect_many(reviews)
    assert encoded
    assert len(encoded) == len(set(encoded))


def test_names_words_and_advice_with_the_accurate_model() -> None:
    detector = AspectDetector.from_names(["food", "staff"], reviews=load_sample().sentences[:40], model="accurate")
    found = detector.detect("The food was great.")
    assert found.aspects == ["food"]
    assert "food" in [word.text for word in found.words["food"]]
    learned = AspectDetector.from_examples(EXAMPLES, model="accurate")
    assert learned.report()
    assert len(learned.suggest(TEXTS, 2)) == 2


def test_every_command_takes_the_name(run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reviews.txt").write_text("\n".join(TEXTS[:2]))
    for command in (("detect", "reviews.txt"), ("explain", TEXTS[0])):
        outputs = [run(*command, "--aspects", "food,staff", "--model", name) for name in MODELS]
        assert [each.code for each in outputs] == [0, 0]
        assert outputs[0].out != outputs[1].out
    assert run("report", "--aspects", "food,staff", "--model", "accurate").code == 0
    assert run("demo", "--model", "accurate").out != run("demo").out


def test_accurate_without_examples_is_an_error(run: Callable[..., Any]) -> None:
    code, _, err = run("explain", "soup", "--model", "accurate")
    assert code == 2
    assert err == (
        "awatt: accurate is a model of the package, which has no aspects yet. Add --examples FILE or --aspects NAMES.\n"
    )
