"""AspectDetector: learns aspects from examples and finds them in sentences, with scores and deciding words."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from html import escape
from itertools import compress, islice
from pathlib import Path
from types import EllipsisType
from typing import Any, Self

import numpy as np

from awatt.arrays import Bools, Sentences
from awatt.aspect_model.checks import check_examples
from awatt.aspect_model.learner import OnPart
from awatt.aspect_model.model import AspectModel
from awatt.config import choose
from awatt.data.episode import Prediction
from awatt.detector.checks import check_teachable, warn_about_alike, warn_about_joined, warn_about_odd
from awatt.detector.examples import Examples, ExamplesInput, alike_names, check_listed, check_text, check_texts
from awatt.detector.finding import Finder, make_detections
from awatt.detector.html import detector_html
from awatt.detector.marks import Found
from awatt.detector.models import FAST, KeptModel, Model, load_model, same_model
from awatt.detector.report import Report, make_report
from awatt.detector.results import Detection, Review
from awatt.detector.reviews import FIRST_ROWS, sample_reviews
from awatt.detector.suggest import Suggestion, make_suggestions
from awatt.detector.targets import read_targets
from awatt.detector.thresholds import (
    AUTO,
    BALANCED,
    MODES,
    Floats,
    Threshold,
    change_thresholds,
    f1,
    resolve,
    tune,
    without_nan,
)
from awatt.detector.words import find_sentences
from awatt.errors import AwattError
from awatt.records.formats import short_repr

PARAMETERS = ("threshold", "mode", "model", "classes")

_log = logging.getLogger(__name__)


class AspectDetector:
    """Finds the aspects that a sentence mentions, given a few example sentences per aspect.

    - ``threshold``: what to aim for: "balanced" (the best expected F1; "auto" is the same), "precise" (an expected
      precision of at least 90 %) or "thorough" (an expected recall of at least 90 %); or a number from 0 to 1; or a
      dict from aspect to any of these. Each call can override it; changing it needs no new fit.
    - ``mode``: "auto" is the model's own rule. The bundled models, and a run with the acceptance threshold, decide on
      each aspect separately: a score is a probability, and a sentence may have no aspect. "acceptance" requires such a
      model. "paper" is Proto-AWATT's rule: scores are a softmax over the aspects, compared with the static threshold
      for their number. It compares aspects with each other, so it finds one even in off-topic sentences.
    - ``model``: "fast" (static word vectors), "accurate" (word vectors that depend on the sentence, too; slower), or
      the folder of another model: a run of ``awatt train``, a model of ``awatt train-detector``, or a saved detector.
    - ``classes``: names of the columns of an indicator matrix ``y``, or the order of the labels.
    """

    def __init__(
        self,
        threshold: Threshold = AUTO,
        mode: str = AUTO,
        model: str | Path | None = FAST,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.threshold, self.mode, self.model, self.classes = threshold, mode, model, classes

    @classmethod
    def from_examples(
        cls, examples: ExamplesInput, reviews: Iterable[str] | Sentences | None = None, **parameters: Any
    ) -> Self:
        """A detector from ``{aspect: sentences}``, ``[{"text": …, "aspects": […]}]`` or a file of such rows.

        Off-topic sentences, which mention no aspect, are given as ``{None: sentences}`` or with ``"aspects": []``. An
        aspect without sentences is detected by its name. ``reviews`` are unlabelled sentences of the file in which to
        detect: they tell how frequent the aspects are in it, and thereby where the thresholds should be. A sample of
        them that ``loaded_model`` has tokenised already is taken as it is.
        """
        made, read = cls(**parameters), Examples.from_any(examples)
        if not isinstance(examples, Examples):
            check_teachable(made.loaded_model, made.model, read)
        return made._learn_anew(read, reviews)._warn_about_empty_aspects()

    @classmethod
    def from_names(cls, names: Iterable[str], reviews: Iterable[str] | None = None, **parameters: Any) -> Self:
        """A detector from the names of the aspects, or short descriptions, alone."""
        return cls.from_examples({name: [] for name in check_listed(names, "names")}, reviews, **parameters)

    # -- learning

    def learn(self, examples: Examples, reviews: Iterable[str] | Sentences | EllipsisType | None = ...) -> Self:
        """Learn from these examples, and from a sample of the file: the one that there was before, unless one is given.

        An aspect without an example is detected by its name, if the model can; else its score is always 0.
        """
        if not isinstance(reviews, EllipsisType):
            self.reviews_ = self._sample(reviews)
        elif self.reviews is not None and hasattr(self, "fitted_"):
            self._check_model()  # another model would read the sample as other words
        model, known = self.loaded_model, self._can_know(examples.aspects, examples.counts)
        fitted = None
        if known.any():
            names = list(compress(examples.aspects, known))
            fitted = model.fit(model.tokenize(examples.texts), examples.labels[:, known], names, self.reviews)
        form = {}  # the one that `fit` was given stays as long as the aspects do
        if getattr(self, "aspects_", None) == examples.aspects:
            form = {"classes": self.classes_.tolist(), "indicators": self.indicators_}
        self._set_state(examples.aspects, examples.counts, fitted, examples, **form)
        return self

    def _learn_anew(self, examples: Examples, reviews: Iterable[str] | Sentences | None) -> Self:
        self.learn(examples, reviews)
        self._mode()  # raises for a wrong one now, not at the first detection
        self.thresholds()  # likewise
        return self

    def use_reviews(self, reviews: Iterable[str]) -> Self:
        """Learn again, with these unlabelled sentences as a sample of the file."""
        return self._learn_anew(self.examples, reviews)

    def _sample(self, reviews: Iterable[str] | Sentences | None) -> Sentences | None:
        given = reviews if reviews is None or isinstance(reviews, Sentences) else check_listed(reviews)
        model = self.loaded_model
        if given is None or not model.learns_from_reviews:
            return None
        if isinstance(given, Sentences):
            return given
        found = model.tokenize(sample_reviews(check_texts(islice(given, FIRST_ROWS))))
        return found if len(found.lengths) else None

    @property
    def reviews(self) -> Sentences | None:
        """The sample of the file, as token ids; None without one."""
        return getattr(self, "reviews_", None)

    def _can_know(self, aspects: Sequence[str], counts: Any) -> Bools:
        model = self.loaded_model
        known = [count > 0 or model.knows_name(aspect) for aspect, count in zip(aspects, counts, strict=True)]
        return np.array(known, dtype=bool)

    def _set_state(
        self,
        aspects: Sequence[str],
        counts: Any,
        fitted: Any,
        examples: Examples | None,
        classes: Sequence[Any] | None = None,
        indicators: bool = False,
    ) -> None:
        self.aspects_, self.counts_, self.fitted_ = tuple(aspects), np.asarray(counts, dtype=np.int64), fitted
        self.examples_, self.indicators_ = examples, indicators
        self._learned_with = self.model
        self._known = self._can_know(aspects, counts) & (fitted is not None)  # the model knows only these aspects
        self.classes_ = np.array(list(aspects if classes is None else classes))

    def _warn_about_empty_aspects(self) -> Self:
        for aspect in compress(self.aspects_, ~self._known):
            _log.warning("aspect '%s' has no example and will never be found", aspect)
        return self

    @property
    def loaded_model(self) -> Model:
        """The model in use. It is loaded once and kept, whatever happens to its folder; ``fit`` loads it again."""
        kept = getattr(self, "_kept", None)
        model = kept.model if kept is not None and kept.name == self.model else None
        if model is None:
            model = load_model(self.model)
            self._kept = KeptModel(self.model, model)
        return model

    @property
    def aspects(self) -> tuple[str, ...]:
        """The names of the aspects."""
        self._check_fitted()
        return self.aspects_

    def _check_fitted(self) -> None:
        if not hasattr(self, "fitted_"):
            raise AwattError("this detector has no examples yet. Use AspectDetector.from_examples, or fit(X, y).")

    def _check_model(self) -> None:
        """Raise if it has learned nothing yet, or with another model than its present one."""
        self._check_fitted()
        if not self._learned_with_model():
            before, now = (FAST if name is None else name for name in (self._learned_with, self.model))
            advice = "Learn again with fit or from_examples, or set the model back."
            raise AwattError(f"this detector learned with the model '{before}', but its model is now '{now}'. {advice}")

    def _learned_with_model(self) -> bool:
        """Whether what it learned belongs to its present model, which `set_params` may have changed."""
        return hasattr(self, "fitted_") and same_model(getattr(self, "_learned_with", self.model), self.model)

    @property
    def examples(self) -> Examples:
        """The examples it learned from."""
        if self.aspects and self.examples_ is None:
            raise AwattError("this detector was saved without its examples, which are needed here. Save it with them.")
        assert self.examples_ is not None
        return self.examples_

    def add_aspect(self, aspect: str, examples: Sequence[str]) -> Self:
        """Add an aspect with its examples."""
        if not isinstance(aspect, str):
            advice = "Off-topic sentences are added with add_examples(None, …)."
            raise AwattError(f"an aspect is named {short_repr(aspect)}, but needs a name such as 'food'. {advice}")
        if (name := aspect.strip()) in self.aspects:
            raise AwattError(f"there already is an aspect '{aspect}'. Use add_examples, or choose another name.")
        warn_about_alike(pair for pair in alike_names((*self.aspects, name)) if pair[1] == name)
        return self.learn(self.examples.extended(aspect, examples))._warn_about_empty_aspects()

    def add_examples(self, aspect: str | None, examples: Sequence[str]) -> Self:
        """Add examples to an existing aspect. With None they are off-topic, whatever they were before."""
        if aspect is None:
            self._check_fitted()
        else:
            choose(dict.fromkeys(self.aspects), aspect, "aspect")
        return self.learn(self.examples.extended(aspect, examples))._warn_about_empty_aspects()

    def remove_aspect(self, aspect: str) -> Self:
        """Remove an aspect and the examples that mention only this aspect."""
        choose(dict.fromkeys(self.aspects), aspect, "aspect")
        if len(self.aspects) == 1:
            raise AwattError(f"'{aspect}' is the only aspect. Add another one before removing it.")
        self.learn(self.examples.without(aspect))
        if isinstance(self.threshold, Mapping):
            self.threshold = {name: value for name, value in self.threshold.items() if name != aspect}
        return self

    # -- detection

    def detect(self, text: str, threshold: Threshold | None = None) -> Detection:
        """Find the aspects in one sentence."""
        return self.detect_many(check_text(text, "detect_many"), threshold)[0]

    def detect_many(
        self, texts: Iterable[str], threshold: Threshold | None = None, words: bool = True
    ) -> list[Detection]:
        """Find the aspects in each sentence; ``words=False`` is faster."""
        checked = check_texts(texts)
        return make_detections(self.aspects, checked, [0] * len(checked), self.find(checked, threshold, words))

    def detect_review(self, text: str, threshold: Threshold | None = None) -> Review:
        """Find the aspects in each sentence of a review; offsets refer to the whole text."""
        return self.detect_reviews(check_text(text, "detect_reviews"), threshold)[0]

    def detect_reviews(
        self, texts: Iterable[str], threshold: Threshold | None = None, words: bool = True
    ) -> list[Review]:
        """Find the aspects in each sentence of each review."""
        reviews = check_texts(texts)
        parts = list(map(find_sentences, reviews))
        starts = [start for part in parts for start, _ in part]
        sentences = [text for part in parts for _, text in part]
        found = iter(make_detections(self.aspects, sentences, starts, self.find(sentences, threshold, words)))
        return [Review(text, [next(found) for _ in part]) for text, part in zip(reviews, parts, strict=True)]

    def annotate(
        self,
        frame: Any,
        text_column: str = "text",
        threshold: Threshold | None = None,
        whole_reviews: bool = False,
        prefix: str = "",
    ) -> Any:
        """The same kind of data frame with the columns ``aspects`` (lists) and ``score_ASPECT`` for each aspect added.

        ``frame`` is a pandas or polars DataFrame or a pyarrow Table; it is left as it was. A missing text has no
        aspects. With ``whole_reviews`` a text is split into sentences, and has the aspects and the highest scores of
        all of them. ``prefix`` goes before the names of the new columns.
        """
        from awatt.detector.frames import annotate

        return annotate(self, frame, text_column, threshold, whole_reviews, prefix)

    def find(self, texts: list[str], threshold: Threshold | None = None, words: bool = True) -> Found:
        """Scores, decisions and deciding words of checked texts, as arrays: for files, where time counts."""
        return self._finder().find(texts, self.thresholds(threshold), words)

    def _finder(self) -> Finder:
        self._check_model()
        return Finder(self.loaded_model, self.fitted_, self._known, self._mode(), self.model)

    def _mode(self) -> str:
        choose(dict.fromkeys(MODES), self.mode, "mode")
        if self.mode == "acceptance" and not self.loaded_model.probabilistic:
            name = self.loaded_model.threshold_name
            advice = "Train a run with --threshold acceptance, or use mode auto."
            raise AwattError(
                f"mode acceptance needs probabilities, but {self.model} has the {name} threshold. {advice}"
            )
        return self.mode

    def thresholds(self, threshold: Threshold | None = None) -> Floats:
        """The lowest score at which each aspect is found; NaN where the model decides per sentence. (n_aspects,)"""
        self._check_model()
        aspects = self.aspects
        wanted = self.threshold if threshold is None else change_thresholds(self.threshold, threshold, aspects)
        cut = resolve(wanted, aspects, self._aimed_thresholds)
        return np.maximum(cut, 1e-12)  # a score of 0, as blank texts have, is never a detection

    def _aimed_thresholds(self, aim: str) -> Floats:
        """The model's own for an aim. (n_aspects,)"""
        mode, found = self._mode(), np.full(len(self.aspects), np.nan)
        if mode == "paper" and aim != BALANCED:
            raise AwattError(f"the threshold is '{aim}', but mode paper has one of its own. Give a number, or auto.")
        if self.fitted_ is not None:
            found[self._known] = self.loaded_model.thresholds(self.fitted_, mode, aim)
        return found

    # -- scikit-learn's estimator interface, without importing it

    def fit(self, X: Iterable[str], y: Any, reviews: Iterable[str] | None = None) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn from texts and their labels: a list of label lists, or an indicator matrix (n_texts, n_classes).

        An empty list, or a row of zeros, is an off-topic text. The columns of a data frame name the classes, and here
        and later they are found by these names. ``reviews`` as in `from_examples`.
        """
        texts = check_texts(X)
        labels, classes, indicators = read_targets(y, self.classes, len(texts))
        if not labels.any():
            raise AwattError("no text has a label, so there is nothing to learn. Label at least one text.")
        examples = Examples.from_indicators(texts, labels, list(map(str, classes)))
        learned = copy(self)  # if it fails, this one still has the model that it learned with
        learned._kept = KeptModel(self.model, model := load_model(self.model))
        if isinstance(model, AspectModel):
            check_examples(examples.texts, examples.labels, examples.aspects, model.knows_name)
        warn_about_odd(model, examples)
        if not indicators:
            warn_about_joined(examples.aspects)
        learned._learn_anew(examples, reviews)._warn_about_empty_aspects()
        learned.classes_, learned.indicators_ = np.array(list(classes)), indicators
        self.__dict__.update(learned.__dict__)
        return self

    def predict_proba(self, X: Iterable[str]) -> Floats:  # noqa: N803
        """The score of every class: (n_texts, n_classes), in the order of ``classes_``."""
        return self.predictions(X).scores

    def score_tokenized(self, texts: Sequence[str], sentences: Sentences) -> Floats:
        """``predict_proba`` for texts already tokenised by ``loaded_model``, in one batch, none of them too long."""
        return self._finder().predict(texts, sentences).scores

    def predictions(self, texts: Iterable[str], threshold: Threshold | None = None) -> Prediction:
        """Scores and decisions, (n_texts, n_aspects) each."""
        found = self.find(check_texts(texts), threshold, words=False)
        return Prediction(found.scores, found.accepted)

    def predict(self, X: Iterable[str], threshold: Threshold | None = None) -> Any:  # noqa: N803
        """Labels in the form that ``fit`` was given: an indicator matrix (n_texts, n_classes), or label lists."""
        accepted = self.predictions(X, threshold).accepted
        if self.indicators_:
            return accepted.astype(np.int64)
        names = self.classes_.tolist()
        return [[names[column] for column in np.flatnonzero(row)] for row in accepted]

    def score(self, X: Iterable[str], y: Any) -> float:  # noqa: N803
        """Micro-F1, over all (text, class) pairs, so that it is defined for any part of the data."""
        found = self.predictions(X).accepted
        return f1(self._targets(y, len(found)), found)

    def tune_threshold(self, X: Iterable[str], y: Any) -> Self:  # noqa: N803
        """Set ``threshold`` to the values with the best F1 on these labelled texts, which must not be the examples.

        An aspect with fewer than 5 labelled texts gets the best common threshold. Without any label all stay as they
        are.
        """
        scores, auto = self.predict_proba(X), float(without_nan(self.thresholds(AUTO))[0])
        truth = self._targets(y, len(scores))
        if truth.any():
            self.threshold = tune(truth, scores, self.aspects, auto)
        return self

    def _targets(self, y: Any, n_texts: int) -> Bools:
        return read_targets(y, self.classes_.tolist(), n_texts)[0]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of ``__init__``."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; only a new ``model`` requires learning again."""
        for name, value in parameters.items():
            choose(dict.fromkeys(PARAMETERS), name, "parameter")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned_with_model()

    def __sklearn_tags__(self) -> Any:
        # No estimator_type: scikit-learn rejects label lists for a "classifier", and treats two labels as binary.
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

    def _repr_html_(self) -> str:
        """What a notebook shows: the aspects with their thresholds and first examples."""
        return detector_html(self) if self._learned_with_model() else f"<code>{escape(repr(self))}</code>"

    # -- advice

    def report(self, on_part: OnPart = lambda done, total: None) -> Report:
        """Expected F1, confusable aspects and examples that look mislabelled.

        Each example is predicted by a detector that did not learn from it: a fifth of them is left out at a time, or,
        with a run of ``awatt train``, a single one (a twentieth of more than 200).

        ``on_part(done, total)`` is called as the examples are left out, group by group.
        """
        return make_report(self, on_part)

    def suggest(self, texts: Iterable[str], k: int = 10) -> list[Suggestion]:
        """Choose ``k`` of these unlabelled sentences to label next: uncertain ones that differ from each other."""
        return make_suggestions(self, check_texts(texts), k)

    # -- folders

    def save_pretrained(self, folder: str | Path, examples: bool = True, overwrite: bool = False) -> Path:
        """Save to a self-contained folder. ``examples=False`` leaves the example sentences out."""
        from awatt.detector.folder import save

        self._check_model()
        return save(self, Path(folder), examples, overwrite)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Load a folder written by ``save_pretrained``."""
        from awatt.detector.folder import load

        return load(cls, Path(folder))
