"""AspectDetector follows scikit-learn's estimator conventions without importing it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from awatt import AspectDetector
from awatt.aspect_model.model import BUNDLED
from awatt.detector.examples import Examples
from awatt.errors import AwattError

TEXTS = [
    *("the pizza was delicious", "tasty pasta and pizza", "the soup was delicious", "delicious pasta", "tasty soup"),
    *("the waiter was rude", "a rude waitress", "the waiter ignored us", "our waitress was rude", "rude waiters"),
    *("the rude waiter spilled the soup", "hello there", "what a day"),
]
LABELS = [["food"]] * 5 + [["staff"]] * 5 + [["food", "staff"], [], []]
MATRIX = np.array([[1, 0]] * 5 + [[0, 1]] * 5 + [[1, 1], [0, 0], [0, 0]])


class Frame:
    """The part of a pandas DataFrame that is used."""

    def __init__(self, columns: tuple[object, ...], values: np.ndarray = MATRIX) -> None:
        self.columns, self.values = columns, values

    def to_numpy(self) -> np.ndarray:
        return self.values


def lower(texts: list[str]) -> list[str]:
    return [text.lower() for text in texts]


def test_label_lists_in_label_lists_out() -> None:
    detector = AspectDetector()
    assert detector.fit(TEXTS, LABELS) is detector
    assert detector.classes_.tolist() == ["food", "staff"]
    found = detector.predict(["The soup was delicious", "a rude waiter"])
    assert found == [["food"], ["staff"]]


@pytest.mark.parametrize(
    "y", [MATRIX, MATRIX.astype(bool), MATRIX.astype(float), csr_matrix(MATRIX), MATRIX.tolist()], ids=str
)
def test_a_matrix_in_a_matrix_out(y: Any) -> None:
    detector = AspectDetector().fit(TEXTS, y)
    assert detector.classes_.tolist() == [0, 1]
    found = detector.predict(["The soup was delicious", "a rude waiter"])
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, [[1, 0], [0, 1]])
    assert detector.add_examples("0", ["tasty bread"]).predict(["a rude waiter"]).tolist() == [[0, 1]]  # still a matrix
    assert detector.classes_.tolist() == [0, 1]
    named = AspectDetector(classes=["food", "staff"]).fit(TEXTS, y)
    assert named.classes_.tolist() == ["food", "staff"]
    assert list(named.detect("soup").scores) == ["food", "staff"]


def test_a_data_frame_names_the_classes() -> None:
    assert AspectDetector().fit(np.array(TEXTS), Frame(("food", "staff"))).classes_.tolist() == ["food", "staff"]


def test_columns_of_a_data_frame_in_another_order_are_found_by_name() -> None:
    frame, turned = Frame(("food", "staff")), Frame(("staff", "food"), MATRIX[:, ::-1])
    detector = AspectDetector(threshold=0.3).fit(TEXTS, frame)
    assert detector.score(TEXTS, turned) == detector.score(TEXTS, MATRIX) > 0.9
    tuned = AspectDetector().fit(TEXTS, frame).tune_threshold(TEXTS, turned).threshold
    assert tuned == AspectDetector().fit(TEXTS, frame).tune_threshold(TEXTS, frame).threshold
    ordered = AspectDetector(classes=["food", "staff"]).fit(TEXTS, turned)
    assert ordered.classes_.tolist() == ["food", "staff"]
    assert ordered.examples.labels.tolist() == MATRIX.astype(bool).tolist()
    assert detector.score(TEXTS, Frame((0, 1))) == detector.score(TEXTS, MATRIX)  # these have no names
    numbered = AspectDetector(threshold=0.3).fit(TEXTS, Frame((0, 1)))
    assert numbered.score(TEXTS, Frame((1, 0), MATRIX[:, ::-1])) == detector.score(TEXTS, MATRIX)


def test_other_columns_of_a_data_frame_are_an_error() -> None:
    detector = AspectDetector().fit(TEXTS, Frame(("food", "staff")))
    message = r"y has the columns \['food', 'waiters'\], but the classes are \['food', 'staff'\]. Rename the columns"
    for use in (detector.score, detector.tune_threshold, AspectDetector(classes=["food", "staff"]).fit):
        with pytest.raises(AwattError, match=message):
            use(TEXTS, Frame(("food", "waiters")))


def test_one_label_per_text() -> None:
    assert AspectDetector().fit(["soup", "waiter"], ["food", "staff"]).classes_.tolist() == ["food", "staff"]


def test_predict_proba_gives_one_array() -> None:
    detector = AspectDetector().fit(TEXTS, LABELS)
    scores = detector.predict_proba(TEXTS)
    assert isinstance(scores, np.ndarray)
    assert scores.shape == (len(TEXTS), 2)
    assert ((scores >= 0) & (scores <= 1)).all()
    one = np.concatenate([detector.predict_proba([text]) for text in TEXTS])
    np.testing.assert_allclose(scores, one, atol=1e-6)


def test_parameters_and_clone() -> None:
    threshold = {"food": 0.2}
    detector = AspectDetector(threshold=threshold, mode="paper", classes=["food", "staff"])
    assert detector.get_params()["threshold"] is threshold
    copy = clone(detector)
    assert copy.get_params() == detector.get_params()
    assert repr(copy) == "AspectDetector(threshold={'food': 0.2}, mode='paper', classes=['food', 'staff'])"
    assert repr(AspectDetector()) == "AspectDetector()"
    with pytest.raises(AwattError, match="no parameter 'treshold'"):
        detector.set_params(treshold=0.5)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    check_is_fitted(copy.fit(TEXTS, LABELS))
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(copy))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["food"], None], r"row 1 of y is null, but a list of labels is needed. .* Off-topic is \[\]\."),
        (["food", None], "row 1 of y is null"),
        ([["food"], [None]], "row 1 of y has the label null, but a text is needed. Leave it out: an off-topic text"),
        ([["food"], [3]], "row 1 of y has the label 3, but a text is needed. Give labels as strings"),
        ([["food"]], "X has 2 texts, but y has 1 row. Give"),
    ],
)
def test_a_row_of_labels_that_is_wrong_is_named(y: Any, message: str) -> None:
    with pytest.raises(AwattError, match=message):
        AspectDetector().fit(TEXTS[:2], y)


def test_a_change_of_the_model_requires_learning_again() -> None:
    detector = AspectDetector().fit(TEXTS, LABELS)
    before = detector.predict_proba(TEXTS)
    for same in (None, str(BUNDLED), "fast"):
        np.testing.assert_array_equal(detector.set_params(model=same).predict_proba(TEXTS), before)
    detector.set_params(model="accurate")
    for call in (detector.detect, detector.thresholds, detector.save_pretrained):
        with pytest.raises(AwattError, match=r"with the model 'fast', but its model is now 'accurate'\. Learn"):
            call("soup")
    with pytest.raises(AwattError, match="Learn again"):
        detector.report()
    with pytest.raises(NotFittedError):
        check_is_fitted(detector)
    assert "AspectDetector" in detector._repr_html_()
    assert detector.add_examples("food", ["Tasty soup."]).detect("soup").scores  # learns from all examples anew
    check_is_fitted(detector)


def test_a_model_changed_by_set_params_read_the_sample_of_another_one() -> None:
    """The sample is kept as token ids, which are other words for another model."""
    detector = AspectDetector.from_examples({"food": ["Tasty soup."]}, reviews=TEXTS * 5)
    detector.set_params(model="accurate")
    with pytest.raises(AwattError, match="learned with the model 'fast', but its model is now 'accurate'"):
        detector.add_examples("food", ["Cold pasta."])


def test_labels_without_lists_were_taken_for_lists_of_letters() -> None:
    detector = AspectDetector().fit(["great pizza", "rude waiter", "my birthday"], ["food", "service", []])
    assert detector.classes_.tolist() == ["food", "service"]
    assert Examples.from_pairs([("great pizza", "food")]).aspects == ("food",)


def test_pipeline() -> None:
    steps = make_pipeline(FunctionTransformer(lower), AspectDetector(threshold=0.3)).fit(TEXTS, LABELS)
    assert steps.predict(["THE SOUP WAS DELICIOUS"]) == [["food"]]
    assert steps.predict_proba(["x"]).shape == (1, 2)
    assert steps.classes_.tolist() == ["food", "staff"]
    assert isinstance(clone(steps), Pipeline)
    assert "AspectDetector" in repr(steps)
    assert "AspectDetector" in steps._repr_html_()


@pytest.mark.parametrize("y", [LABELS, MATRIX], ids=["lists", "matrix"])
def test_grid_search_over_thresholds(y: Any) -> None:
    search = GridSearchCV(AspectDetector(), {"threshold": [0.05, 0.3, 0.999999]}, cv=3).fit(TEXTS, y)
    assert search.best_params_["threshold"] != 0.999999
    assert search.best_score_ > 0
    assert len(search.predict(["soup"])) == 1


NEEDS_1_9 = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="scikit-learn before 1.9 computes this only for what calls itself a classifier",
)


@pytest.mark.parametrize(
    "scoring", ["f1_macro", *(pytest.param(name, marks=NEEDS_1_9) for name in ("roc_auc", "average_precision"))]
)
def test_scikit_learns_own_scores(scoring: str) -> None:
    detector = AspectDetector(threshold=0.3)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    texts, y = [TEXTS[number] for number in order], MATRIX[order]
    assert np.isfinite(cross_val_score(detector, texts, y, cv=2, scoring=scoring)).all()


def test_scikit_learns_cross_validated_probabilities() -> None:
    detector = AspectDetector(threshold=0.3)
    found = cross_val_predict(detector, TEXTS, MATRIX, cv=3, method="predict_proba")
    assert found.shape == MATRIX.shape


def test_score_is_f1_over_all_pairs() -> None:
    detector = AspectDetector(threshold=0.3).fit(TEXTS, MATRIX)
    wanted = f1_score(MATRIX, detector.predict(TEXTS), average="micro")
    assert detector.score(TEXTS, MATRIX) == pytest.approx(wanted)
    assert detector.set_params(threshold=1.0).score([""], [[0, 0]]) == 1.0


def test_a_pickled_detector_does_not_contain_the_model() -> None:
    detector = AspectDetector().fit(TEXTS, LABELS)
    stored = pickle.dumps(detector)
    assert len(stored) < 200_000
    assert pickle.loads(stored).predict(TEXTS) == detector.predict(TEXTS)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (LABELS[:-1], "X has 13 texts, but y has 12 rows"),
        ([[]] * 13, "no text has a label"),
        (np.zeros((13, 2)), "no text has a label"),
        (np.full((13, 2), 2), r"row 0 of y is .*, but an indicator matrix needs 2 numbers per row, each 0 or 1"),
        ([[1, 0]] * 12 + [[1]], "row 12 of y is"),
        ([1] * 13, "row 0 of y is 1, but a list of labels is needed"),
    ],
)
def test_invalid_labels_are_an_error(y: Any, message: str) -> None:
    with pytest.raises(AwattError, match=message):
        AspectDetector().fit(TEXTS, y)


@pytest.mark.parametrize("y", ["food", {"food": [1, 0], "price": [0, 1], "staff": [1, 1], "place": [0, 0]}])
def test_the_letters_of_a_word_and_the_keys_of_a_dictionary_became_labels(y: Any) -> None:
    with pytest.raises(AwattError, match=r"^y is .*, but needs one row per text"):
        AspectDetector().fit(TEXTS[:4], y)


def test_classes_that_do_not_match_are_an_error() -> None:
    with pytest.raises(AwattError, match="y has 2 columns, but there are 3 classes"):
        AspectDetector(classes=["a", "b", "c"]).fit(TEXTS, MATRIX)
    with pytest.raises(AwattError, match="the label 'staff', which is not among the classes"):
        AspectDetector(classes=["food"]).fit(TEXTS, LABELS)
    with pytest.raises(AwattError, match="are not unique"):
        AspectDetector(classes=["a", "a"]).fit(TEXTS, MATRIX)
    with pytest.raises(AwattError, match="'food' occurs more than once, apart from white space around it"):
        AspectDetector().fit(["Soup.", "Pasta.", "Rude."], [["food"], ["food "], ["staff"]])  # named no column


def test_several_labels_in_one_text_were_learned_as_one_aspect_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    AspectDetector().fit(["Great pizza.", "Good soup, rude waiter."], ["food", "food|service"])
    assert "'food|service' is one aspect" in caplog.text
    caplog.clear()
    AspectDetector().fit(["Great pizza.", "Good soup, rude waiter."], [["food"], ["food", "service"]])
    assert not caplog.text
