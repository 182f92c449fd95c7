"""Examples, thresholds and long texts: nothing is lost in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from awatt import AspectDetector
from awatt.detector.examples import Examples
from awatt.detector.opening import open_detector
from awatt.detector.thresholds import parse_thresholds
from awatt.detector.words import split_windows
from awatt.errors import AwattError, DataError


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"food": ["Great pizza."], "food": ["Cold soup."]}', "the key 'food' occurs more than once"),
        ('{"food": {"a": ["x"]}}', r"aspect 'food' has \{'a': \['x'\]\}, but needs a list of sentences"),
        ('{"food": "Great pizza."}', "but needs a list of sentences"),
        ('{"food": [["Great pizza."]]}', "but a sentence is needed"),
        ('{"food": [1e999]}', "1e999 is too large"),
    ],
)
def test_examples_that_would_lose_something_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (path := tmp_path / "examples.json").write_text(content)
    with pytest.raises(AwattError, match=message):
        Examples.read(path)


def test_off_topic_sentences_in_json_became_an_aspect_named_null(tmp_path: Path) -> None:
    given = {"food": ["Great pizza."], None: ["We left early."]}
    (path := tmp_path / "examples.json").write_text(json.dumps(given))
    assert AspectDetector.from_examples(str(path)).aspects == ("food",)
    assert Examples.read(path).pairs() == Examples.from_any(given).pairs()
    assert Examples.from_any({"null": ["A null pointer."]}).aspects == ("null",)  # in Python it is a name


def test_blank_rows_at_the_end_of_a_spreadsheet_were_refused(tmp_path: Path) -> None:
    (path := tmp_path / "examples.csv").write_text("text,aspects\nGreat pizza.,food\nBye.,\n,\n , \n")
    assert Examples.read(path).pairs() == [("Great pizza.", ("food",)), ("Bye.", ())]
    path.write_text("body,aspects\nGreat pizza.,food\n,food\n")
    with pytest.raises(DataError, match="found '', but a sentence is needed") as caught:
        Examples.read(path, "body")
    assert str(caught.value).startswith(f"{path}, line 3, column 'body': ")


@pytest.mark.parametrize("order", [1, -1])
def test_an_off_topic_label_was_lost_beside_another_one(tmp_path: Path, order: int) -> None:
    message = r"^the example 'Late\.' is off-topic in one place and mentions 'speed' in another\. Remove it in one"
    pairs: list[tuple[str | None, list[str]]] = [("speed", ["Late.", "Late. "]), (None, [" Late."])]
    with pytest.raises(AwattError, match=message):
        AspectDetector.from_examples(dict(pairs[::order]))
    with pytest.raises(AwattError, match=message):
        AspectDetector.from_examples(
            [{"text": texts[0], "aspects": [aspect] if aspect else []} for aspect, texts in pairs[::order]]
        )
    (path := tmp_path / "examples.csv").write_text("\n".join(["text,aspects", *["Late.,speed", "Late.,"][::order]]))
    with pytest.raises(AwattError, match=message):
        AspectDetector.from_examples(path)


def test_a_blank_text_with_a_label_became_an_aspect_by_its_name() -> None:
    with pytest.raises(AwattError, match=r"^an example of aspect 'b' is '  ', but a sentence is needed\. Fill it in"):
        AspectDetector().fit(["late", "  "], [["speed"], ["b"]])
    assert AspectDetector().fit(["late", "  "], [["speed"], []]).examples.texts == ("late",)


def test_an_aspect_with_two_thresholds_is_refused() -> None:
    with pytest.raises(AwattError, match="given more than once for 'food'"):
        parse_thresholds(["food=0.2", "price=0.3", "food=0.9"])
    assert parse_thresholds(["food=0.2", "price=0.3"]) == {"food": 0.2, "price": 0.3}


def test_several_thresholds_in_one_option_named_an_aspect_that_nobody_had() -> None:
    with pytest.raises(AwattError, match=r"Repeat the option: --threshold food=0\.2 --threshold price=precise"):
        parse_thresholds(["food=0.2, price=precise"])
    assert parse_thresholds(["a=b,c=0.5"]) == {"a=b,c": 0.5}


def test_an_aspect_after_256_tokens_is_found() -> None:
    detector = AspectDetector.from_examples({"food": ["cold soup", "tasty soup"], "staff": ["a rude waiter"]})
    text = "we went there on a day in may " * 100 + "and the soup was cold"
    found = detector.detect(text)
    assert "food" in found.aspects
    assert "soup" in [word.text for word in found.words["food"]]
    assert all(text[word.start : word.end] == word.text for words in found.words.values() for word in words)
    assert detector.predictions([text, "hello"]).scores[0].round(4).tolist() == list(found.scores.values())
    assert detector.detect_many(["hello", text])[1] == found
    whole = detector.detect_review(f"Hello. {text}.")
    assert "food" in whole.aspects
    assert all(whole.text[word.start : word.end] == word.text for word in whole.words["food"])


def test_an_example_that_is_too_long_to_learn_all_of_it_is_said(caplog: pytest.LogCaptureFixture) -> None:
    AspectDetector.from_examples({"food": ["cold soup", "and then we had soup " * 100]})
    assert "1 example of more than 256 tokens: only the beginning is learned from" in caplog.text
    caplog.clear()
    AspectDetector.from_examples({"food": ["cold soup", "and then we had soup"]})
    assert not caplog.text


def test_a_long_text_without_spaces_is_read_in_parts() -> None:
    detector = AspectDetector.from_examples({"food": ["cold soup", "tasty soup"]})
    parts = split_windows(text := "!?" * 2000 + "soup", detector.loaded_model.tokenizer, 256)
    assert "".join(part for _, part in parts) == text
    assert all(text[start:].startswith(part) for start, part in parts)
    assert len(parts) > 10
    assert detector.detect("\n" * 5000).aspects == []


def test_examples_without_words_were_learned_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    AspectDetector.from_examples({"food": ["...", "!!!", "Great pizza."]})
    said = "2 examples without words, such as '...': hardly anything is learned from that"
    assert said in caplog.text
    caplog.clear()
    AspectDetector().fit(["...", "!!!", "Great pizza."], ["food"] * 3)
    assert said in caplog.text


ALIKE = "the aspects 'Food' and '{}' differ only in case or white space, and compete with each other"


def test_names_that_differ_only_in_case_or_white_space_competed_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        assert all(each.endswith(". If they are the same, write them the same way.") for each in found)
        return [each.split(". If")[0] for each in found]

    given = {"Food": ["Great pizza."], "food": ["Cold soup."], "staff": ["Rude."], "FOOD": ["A bun."]}
    both = [ALIKE.format("food"), ALIKE.format("FOOD")]  # one per pair, each with the first
    detector = AspectDetector.from_examples(given)
    assert said() == both
    AspectDetector.from_names(["Food", "food", "FOOD"])
    assert said() == both
    AspectDetector().fit(["Great pizza.", "Cold soup.", "A bun."], [["Food"], ["food"], ["FOOD"]])
    assert len(said()) == 2
    (path := tmp_path / "examples.csv").write_text("text,aspects\nGreat pizza.,Food\nCold soup.,food\n")
    open_detector(path, None, "FOOD")
    assert said() == both
    detector.add_examples("food", ["Good soup."]).add_aspect("fo od", ["A cake."])
    assert said() == []
    detector.add_aspect(" fOOd ", ["Good rice."])
    assert said() == [ALIKE.format("fOOd")]
    AspectDetector.from_names(["waiting time", "waiting  time"])
    assert said() == [ALIKE.replace("Food", "waiting time").format("waiting  time")]
