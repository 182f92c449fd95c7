"""AspectDetector: its input, its results and its error messages."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import awatt
from awatt import AspectDetector
from awatt.data.corpus import load_sample
from awatt.detector.results import Detection
from awatt.errors import AwattError
from awatt.thresholds.default import default_threshold

EXAMPLES = {
    "food": [
        "the pizza was delicious",
        "tasty pasta and pizza",
        "the soup was delicious",
        "delicious pasta",
        "tasty soup",
    ],
    "staff": [
        "the waiter was rude",
        "a rude waitress",
        "the waiter ignored us",
        "our waitress was rude",
        "rude waiters",
    ],
    "parking": [
        "no parking spot",
        "the parking lot was full",
        "parking lot",
        "we found no parking",
        "full parking lot",
    ],
}
DETECTOR = AspectDetector.from_examples(EXAMPLES)
TABLE = type("Table", (list,), {"columns": ["text", "aspects"]})(["text", "aspects"])  # iterates over its headers


@pytest.fixture
def detector() -> AspectDetector:
    return AspectDetector.from_examples(EXAMPLES)


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in awatt.__all__ if not hasattr(awatt, name)] == []
    assert set(awatt.__all__) <= set(dir(awatt))
    with pytest.raises(AttributeError, match="nope"):
        awatt.nope  # noqa: B018


def test_clear_cut_sentences(detector: AspectDetector) -> None:
    assert detector.detect("The pizza was delicious!").aspects == ["food"]
    assert detector.detect("The parking lot was full.").aspects == ["parking"]
    both = detector.detect("The waiter was rude.", threshold={"food": 1.0})
    assert both.aspects == ["staff"]
    assert list(both.scores) == ["food", "staff", "parking"]
    assert max(both.scores, key=lambda name: both.scores[name]) == "staff"


def test_every_detection_has_a_probability_for_every_aspect(detector: AspectDetector) -> None:
    for found in detector.detect_many(["The pizza was delicious!", "", "😀", "zxqv wvvq"]):
        assert list(found.scores) == list(EXAMPLES)
        assert all(0 <= score <= 1 for score in found.scores.values())


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda each: pickle.loads(pickle.dumps(each)), replace])
def test_scores_that_nobody_asked_for_are_there_in_copies(
    detector: AspectDetector, copied: Callable[[Detection], Detection]
) -> None:
    """They become a dictionary when they are first asked for."""
    texts = ["The soup was cold.", "Our waiter smiled."]
    first, second = detector.detect_many(texts)
    again = copied(first)
    assert again == first == Detection(first.text, first.aspects, again.scores, first.words)
    assert repr(again) == repr(first)
    assert json.loads(json.dumps(again.scores)) == first.scores
    assert list(first.scores) == list(detector.aspects)
    assert first.scores is first.scores
    assert [each.scores for each in (first, second)] == [
        dict(zip(detector.aspects, row, strict=True)) for row in detector.predict_proba(texts).round(4).tolist()
    ]
    with pytest.raises(AttributeError, match="no attribute 'score'"):
        getattr(first, "score")  # noqa: B009 (a type checker knows that there is none)


def test_a_score_does_not_depend_on_the_batch(detector: AspectDetector) -> None:
    texts = load_sample().sentences
    together = detector.predict_proba(texts)
    apart = [detector.predict_proba(texts[first : first + 7]) for first in range(0, len(texts), 7)]
    assert len(texts) > 200
    np.testing.assert_allclose(np.concatenate(apart), together, rtol=1e-14)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "　"])
@pytest.mark.parametrize("mode", ["acceptance", "paper"])
def test_a_blank_text_mentions_nothing(text: str, mode: str) -> None:
    found = AspectDetector.from_examples(EXAMPLES, mode=mode, threshold=0.0).detect(text)
    assert (found.aspects, set(found.scores.values()), found.words) == ([], {0.0}, {})


@settings(max_examples=30)
@given(st.text(max_size=200), st.sampled_from([0.0, 0.01, 0.5]))
def test_words_are_whole_and_have_the_right_offsets(text: str, threshold: float) -> None:
    found = DETECTOR.detect(text, threshold)
    assert list(found.words) == found.aspects
    for words in found.words.values():
        assert len(words) <= 5
        assert [word.start for word in words] == sorted(word.start for word in words)
        for word in words:
            assert found.text[word.start : word.end] == word.text
            assert 0 < word.weight <= 1
        assert sum(word.weight for word in words) <= 1.001


def test_the_tokens_of_a_word_are_merged() -> None:
    text = "Unbelievably scrumptious cheesecake, didn't the check-in cost 3.50?"
    found = DETECTOR.detect(text, threshold=0.0)
    whole = {"Unbelievably", "scrumptious", "cheesecake", "didn't", "the", "check-in", "cost", "3.50"}
    assert {word.text for words in found.words.values() for word in words} <= whole


@settings(max_examples=30)
@given(st.text(alphabet="ab. !?\n\r\u2028é😀'\"()", max_size=80))
def test_sentences_of_a_review_have_the_right_offsets(text: str) -> None:
    review = DETECTOR.detect_review(text, threshold=0.0)
    place = 0
    for part in review.sentences:
        assert part.start >= place
        assert text[part.start : part.end] == part.text
        place = part.end
    covered = "".join(part.text for part in review.sentences)
    assert "".join(covered.split()) == "".join(text.split())
    for words in review.words.values():
        assert all(text[word.start : word.end] == word.text for word in words)


def test_a_review_combines_its_sentences(detector: AspectDetector) -> None:
    text = "The pizza was delicious. Mr. Smith, the waiter, was rude!\nThe parking lot was full"
    review = detector.detect_review(text)
    assert [part.text for part in review.sentences] == [
        "The pizza was delicious.",
        "Mr. Smith, the waiter, was rude!",
        "The parking lot was full",
    ]
    assert {"food", "parking"} <= set(review.aspects)
    assert review.scores == {
        name: max(part.scores[name] for part in review.sentences) for name in ("food", "staff", "parking")
    }
    assert detector.detect_review("").aspects == []
    assert list(detector.detect_review("").scores) == list(EXAMPLES)


def test_printing_marks_the_words(detector: AspectDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    found = detector.detect("The parking lot was full.")
    assert "[parking: parking]" in str(found)
    assert "→ parking 0." in str(found) or "→ parking 1.00" in str(found)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;35mparking\x1b[0m" in str(found)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in str(found)
    assert str(detector.detect("")).endswith("→ none")


def test_the_threshold_can_change_without_learning_again(detector: AspectDetector) -> None:
    text = "The pizza was delicious!"
    scores = detector.detect(text).scores
    assert detector.detect(text, threshold=0.0).aspects == list(EXAMPLES)
    assert detector.detect(text, threshold=1.0).aspects == [name for name, score in scores.items() if score >= 1]
    assert detector.detect(text, threshold={"food": 1.0}).scores == scores
    assert detector.set_params(threshold=0.0).detect(text).aspects == list(EXAMPLES)
    assert detector.detect(text, threshold="auto").aspects == ["food"]


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        (1.5, "from 0 to 1"),
        (float("nan"), "from 0 to 1"),
        ("high", "'high'"),
        (True, "True"),
        ({"fod": 0.5}, "'fod', which is not an aspect. The aspects are: 'food', 'staff', 'parking'"),
        ({"food": None}, "null"),
    ],
)
def test_an_invalid_threshold_is_an_error(detector: AspectDetector, threshold: object, message: str) -> None:
    with pytest.raises(AwattError, match=message):
        detector.detect("x", threshold=threshold)  # type: ignore[arg-type]


def test_tuning_finds_thresholds_that_fit(detector: AspectDetector) -> None:
    texts = [text for group in EXAMPLES.values() for text in group] + ["hello there", "what a day"]
    labels = [[name] for name, group in EXAMPLES.items() for _ in group] + [[], []]
    before = detector.score(texts, labels)
    assert detector.tune_threshold(texts, labels) is detector
    assert isinstance(detector.threshold, dict)
    assert list(detector.threshold) == list(EXAMPLES)
    assert detector.score(texts, labels) >= before


def test_tuning_without_a_label_gave_all_aspects_the_first_ones_threshold(detector: AspectDetector) -> None:
    detector.set_params(threshold={"food": 0.9, "staff": "precise"})
    before = detector.thresholds().tolist()
    assert detector.tune_threshold(["hello there", "what a day"], [[], []]).thresholds().tolist() == before
    assert len(set(before)) == 3


@pytest.mark.parametrize("n_rows", [1, 3])
def test_texts_and_labels_must_have_the_same_length(detector: AspectDetector, n_rows: int) -> None:
    for method in (detector.score, detector.tune_threshold, detector.fit):
        with pytest.raises(AwattError, match=f"X has 2 texts, but y has {n_rows} row"):
            method(["tasty soup", "a rude waiter"], [["food"]] * n_rows)


def test_scores_of_the_papers_rule_sum_to_one() -> None:
    paper = AspectDetector.from_examples(EXAMPLES, mode="paper")
    scores = paper.predict_proba(["The pizza was delicious!", "what a day", "zxqv"])
    np.testing.assert_allclose(scores.sum(1), 1)
    plain = DETECTOR.predict_proba(["what a day"])
    odds = plain / (1 - plain)
    np.testing.assert_allclose(paper.predict_proba(["what a day"]), odds / odds.sum(), rtol=1e-6)
    np.testing.assert_allclose(paper.thresholds(), default_threshold(3))
    assert paper.predict(["The pizza was delicious!"]) == [["food"]]
    with pytest.raises(AwattError, match="no mode 'papr'"):
        AspectDetector.from_examples(EXAMPLES, mode="papr").detect("x")


def test_aspects_and_examples_are_added_and_removed(detector: AspectDetector) -> None:
    detector.add_aspect("music", ["loud music", "the music was too loud", "great live music"])
    assert detector.aspects == ("food", "staff", "parking", "music")
    assert detector.detect("The music was loud.").aspects == ["music"]
    detector.remove_aspect("food")
    assert list(detector.detect("The pizza was delicious!").scores) == ["staff", "parking", "music"]
    detector.add_examples("staff", ["the bartender smiled", "friendly bartender"])
    assert detector.counts_.tolist() == [7, 5, 3]
    same = AspectDetector.from_examples(
        {
            **{name: EXAMPLES[name] for name in ("staff", "parking")},
            "music": ["loud music", "the music was too loud", "great live music"],
        }
    ).add_examples("staff", ["the bartender smiled", "friendly bartender"])
    assert same.detect("a rude bartender").scores == detector.detect("a rude bartender").scores


def test_removing_an_aspect_removes_its_threshold(detector: AspectDetector) -> None:
    given = {"food": 0.4, "staff": 0.6}
    detector.set_params(threshold=given).remove_aspect("staff")
    assert detector.thresholds().tolist() == [0.4, detector.thresholds("auto")[1]]
    assert given == {"food": 0.4, "staff": 0.6}  # the caller's dict is not changed


def test_names_are_stripped_everywhere(tmp_path: Path) -> None:
    detector = AspectDetector.from_examples({" food ": ["tasty soup", "cold pasta"], "staff": ["a rude waiter"]})
    assert detector.aspects == ("food", "staff")
    with pytest.raises(AwattError, match="there already is an aspect"):
        detector.add_aspect("food ", ["pizza"])
    loaded = AspectDetector.from_pretrained(detector.save_pretrained(tmp_path / "saved"))
    assert loaded.add_examples("food", ["pizza"]).counts_.tolist() == [3, 1]
    fitted = AspectDetector().fit(["tasty soup", "a rude waiter"], [[" food "], ["staff"]])
    assert fitted.aspects == ("food", "staff")
    assert fitted.predict(["tasty soup"], threshold=0.0) == [
        [" food ", "staff"]
    ]  # labels are returned as they were given


def test_an_unpaired_surrogate_is_an_error(detector: AspectDetector) -> None:
    for call in (detector.detect, detector.detect_review, lambda text: detector.predict_proba([text])):
        with pytest.raises(AwattError, match=r"text.* contains an unpaired surrogate .* at character 4\."):
            call("caf\udce9 au lait")
    with pytest.raises(AwattError, match="an example contains an unpaired surrogate"):
        detector.add_examples("food", ["soup \ud800"])


def test_invalid_additions_and_removals_are_errors(detector: AspectDetector) -> None:
    with pytest.raises(AwattError, match="there already is an aspect 'food'"):
        detector.add_aspect("food", ["x"])
    with pytest.raises(AwattError, match="no aspect 'music'"):
        detector.add_examples("music", ["x"])
    with pytest.raises(AwattError, match="no aspect 'music'"):
        detector.remove_aspect("music")
    with pytest.raises(AwattError, match="'a' is the only aspect"):
        AspectDetector.from_examples({"a": ["b"]}).remove_aspect("a")
    with pytest.raises(AwattError, match="needs a list of sentences"):
        detector.add_examples("food", "great")


def test_a_sentence_under_two_aspects_mentions_both_and_duplicates_count_once() -> None:
    both = "the waiter spilled my pizza"
    detector = AspectDetector.from_examples(
        {"food": [both, "pizza", "pizza", " pizza "], "staff": ["the waiter", both]},
    )
    assert detector.examples_ is not None
    assert detector.examples_.pairs() == [(both, ("food", "staff")), ("pizza", ("food",)), ("the waiter", ("staff",))]


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ({}, "there are no aspects"),
        ({"7": []}, "aspect '7' has no example, and its name has no known word"),
        ({"food": ["fine", " "]}, "an example of aspect 'food' is ' '"),
        ({"food": [None]}, "an example of aspect 'food' is null"),
        ({"food": [float("nan")]}, "is nan"),
        ({"food": "the pizza"}, "aspect 'food' has 'the pizza', but needs a list"),
        ({"food": 3}, "aspect 'food' has 3"),
        ({"": ["x"]}, "an aspect is named ''"),
        ({3: ["x"]}, "an aspect is named 3"),
        ({f"a{n}": ["x"] for n in range(201)}, "201 aspects, but at most 200"),
        (b"examples.jsonl", r"found b'examples.jsonl', but needs a form such as .* \"examples.csv\"\.$"),
        (TABLE, r"^found a table, but needs a form such as .* Give its rows: table.to_dict\(\"re"),
        (3, "found 3, but needs a form such as"),
    ],
)
def test_invalid_examples_are_an_error(examples: Any, message: str) -> None:
    with pytest.raises(AwattError, match=message):
        AspectDetector.from_examples(examples)


@pytest.mark.parametrize("n_aspects", [1, 50, 200])
def test_any_number_of_aspects_with_one_example_each(n_aspects: int) -> None:
    detector = AspectDetector.from_examples({f"aspect {n}": [f"this is about number {n}"] for n in range(n_aspects)})
    assert detector.predict_proba(["this is about number 0", "", "unrelated 😀"]).shape == (3, n_aspects)
    assert len(detector.detect("x", threshold=0.0).scores) == n_aspects


def test_thousands_of_examples() -> None:
    detector = AspectDetector.from_examples({"a": [f"pizza {n}" for n in range(2000)], "b": ["waiter"]})
    assert detector.counts_.tolist() == [2000, 1]


@pytest.mark.parametrize("text", ["x" * 100_000, "pizza " * 16_000, "." * 100_000, "😀" * 30_000])
def test_a_text_of_a_hundred_thousand_characters(text: str) -> None:
    assert set(DETECTOR.detect(text).scores) == set(EXAMPLES)
    assert set(DETECTOR.detect_review(text).scores) == set(EXAMPLES)


@pytest.mark.parametrize("value", [None, float("nan"), 3, b"bytes"])
def test_a_value_that_is_not_text_is_reported_with_its_position(value: object) -> None:
    with pytest.raises(AwattError, match=r"text number 1 is .*, but a string is needed"):
        DETECTOR.detect_many(["fine", value])  # type: ignore[list-item]


def test_a_single_text_was_numbered_and_none_called_null() -> None:
    with pytest.raises(AwattError, match=r"^the text is None, but a string is needed\. .* use detect_many\.$"):
        DETECTOR.detect(None)  # type: ignore[arg-type]
    with pytest.raises(AwattError, match=r"^the text is b'bytes', but .* use detect_reviews\.$"):
        DETECTOR.detect_review(b"bytes")  # type: ignore[arg-type]
    with pytest.raises(AwattError, match="the text is a table, "):
        DETECTOR.detect(type("Frame", (), {"columns": ["text"]})())
    with pytest.raises(AwattError, match="text number 1 is None, "):
        DETECTOR.detect_many(["fine", None])  # type: ignore[list-item]


@pytest.mark.parametrize("parameters", [{"threshold": "foo"}, {"threshold": {"food": 2}}, {"mode": "foo"}])
def test_a_wrong_parameter_was_noticed_at_the_first_detection_only(parameters: dict[str, Any]) -> None:
    made = AspectDetector(**parameters)  # scikit-learn's rule: no checks here
    with pytest.raises(AwattError, match=r"^(the threshold is|there is no mode 'foo')"):
        made.fit(["Great pizza.", "Rude."], [["food"], []])
    assert not hasattr(made, "fitted_")
    with pytest.raises(AwattError, match=r"^(the threshold is|there is no mode 'foo')"):
        AspectDetector.from_examples({"food": ["Great pizza."]}, **parameters)


def test_a_single_text_instead_of_a_list_is_an_error() -> None:
    with pytest.raises(AwattError, match="found the single text 'pizza'"):
        DETECTOR.predict("pizza")
    assert DETECTOR.predict([]) == []
    assert DETECTOR.predict_proba([]).shape == (0, 3)


def test_a_detector_without_examples_raises_an_error() -> None:
    with pytest.raises(AwattError, match="no examples yet"):
        AspectDetector().detect("x")
    with pytest.raises(AwattError, match="no examples yet"):
        AspectDetector().score(["x"], [["a"]])


def test_examples_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "examples.csv"
    path.write_text("text,aspects\nthe pizza was cold,food\nthe waiter spilled the pizza,food|staff\nhello there,\n")
    detector = AspectDetector.from_examples(path)
    assert detector.aspects == ("food", "staff")
    assert detector.counts_.tolist() == [2, 1]
    path.write_text("text,aspects\nhello there,\n")
    with pytest.raises(AwattError, match="1 sentence, but no aspects"):
        AspectDetector.from_examples(str(path))


def test_examples_from_records() -> None:
    rows = [{"text": text, "aspects": [aspect]} for aspect, texts in EXAMPLES.items() for text in texts]
    found = AspectDetector.from_examples([*rows, {"text": "we left"}])
    assert found.aspects == DETECTOR.aspects
    assert found.counts_.tolist() == [5, 5, 5]
    for wrong in ({"text": "soup", "aspects": "food"}, {"aspects": ["food"]}, ("soup", ["food"]), "soup", None):
        with pytest.raises(
            AwattError, match=r'but needs a form such as \{"text": "Great pizza.", "aspects": \["food"\]\}\.'
        ):
            AspectDetector.from_examples([wrong])  # type: ignore[list-item]


def test_repr_works_for_any_type_of_classes() -> None:
    assert repr(AspectDetector()) == "AspectDetector()"
    assert repr(AspectDetector(threshold=0.5)) == "AspectDetector(threshold=0.5)"
    assert "classes=array(" in repr(AspectDetector(classes=np.array(["a", "b"])))


def test_examples_from_a_json_object(tmp_path: Path) -> None:
    path = tmp_path / "examples.json"
    path.write_text('{"food": ["the pizza was cold"], "staff": ["a rude waiter"]}')
    assert AspectDetector.from_examples(path).aspects == ("food", "staff")
    for content, message in [
        ("{", "is not valid JSON"),
        ("[]", r"found \[\], but"),
        ('{"food": "x"}', "a list of sentences"),
    ]:
        path.write_text(content)
        with pytest.raises(AwattError, match=message):
            AspectDetector.from_examples(path)
    with pytest.raises(AwattError, match="no such file"):
        AspectDetector.from_examples(tmp_path / "nope.json")


def test_a_missing_model_is_an_error() -> None:
    with pytest.raises(AwattError, match=r"nowhere/config\.json does not exist"):
        AspectDetector.from_examples(EXAMPLES, model="nowhere")


def test_an_aspect_without_examples_is_never_found(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        detector = AspectDetector().fit(["pizza", "waiter"], np.array([[1, 0, 0], [0, 0, 1]]))
    assert "aspect '1' has no example" in caplog.text
    assert detector.predict_proba(["pizza"])[0, 1] == 0
    assert detector.detect("waiter", threshold=0.0).words["2"]
