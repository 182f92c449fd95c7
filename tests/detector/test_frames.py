"""`AspectDetector.annotate`: the same kind of data frame back, with its index, its types and its missing values."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from awatt import AspectDetector
from awatt.errors import AwattError, MissingExtraError

TEXTS = ["The soup was cold.", None, "A rude waiter brought the soup.", "", "It was my birthday."]
NEW = ["aspects", "score_food", "score_staff"]


@pytest.fixture(scope="module")
def detector() -> AspectDetector:
    examples = {
        "food": ["Best dumplings ever.", "My burger was cold."],
        "staff": ["Our waiter was rude.", "Kind staff."],
    }
    return AspectDetector.from_examples(examples)


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table], ids=["pandas", "polars", "arrow"])
def test_the_same_kind_of_frame_comes_back_with_what_detect_finds(detector: AspectDetector, make: Any) -> None:
    frame = make({"text": TEXTS, "stars": [1, 2, 3, 4, 5]})
    made = detector.annotate(frame)
    assert type(made) is type(frame)
    columns = {name: list(made[name] if make is not pyarrow.table else made[name].to_pylist()) for name in NEW}
    wanted = detector.detect_many([text or "" for text in TEXTS])
    assert [list(found) for found in columns["aspects"]] == [each.aspects for each in wanted]
    assert columns["score_food"] == [each.scores["food"] for each in wanted]
    assert columns["score_staff"] == [each.scores["staff"] for each in wanted]
    assert "aspects" not in (frame.column_names if make is pyarrow.table else frame.columns)


def test_pandas_keeps_its_index_and_types(detector: AspectDetector) -> None:
    frame = pandas.DataFrame(
        {
            "when": pandas.to_datetime(["2020-01-02"] * 5),
            "kind": pandas.Categorical(list("abaab")),
            "stars": pandas.array([1, None, 3, 4, 5], dtype="Int64"),
            "text": pandas.array(TEXTS, dtype="string"),
        },
        index=pandas.Index([7, 7, 3, 9, 1], name="review"),
    )
    made = detector.annotate(frame)
    pandas.testing.assert_frame_equal(made[list(frame.columns)], frame)
    assert list(made.columns) == [*frame.columns, *NEW]
    assert made["score_food"].dtype == np.float64


@pytest.mark.parametrize("column", [pandas.Series(TEXTS, dtype=object), pandas.Series(TEXTS, dtype="category")])
def test_texts_of_any_pandas_type_are_read(detector: AspectDetector, column: Any) -> None:
    assert detector.annotate(pandas.DataFrame({"text": column}))["aspects"][0] == ["food"]


@pytest.mark.parametrize("texts", [[], ["It was my birthday."], [None]])
def test_lists_have_their_type_even_if_nothing_is_found(detector: AspectDetector, texts: list[Any]) -> None:
    schema = {"text": polars.String()}
    assert detector.annotate(polars.DataFrame({"text": texts}, schema))["aspects"].dtype == polars.List(polars.String())
    table = pyarrow.table({"text": pyarrow.array(texts, pyarrow.string())})
    assert detector.annotate(table).schema.field("aspects").type.value_type in (
        pyarrow.string(),
        pyarrow.large_string(),
    )
    assert len(detector.annotate(pandas.DataFrame({"text": texts}))) == len(texts)


def test_a_whole_review_has_the_aspects_of_its_sentences(detector: AspectDetector) -> None:
    texts = ["The soup was cold. It was my birthday. A rude waiter!", "", "A rude waiter.\nKind staff."]
    made = detector.annotate(pandas.DataFrame({"body": texts}), "body", whole_reviews=True)
    reviews = detector.detect_reviews(texts)
    assert made["aspects"].tolist() == [review.aspects for review in reviews]
    assert made["score_staff"].tolist() == [review.scores["staff"] for review in reviews]


def test_threshold_and_prefix_are_used(detector: AspectDetector) -> None:
    frame = pandas.DataFrame({"text": ["The soup was cold."], "aspects": ["mine"]})
    made = detector.annotate(frame, threshold=1.0, prefix="found_")
    assert made["aspects"].tolist() == ["mine"]
    assert made["found_aspects"].tolist() == [[]]
    with pytest.raises(AwattError, match=r"already has a column 'aspects'. Rename the new ones: prefix='found_'"):
        detector.annotate(frame)


def test_a_column_without_a_name_is_found_by_its_number(detector: AspectDetector) -> None:
    frame = pandas.DataFrame([["Great pizza.", 1], [None, 2]])
    assert len(detector.annotate(frame, text_column=0)) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (["a list"], r"annotate takes a data frame, found builtins.list. Give a pandas"),
        (polars.LazyFrame({"text": ["a"]}), r"found polars.LazyFrame. .* what collect\(\) gives"),
        (pandas.DataFrame({"body": ["a"]}), "there is no column 'text'; the columns are: 'body'"),
        (pandas.DataFrame({"text": [1, 2]}), "row 0 of column 'text' is 1, but a text is needed"),
        (pandas.DataFrame([["a", "b"]], columns=["text", "text"]), "occurs more than once .*'text' 2 times"),
    ],
)
def test_a_frame_that_cannot_be_read_is_a_one_line_error(detector: AspectDetector, frame: Any, message: str) -> None:
    with pytest.raises(AwattError, match=message):
        detector.annotate(frame)


def test_without_narwhals_the_extra_is_named(detector: AspectDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'awatt\[frames\]'"):
        detector.annotate(pandas.DataFrame({"text": ["a"]}))
