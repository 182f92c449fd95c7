"""Saved detectors: self-contained, checked and written atomically."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import shutil
import threading
from copy import copy, deepcopy
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from safetensors.numpy import save, save_file

from awatt import AspectDetector
from awatt.aspect_model.model import BUNDLED, AspectModel
from awatt.detector.trial import _errors_of, check_state
from awatt.errors import AwattError
from awatt.folders import write_folder

EXAMPLES = {"food": ["the pizza was cold", "tasty soup"], "staff": ["a rude waiter", "the waitress smiled"]}
TEXTS = ["cold soup", "the waiter smiled", "", "nothing of the kind"]


@pytest.fixture
def detector() -> AspectDetector:
    return AspectDetector.from_examples(EXAMPLES, threshold={"food": 0.3})


def test_a_loaded_detector_gives_the_same_results(detector: AspectDetector, tmp_path: Path) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "model.safetensors", "tokenizer.json", "README.md", "aspects.safetensors", "examples.jsonl"),
    }
    loaded = AspectDetector.from_pretrained(folder)
    assert loaded.threshold == {"food": 0.3}
    assert loaded.detect_many(TEXTS) == detector.detect_many(TEXTS)
    assert loaded.classes_.tolist() == ["food", "staff"]
    loaded.add_aspect("music", ["loud music"])
    assert AspectDetector.from_pretrained(loaded.save_pretrained(tmp_path / "more")).aspects[-1] == "music"
    card = (folder / "README.md").read_text("utf-8")
    assert "| food | 2 |" in card


def test_a_saved_folder_includes_its_model(detector: AspectDetector, tmp_path: Path) -> None:
    loaded = AspectDetector.from_pretrained(detector.save_pretrained(tmp_path / "saved"))
    assert Path(str(loaded.model)) == tmp_path / "saved"


def test_a_loaded_detector_works_after_its_folder_is_deleted(
    detector: AspectDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    loaded, wanted = AspectDetector.from_pretrained(folder), detector.detect_many(TEXTS)
    stored = pickle.dumps(loaded)
    assert len(stored) < 200_000
    assert pickle.loads(stored).detect_many(TEXTS) == wanted
    monkeypatch.chdir(tmp_path)
    relative = AspectDetector.from_pretrained("saved")
    monkeypatch.chdir(tmp_path.parent)
    assert relative.detect_many(TEXTS) == wanted
    shutil.rmtree(folder)
    for each in (loaded, copy(loaded), deepcopy(loaded)):
        assert each.detect_many(TEXTS) == wanted
    assert loaded.report()
    assert loaded.suggest(["cold tea", "warm tea"], 1)
    assert loaded.add_aspect("music", ["loud music"]).aspects[-1] == "music"
    again = AspectDetector.from_pretrained(loaded.save_pretrained(tmp_path / "again"))
    assert again.aspects == ("food", "staff", "music")
    with pytest.raises(AwattError, match=r"config\.json does not exist"):
        loaded.fit(["soup"], [["food"]])
    assert loaded.detect_many(TEXTS) == again.detect_many(TEXTS)  # which the failed fit did not change


def test_a_loaded_detector_keeps_its_model_when_another_one_is_saved_in_its_folder(
    detector: AspectDetector, tmp_path: Path
) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    loaded = AspectDetector.from_pretrained(folder)
    other = AspectDetector.from_examples(EXAMPLES, threshold={"food": 0.3}, model="accurate")
    other.save_pretrained(folder, overwrite=True)
    assert loaded.detect_many(TEXTS) == detector.detect_many(TEXTS)
    assert AspectDetector.from_pretrained(folder).detect_many(TEXTS) == other.detect_many(TEXTS)
    texts, labels = [text for each in EXAMPLES.values() for text in each], [["food"]] * 2 + [["staff"]] * 2
    assert loaded.fit(texts, labels).detect_many(TEXTS) == other.detect_many(TEXTS)  # a fit reads the folder again


def test_a_threshold_that_is_a_mapping_but_no_dict_is_saved(detector: AspectDetector, tmp_path: Path) -> None:
    detector.set_params(threshold=MappingProxyType({"food": 0.3}))
    folder = detector.save_pretrained(tmp_path / "saved")
    assert AspectDetector.from_pretrained(folder).threshold == {"food": 0.3}
    assert "threshold `{'food': 0.3}`" in (folder / "README.md").read_text("utf-8")
    for threshold in (np.float32(0.5), {"food": np.float32(0.5)}):
        detector.set_params(threshold=threshold).save_pretrained(folder, overwrite=True)
        assert AspectDetector.from_pretrained(folder).threshold == threshold


def test_examples_can_be_left_out_of_the_folder(detector: AspectDetector, tmp_path: Path) -> None:
    folder = detector.save_pretrained(tmp_path / "saved", examples=False)
    content = b"".join(path.read_bytes() for path in folder.iterdir() if path.name != "tokenizer.json")
    assert b"the pizza was cold" not in content
    assert b"rude waiter" not in content
    loaded = AspectDetector.from_pretrained(folder)
    assert loaded.detect_many(TEXTS) == detector.detect_many(TEXTS)
    for use in (loaded.report, lambda: loaded.add_aspect("a", ["b"]), lambda: loaded.remove_aspect("food")):
        with pytest.raises(AwattError, match="saved without its examples"):
            use()
    with pytest.raises(AwattError, match=r"Add --without-examples \(in Python: examples=False\)"):
        loaded.save_pretrained(tmp_path / "again")
    again = loaded.save_pretrained(tmp_path / "again", examples=False)
    assert AspectDetector.from_pretrained(again).detect_many(TEXTS) == detector.detect_many(TEXTS)
    assert loaded.suggest(["cold tea", "warm tea"], 1)


def test_a_loaded_detector_still_predicts_a_matrix(tmp_path: Path) -> None:
    fitted = AspectDetector().fit(["pizza", "waiter"], np.eye(2))
    loaded = AspectDetector.from_pretrained(fitted.save_pretrained(tmp_path / "saved"))
    np.testing.assert_array_equal(loaded.predict(["pizza"]), fitted.predict(["pizza"]))
    assert loaded.classes_.tolist() == [0, 1]


def test_nothing_is_overwritten_without_overwrite(detector: AspectDetector, tmp_path: Path) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    with pytest.raises(AwattError, match="overwrite=True"):
        detector.save_pretrained(folder)
    detector.remove_aspect("food").set_params(threshold=0.5)
    detector.save_pretrained(folder, overwrite=True)
    assert AspectDetector.from_pretrained(folder).aspects == ("staff",)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(AwattError, match="Choose another folder"):
        detector.save_pretrained(tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "saved"]


def test_overwriting_a_detector_keeps_other_files_in_its_folder(detector: AspectDetector, tmp_path: Path) -> None:
    folder = detector.save_pretrained(tmp_path / "saved", examples=False)
    (folder / "notes.txt").write_text("precious")
    (folder / "plots").mkdir()
    (folder / "plots" / "one.txt").write_text("too")
    detector.save_pretrained(folder, overwrite=True, examples=False)
    assert (folder / "notes.txt").read_text() == "precious"
    assert (folder / "plots" / "one.txt").read_text() == "too"
    (folder / "examples.jsonl").write_text("mine")
    with pytest.raises(AwattError, match=r"examples\.jsonl: this file is not the detector's"):
        detector.save_pretrained(folder, overwrite=True)
    assert (folder / "examples.jsonl").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert AspectDetector.from_pretrained(folder).aspects == ("food", "staff")


def test_a_loaded_detector_can_overwrite_its_own_folder(detector: AspectDetector, tmp_path: Path) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    loaded = AspectDetector.from_pretrained(folder).add_aspect("music", ["loud music"])
    loaded.save_pretrained(folder, overwrite=True)
    assert AspectDetector.from_pretrained(folder).aspects == ("food", "staff", "music")


def test_a_folder_that_cannot_be_replaced_stays_as_it_is(
    detector: AspectDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    rename = os.rename

    def fail(old: Path, new: Path) -> None:
        if old.suffix == ".tmp":
            raise OSError(13, "Permission denied")
        rename(old, new)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(AwattError, match="Permission denied"):
        detector.save_pretrained(folder, overwrite=True)
    assert list(tmp_path.iterdir()) == [folder]
    assert AspectDetector.from_pretrained(folder).aspects == detector.aspects


def test_neither_the_current_folder_nor_an_empty_detector_is_saved(
    detector: AspectDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AwattError, match="this is the current folder"):
        detector.save_pretrained(".", overwrite=True)
    with pytest.raises(AwattError, match="has no examples yet"):
        AspectDetector().save_pretrained("new")


def test_a_failed_save_leaves_no_files(
    detector: AspectDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("awatt.folders.write_whole", fail)
    with pytest.raises(AwattError, match="No space left on device"):
        detector.save_pretrained(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(AwattError, match="there is no folder"):
        detector.save_pretrained(tmp_path / "no" / "saved")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "aspects.safetensors", "examples.jsonl"])
def test_a_changed_or_missing_file_is_named(detector: AspectDetector, tmp_path: Path, name: str) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    with (folder / name).open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(AwattError, match=rf"{name}: does not match its sha256 in config.json"):
        AspectDetector.from_pretrained(folder)
    (folder / name).unlink()
    with pytest.raises(AwattError, match=rf"{name}: is missing or cannot be read"):
        AspectDetector.from_pretrained(folder)


def test_a_folder_that_is_not_a_detector_is_an_error(detector: AspectDetector, tmp_path: Path) -> None:
    with pytest.raises(AwattError, match=r"config\.json does not exist. A model is a folder with"):
        AspectDetector.from_pretrained(tmp_path)
    with pytest.raises(AwattError, match="is a model of 'awatt train-detector', but a saved detector is needed"):
        AspectDetector.from_pretrained(BUNDLED)
    folder = detector.save_pretrained(tmp_path / "saved")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["format"] = 99
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        AwattError,
        match=r"has format 99, but this version.*reads formats 1 to 2\. Run: pip install --upgrade awatt",
    ):
        AspectDetector.from_pretrained(folder)


@pytest.mark.parametrize(
    "content",
    [5, None, "detector", {"detector": 5}, {"detector": {}}, {"format": 2}, {"format": 2, "kind": "detector"}],
)
def test_an_invalid_config_is_an_error(detector: AspectDetector, tmp_path: Path, content: object) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    (folder / "config.json").write_text(json.dumps(content))
    with pytest.raises(
        AwattError, match=r"config\.json: .*(not an awatt model folder|not a JSON object|has kind|sha256)"
    ):
        AspectDetector.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("aspects", None), ("aspects", 5), ("examples", "many"), ("mode", []), ("classes", {}), ("indicators", "no")],
)
def test_a_setting_of_the_wrong_type_is_named(
    detector: AspectDetector, tmp_path: Path, name: str, value: object
) -> None:
    folder = detector.save_pretrained(tmp_path / "saved")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config = {key: each for key, each in (config | {name: value}).items() if each is not None}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(AwattError, match=f"'{name}'.*does not describe a saved detector"):
        AspectDetector.from_pretrained(folder)


@pytest.mark.parametrize("format", [1, 2])
@pytest.mark.parametrize("examples", [True, False])
def test_a_detector_of_the_replaced_model_is_refused_and_told_what_to_do(
    detector: AspectDetector, tmp_path: Path, format: int, examples: bool
) -> None:
    folder = detector.save_pretrained(tmp_path / "saved", examples=examples)
    save_file({"parameter.weight_1": np.zeros(2, dtype=np.float32)}, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in config["sha256"]}
    config["sha256"] = digests
    if format == 1:
        saved = {name: config[name] for name in ("aspects", "classes", "indicators", "examples", "threshold")}
        saved |= {"format_version": 1, "awatt_version": "0.1.0", "mode": "acceptance", "sha256": digests}
        config = {name: value for name, value in config["model"].items() if name != "kind"}
        config |= {"format": 1, "awatt": "0.1.0", "sha256": digests["model.safetensors"], "detector": saved}
    (folder / "config.json").write_text(json.dumps(config))
    advice = "Fit it again from its examples: --examples .*examples.jsonl, or AspectDetector.from_examples"
    if not examples:
        advice = "It was saved without its examples: fit it again with AspectDetector.from_examples"
    with pytest.raises(AwattError, match=f"made by an older version of awatt.*{advice}"):
        AspectDetector.from_pretrained(folder)


def test_a_model_of_the_replaced_kind_is_refused(tmp_path: Path) -> None:
    model = AspectModel.load()
    model.save(tmp_path)
    old = {**model.files(), "model.safetensors": save({"parameter.weight_1": np.zeros(2, dtype=np.float32)})}
    write_folder(tmp_path, "aspect-model", model.config(), old)
    with pytest.raises(AwattError, match="Train it again with 'awatt train-detector'"):
        AspectModel.load(tmp_path)


def test_warnings_stay_off_after_two_folders_were_tried_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, begun = logging.getLogger("awatt.research.run_model"), threading.Barrier(3)
    ends = [threading.Event(), threading.Event()]

    def try_folder(end: threading.Event) -> None:
        with _errors_of(tmp_path):
            log.warning("in a trial")
            begun.wait(10)
            end.wait(10)

    threads = [threading.Thread(target=try_folder, args=(end,)) for end in ends]
    for thread in threads:
        thread.start()
    begun.wait(10)
    log.warning("of another thread")
    for thread, end in zip(threads, ends, strict=True):  # the first to begin is the first to end
        end.set()
        thread.join()
    log.warning("afterwards")
    assert caplog.messages == ["of another thread", "afterwards"]


def test_reviews_without_a_sentence_were_saved_and_could_not_be_loaded(tmp_path: Path) -> None:
    for number, reviews in enumerate(([], ["..."])):
        detector = AspectDetector.from_examples(EXAMPLES, reviews=reviews)
        loaded = AspectDetector.from_pretrained(detector.save_pretrained(tmp_path / str(number)))
        assert loaded.detect_many(TEXTS) == detector.detect_many(TEXTS)


def test_arrays_of_another_version_are_refused_with_advice_that_helps(detector: AspectDetector, tmp_path: Path) -> None:
    arrays = detector.loaded_model.pack(detector.fitted_)
    arrays["known_values"] = arrays["known_values"].astype(np.float64)
    advice = r"of 2 aspects. If another version of awatt saved it, learn again from its examples.jsonl"
    with pytest.raises(AwattError, match=advice):
        check_state(detector.loaded_model, arrays, 2, tmp_path)
