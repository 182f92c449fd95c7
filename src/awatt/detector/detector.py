"""AspectDetector: aspects by example, found in every sentence, with scores and the words that decided."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, Self

import numpy as np

from awatt.aspect_model.model import Matcher
from awatt.config import choose
from awatt.detector.examples import Examples, Given, check_texts, read_targets
from awatt.detector.learned import Learned, load_matcher
from awatt.detector.report import Report, Suggestion, make_report, make_suggestions
from awatt.detector.results import Detection, Review
from awatt.detector.thresholds import AUTO, MODES, Bools, Floats, Threshold, f1, resolve, tune
from awatt.detector.words import split_sentences
from awatt.errors import AwattError
from awatt.thresholds.default import default_threshold

PARAMETERS = ("threshold", "mode", "model", "classes")
CHUNK = 128  # sentences that are computed at once: their arrays stay in the cache, and memory stays small

_log = logging.getLogger(__name__)


class AspectDetector:
    """Finds the aspects that a sentence mentions, from a few example sentences of each.

    threshold: "auto" (the model's own), a number from 0 to 1, or a dict of them by aspect. It can be given again
        at every call, and changing it needs no fit.
    mode: "acceptance" judges every aspect on its own, so that none may be found, and a score is a probability.
        "paper" is Proto-AWATT's rule: scores are a softmax over the aspects, cut at its static threshold for their
        number. It picks relative to the other aspects, so it finds one even where there is none.
    model: the folder of another model than the bundled one.
    classes: names for the columns of an indicator matrix ``y``, or the order of the labels.
    """

    def __init__(
        self,
        threshold: Threshold = AUTO,
        mode: str = "acceptance",
        model: str | Path | None = None,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.threshold, self.mode, self.model, self.classes = threshold, mode, model, classes

    @classmethod
    def from_examples(cls, examples: Given, **parameters: Any) -> Self:
        """A detector from ``{aspect: sentences}``, ``[{"text": …, "aspects": […]}]``, or a file of such rows."""
        detector = cls(**parameters)
        detector._learn(Examples.of(examples))
        return detector

    # -- what examples teach

    def _learn(self, examples: Examples, classes: Sequence[Any] | None = None, indicators: bool = False) -> None:
        self._set_state(Learned.of(examples, self._matcher), examples, classes, indicators)
        for aspect in compress(examples.aspects, examples.counts == 0):
            _log.warning("aspect '%s' has no example and will never be found", aspect)

    def _set_state(
        self, learned: Learned, examples: Examples | None, classes: Sequence[Any] | None, indicators: bool
    ) -> None:
        self.learned_, self.examples_, self.indicators_ = learned, examples, indicators
        self.classes_ = np.array(learned.aspects if classes is None else list(classes))

    @property
    def _matcher(self) -> Matcher:
        return load_matcher(self.model)

    @property
    def learned(self) -> Learned:
        """What it knows of its aspects."""
        if not hasattr(self, "learned_"):
            raise AwattError("this detector has no examples yet. Use AspectDetector.from_examples, or fit(X, y).")
        return self.learned_

    @property
    def aspects(self) -> tuple[str, ...]:
        """The names of the aspects."""
        return self.learned.aspects

    def _examples(self) -> Examples:
        if self.learned and self.examples_ is None:
            raise AwattError("this detector was saved without its examples, which this needs. Save it with them.")
        assert self.examples_ is not None
        return self.examples_

    def add_aspect(self, aspect: str, examples: Sequence[str]) -> Self:
        """Add an aspect."""
        if aspect.strip() in self.aspects:
            raise AwattError(f"there is an aspect '{aspect}' already. Use add_examples, or another name.")
        self._learn(self._examples().extended(aspect, examples))
        return self

    def add_examples(self, aspect: str, examples: Sequence[str]) -> Self:
        """Add examples of an aspect."""
        choose(dict.fromkeys(self.aspects), aspect, "aspect")
        self._learn(self._examples().extended(aspect, examples))
        return self

    def remove_aspect(self, aspect: str) -> Self:
        """Forget an aspect and the sentences that mentioned no other."""
        choose(dict.fromkeys(self.aspects), aspect, "aspect")
        if len(self.aspects) == 1:
            raise AwattError(f"'{aspect}' is the only aspect. Add another one before it is removed.")
        self._learn(self._examples().without(aspect))
        if isinstance(self.threshold, Mapping):
            self.threshold = {name: value for name, value in self.threshold.items() if name != aspect}
        return self

    # -- detection

    def detect(self, text: str, threshold: Threshold | None = None) -> Detection:
        """What one sentence mentions."""
        return self.detect_many([text], threshold)[0]

    def detect_many(
        self, texts: Iterable[str], threshold: Threshold | None = None, words: bool = True
    ) -> list[Detection]:
        """What each sentence mentions; without ``words`` it is faster."""
        checked = check_texts(texts)
        return self._detections(checked, [0] * len(checked), threshold, words)

    def detect_review(self, text: str, threshold: Threshold | None = None) -> Review:
        """What a text of several sentences mentions, sentence by sentence; offsets are those of the whole text."""
        return self.detect_reviews([text], threshold)[0]

    def detect_reviews(
        self, texts: Iterable[str], threshold: Threshold | None = None, words: bool = True
    ) -> list[Review]:
        """What each text of several sentences mentions."""
        reviews = check_texts(texts)
        # A blank review has no sentence, but must have scores like any other.
        parts = [list(split_sentences(text)) or [(0, text)] for text in reviews]
        begins = [start for sentences in parts for start, _ in sentences]
        found = iter(self._detections([text for part in parts for _, text in part], begins, threshold, words))
        return [Review(text, [next(found) for _ in part]) for text, part in zip(reviews, parts, strict=True)]

    def transform(self, dataset: Any, text_column: str = "text", prefix: str = "") -> Any:
        """A Ray dataset with new columns: ``aspects``, and ``score_ASPECT`` for each. Needs ``awatt[ray]``."""
        from awatt.scale.dataset import transform

        return transform(self, dataset, text_column, prefix)

    def _detections(
        self, texts: list[str], begins: list[int], threshold: Threshold | None, words: bool
    ) -> list[Detection]:
        learned, cut, mode = self.learned, self.thresholds(threshold), self._mode()
        chunks = (slice(first, first + CHUNK) for first in range(0, len(texts), CHUNK))
        return [
            found
            for chunk in chunks
            for found in learned.detections(self._matcher, texts[chunk], begins[chunk], mode, cut, words)
        ]

    def _mode(self) -> str:
        choose(dict.fromkeys(MODES), self.mode, "mode")
        return self.mode

    def thresholds(self, threshold: Threshold | None = None) -> Floats:
        """The score from which each aspect counts as found. (n_aspects,)"""
        known = int(self.learned.known.sum())
        auto = default_threshold(known) if self._mode() == "paper" else self._matcher.threshold
        wanted = resolve(self.threshold if threshold is None else threshold, self.aspects, auto)
        return np.maximum(wanted, 1e-12)  # a score of 0 is no detection, whatever the threshold: blank texts have it

    # -- scikit-learn's contract, without importing it

    def fit(self, X: Iterable[str], y: Any) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn from texts and their labels: a list of label lists, or an indicator matrix (n_texts, n_classes)."""
        texts = check_texts(X)
        labels, classes, indicators = read_targets(y, self.classes, len(texts))
        if not labels.any():
            raise AwattError("no text has a label, so there is nothing to learn. Give at least one text one label.")
        self._learn(Examples.from_indicators(texts, labels, list(map(str, classes))), classes, indicators)
        return self

    def predict_proba(self, X: Iterable[str]) -> Floats:  # noqa: N803
        """The score of every class, each on its own: (n_texts, n_classes), in the order of ``classes_``."""
        texts = check_texts(X)
        learned, mode, matcher = self.learned, self._mode(), self._matcher
        parts = [texts[first : first + CHUNK] for first in range(0, len(texts), CHUNK)]
        return np.concatenate([np.zeros((0, len(learned.aspects)))] + [learned.scores(matcher, p, mode) for p in parts])

    def predict(self, X: Iterable[str], threshold: Threshold | None = None) -> Any:  # noqa: N803
        """What ``fit`` was given: an indicator matrix (n_texts, n_classes), or a list of label lists."""
        accepted = self.predict_proba(X) >= self.thresholds(threshold)
        if self.indicators_:
            return accepted.astype(np.int64)
        names = self.classes_.tolist()
        return [[names[column] for column in np.flatnonzero(row)] for row in accepted]

    def score(self, X: Iterable[str], y: Any) -> float:  # noqa: N803
        """F1 over all pairs of text and class, so that it is defined for any part of the data."""
        found = self.predict_proba(X) >= self.thresholds()
        return f1(self._targets(y, len(found)), found)

    def tune_threshold(self, X: Iterable[str], y: Any) -> Self:  # noqa: N803
        """Set ``threshold`` to what gives the best F1 on these labelled texts, other ones than the examples.

        An aspect with fewer than 5 of them takes the best common threshold.
        """
        scores, auto = self.predict_proba(X), float(self.thresholds(AUTO)[0])
        self.threshold = tune(self._targets(y, len(scores)), scores, self.aspects, auto)
        return self

    def _targets(self, y: Any, n_texts: int) -> Bools:
        return read_targets(y, self.classes_.tolist(), n_texts)[0]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as ``__init__`` took them."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; nothing has to be learned again, unless it is the model."""
        for name, value in parameters.items():
            choose(dict.fromkeys(PARAMETERS), name, "parameter")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learned_")

    def __sklearn_tags__(self) -> Any:
        # No estimator_type: of a "classifier" scikit-learn refuses label lists, and takes two labels for yes and no.
        utils = sys.modules["sklearn.utils"]
        return utils.Tags(
            estimator_type=None,
            target_tags=utils.TargetTags(required=True, multi_output=True),
            input_tags=utils.InputTags(one_d_array=True, two_d_array=False, string=True),
        )

    def __repr__(self) -> str:
        default = AspectDetector().get_params()
        changed = [
            f"{name}={value!r}" for name, value in self.get_params().items() if repr(value) != repr(default[name])
        ]
        return f"AspectDetector({', '.join(changed)})"

    # -- advice

    def report(self) -> Report:
        """Which aspects are confusable, which examples look wrong, how good to expect it to be."""
        return make_report(self, self._examples())

    def suggest(self, texts: Iterable[str], k: int = 10) -> list[Suggestion]:
        """Which of these unlabelled sentences to label next: those that it is unsure of, and no two alike."""
        return make_suggestions(self, check_texts(texts), k)

    # -- folders

    def save_pretrained(self, folder: str | Path, examples: bool = True, overwrite: bool = False) -> Path:
        """Save to a folder that needs nothing else. ``examples=False`` leaves the sentences out."""
        from awatt.detector.folder import save

        return save(self, Path(folder), examples, overwrite)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """What ``save_pretrained`` saved."""
        from awatt.detector.folder import load

        return load(cls, Path(folder))
