"""The detector fitted to the project's examples, and the scores, words and map of its sentences.

Everything here is derived from the project's file. It is computed when needed and cached until the counters of the file
change, whichever process changed them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import EllipsisType

import numpy as np
import numpy.typing as npt

from awatt.arrays import Sentences
from awatt.detector.detector import AspectDetector
from awatt.detector.examples import Examples
from awatt.detector.finding import CHUNK
from awatt.detector.groups import Column, group_columns
from awatt.detector.models import FAST, Model
from awatt.detector.new_aspects import Topics
from awatt.detector.report import Report
from awatt.detector.results import Detection
from awatt.detector.reviews import FIRST_ROWS, sample_reviews
from awatt.detector.suggest import Suggestion, make_suggestions
from awatt.detector.thresholds import AUTO, Threshold, without_nan
from awatt.detector.words import Windows
from awatt.errors import AwattError
from awatt.server.content import Aspect, Content, Example, Version
from awatt.server.progress import Progress
from awatt.server.projection import project
from awatt.server.store import ProjectStore

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Reviews:
    """The sentences of the project, and their tokens, which do not depend on the examples."""

    version: int
    ids: list[int]
    reviews: list[int]
    texts: list[str]
    model: Model

    @cached_property
    def windows(self) -> Windows:
        """The texts in parts that the model can read."""
        return Windows.of(self.texts, self.model.tokenizer, self.model.max_length)

    @cached_property
    def chunks(self) -> list[tuple[list[str], Sentences]]:
        """The parts of the texts and their tokens, in portions that are scored at once."""
        texts = self.windows.parts
        parts = [texts[first : first + CHUNK] for first in range(0, len(texts), CHUNK)]
        return [(part, self.model.tokenize(part)) for part in parts]

    @cached_property
    def sample(self) -> Sentences:
        """The sentences that a detector looks at, as tokens."""
        return self.model.tokenize(sample_reviews(self.texts[:FIRST_ROWS]))

    @cached_property
    def topics(self) -> Topics:
        """What the sentences talk about, from which aspects are suggested."""
        return Topics.of(self.texts, self.model)

    @cached_property
    def rows(self) -> dict[int, int]:
        """The position in the lists of each sentence, by its id."""
        return {key: row for row, key in enumerate(self.ids)}


@dataclass(frozen=True)
class CachedDetector:
    """The detector fitted to the labels and reviews of one version; None while the model knows no aspect."""

    version: int
    reviews: int
    content: Content
    detector: AspectDetector | None

    @property
    def versions(self) -> tuple[int, int]:
        """The counters of what it was fitted to."""
        return self.version, self.reviews

    def auto_thresholds(self) -> dict[int, float]:
        """The detector's own threshold for each aspect id; where it decides per sentence, the paper's static one."""
        if self.detector is None:
            return {}
        cut = without_nan(self.detector.thresholds(AUTO)).tolist()
        return dict(zip((aspect.id for aspect in self.content.aspects), cut, strict=True))


class Workbench:
    """Detection, advice and labels for the page and the API."""

    def __init__(self, store: ProjectStore, model: str | Path = FAST) -> None:
        self.store, self.model_name = store, model
        self.untaught = AspectDetector(model=model)  # its copies learn; they share the model, which is loaded once
        self.model = self.untaught.loaded_model
        self.progress = Progress()  # of loads and detections
        self._lock = threading.RLock()  # for the detector: held briefly
        self._scoring = threading.Lock()  # for the scores of all sentences: held for long
        self._reporting = threading.Lock()  # for the report: held for long, and computed once for all who ask
        self._cached: CachedDetector | None = None
        self._reviews: Reviews | None = None
        self._ready: tuple[int, AspectDetector] | None = None
        self._scores: tuple[Version, Floats] | None = None
        self._map: tuple[int, Floats] | None = None
        self._columns: tuple[int, list[Column]] | None = None
        self._report: tuple[Version, Report] | None = None

    # -- the file's content

    def content(self) -> Content:
        """Aspects, examples and settings."""
        return self.store.content()

    def auto_threshold(self, content: Content) -> float:
        """What the slider of all aspects shows: the model's threshold before anything was learned."""
        return self.model.default_threshold(max(1, len(content.aspects)))

    def without_examples(self, content: Content) -> tuple[list[int], list[int]]:
        """The ids of aspects without an example: those guessed from their names, and those that are never found."""
        learned = {key for example in content.examples for key in example.aspects}
        rest = [aspect for aspect in content.aspects if aspect.id not in learned]
        read = [aspect.id for aspect in rest if self.model.knows_name(aspect.name)]
        return read, [aspect.id for aspect in rest if aspect.id not in read]

    def reviews(self) -> Reviews:
        """The sentences."""
        with self._lock, self.store.snapshot():
            version = self.store.version().reviews
            if self._reviews is None or self._reviews.version != version:
                rows = self.store.sentences()
                ids, numbers, texts = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
                self._reviews = Reviews(version, ids, numbers, texts, self.model)
            return self._reviews

    def columns(self) -> tuple[int, list[Column]]:
        """The version of the reviews, and their columns with the group of each review."""
        with self._scoring:
            with self.store.snapshot():
                version = self.store.version().reviews
                fields = None if self._columns and self._columns[0] == version else self.store.fields()
            if self._columns is None or fields is not None:
                fields = fields or {}
                self._columns = version, group_columns([fields[number] for number in sorted(fields)])
            return self._columns

    def cached_detector(self) -> CachedDetector:
        """The fitted detector, and the content that it was fitted to."""
        with self._lock:
            version = self.store.version()
            if self._cached is None or self._cached.versions != (version.learned, version.reviews):
                content, reviews = self.store.content(), self.reviews()
                detector = fit_detector(self.untaught, content.aspects, content.examples, reviews.sample)
                self._cached = CachedDetector(content.version.learned, reviews.version, content, detector)
            return self._cached

    def detector(self) -> AspectDetector:
        """The detector with the project's thresholds."""
        with self._lock:
            revision = self.store.version().revision
            if self._ready is not None and self._ready[0] == revision:
                return self._ready[1]
            cached, content = self.cached_detector(), self.store.content()
            if cached.detector is None:
                raise AwattError(
                    "there is no aspect yet that could be found. Add an aspect, with examples if possible."
                )
            detector = apply_thresholds(cached.detector, content)
            self._ready = revision, detector
            return detector

    # -- detection

    def scores(self) -> tuple[Version, list[Aspect], Floats]:
        """The version, the aspects, and the scores of every sentence and aspect (n_sentences, n_aspects)."""
        version, cached, scores = self._all_scores()
        return version, cached.content.aspects, scores

    def scores_and_thresholds(self) -> tuple[Version, dict[int, float], Floats]:
        """The same, with the detector's own threshold of each aspect, by its id."""
        version, cached, scores = self._all_scores()
        own = cached.auto_thresholds()
        return version, {aspect.id: own.get(aspect.id, 1.0) for aspect in cached.content.aspects}, scores

    def _all_scores(self) -> tuple[Version, CachedDetector, Floats]:
        with self._scoring:
            cached, reviews = self.cached_detector(), self.reviews()
            while cached.reviews != reviews.version:  # other reviews were loaded while the detector was fitted
                cached, reviews = self.cached_detector(), self.reviews()
            version = self.store.version()
            key = Version(0, cached.version, reviews.version)
            if self._scores is None or self._scores[0] != key:
                self._scores = key, self._score(cached, reviews)
            return Version(version.revision, cached.version, reviews.version), cached, self._scores[1]

    def _score(self, cached: CachedDetector, reviews: Reviews) -> Floats:
        empty = np.zeros((len(reviews.ids), len(cached.content.aspects)), dtype=np.float32)
        if cached.detector is None or not reviews.ids:
            return empty
        parts: list[Floats] = []
        with self.progress.work("detecting", sum(len(texts) for texts, _ in reviews.chunks)) as work:
            for texts, tokens in reviews.chunks:
                work.reach(sum(map(len, parts)))
                parts.append(cached.detector.score_tokenized(texts, tokens).astype(np.float32))
        return reviews.windows.highest(np.concatenate(parts))

    def words(self, ids: Sequence[int]) -> list[tuple[int, Detection]]:
        """The words that decide, for every aspect, found or not: the page applies the thresholds itself."""
        reviews, cached = self.reviews(), self.cached_detector()
        known = [key for key in ids if key in reviews.rows]
        if cached.detector is None:
            return []
        found = cached.detector.detect_many([reviews.texts[reviews.rows[key]] for key in known], threshold=0.0)
        return list(zip(known, found, strict=True))

    def results(self) -> tuple[Content, Reviews, Floats, npt.NDArray[np.bool_]]:
        """The scores and aspects of each sentence, as the page shows them: a label overrides what was detected."""
        version, aspects, scores = self.scores()
        reviews, content = self.reviews(), self.store.content()
        if (content.version.learned, content.version.reviews) != (version.learned, version.reviews):
            return self.results()  # the project changed meanwhile
        names = [aspect.name for aspect in aspects]
        auto = self.cached_detector().auto_thresholds()
        common = {
            each.id: auto.get(each.id, 1.0) if content.threshold is None else content.threshold for each in aspects
        }
        cut = np.array([common[each.id] if each.threshold is None else each.threshold for each in content.aspects])
        found = (scores >= np.maximum(cut, 1e-12)) if names else np.zeros(scores.shape, dtype=bool)
        labels = {example.text: example.aspects for example in content.examples}
        columns = {aspect.id: column for column, aspect in enumerate(aspects)}
        for row, text in enumerate(reviews.texts):
            if text in labels:
                found[row] = False
                found[row, [columns[key] for key in labels[text]]] = True
        return content, reviews, scores, found

    # -- advice

    def report(self) -> Report:
        """An estimate of the detector's quality, by leaving examples out."""
        with self._reporting:
            version = self.store.version()
            if self._report is None or self._report[0] != version:
                self._report = version, self.detector().report()
            return self._report[1]

    def suggest(self, k: int, texts: list[str] | None = None) -> list[tuple[int | None, Suggestion]]:
        """What to label next: among these texts, or among the project's sentences, with their ids."""
        detector = self.detector()
        if texts is not None:
            return [(None, each) for each in detector.suggest(texts, k)]
        version, _, scores = self.scores()
        reviews = self.reviews()
        if reviews.version != version.reviews or scores.shape != (len(reviews.texts), len(detector.aspects)):
            return self.suggest(k)  # the project changed meanwhile
        if not reviews.texts:
            return []
        made = make_suggestions(detector, reviews.texts, k, scores.astype(np.float64))
        return [(reviews.ids[each.index], each) for each in made]

    def sentence_map(self) -> tuple[int, Floats]:
        """The version of the reviews, and a position per sentence, near similar ones. (n_sentences, 2), from -1 to 1"""
        with self._scoring:
            reviews = self.reviews()
            if self._map is None or self._map[0] != reviews.version:
                vectors = [self.model.mean_vectors(tokens) for _, tokens in reviews.chunks]
                means = reviews.windows.mean(np.concatenate(vectors)) if vectors else np.zeros((0, 2))
                self._map = reviews.version, project(means)
            return self._map

    # -- labels

    def label_sentence(
        self,
        key: int,
        aspects: Sequence[int] | None,
        seen: Sequence[int] | EllipsisType | None = ...,
        person: str | None = None,
    ) -> None:
        """Label a sentence, or remove its label (None); ``seen`` as in the store's `label_sentence`."""
        text = self.store.sentence_text(key)
        if aspects is None:
            self.store.remove_label(text, seen, person)
        else:
            self.store.label_sentence(text, aspects, seen=seen, person=person)


def fit_detector(
    untaught: AspectDetector, aspects: Sequence[Aspect], examples: Sequence[Example], reviews: Sentences
) -> AspectDetector | None:
    """A copy fitted to these examples, off-topic ones included, the aspects' names and the project's reviews."""
    names, model = {aspect.id: aspect.name for aspect in aspects}, untaught.loaded_model
    known = any(map(model.knows_name, names.values()))
    if not known and not any(example.aspects for example in examples):
        return None
    pairs = ((example.text, [names[key] for key in example.aspects]) for example in examples)
    return copy(untaught).learn(Examples.from_pairs(pairs, names.values()), reviews)


def apply_thresholds(detector: AspectDetector, content: Content) -> AspectDetector:
    """The detector with the project's thresholds; the given one stays as it is."""
    aspects = detector.aspects
    wanted = thresholds(content, aspects)
    if detector.loaded_model.decides_per_sentence:  # use the page's thresholds instead of the model's rule
        own = wanted if isinstance(wanted, dict) else {}
        auto = without_nan(detector.thresholds(AUTO)).tolist()
        common = auto if isinstance(wanted, dict | str) else [wanted] * len(auto)
        wanted = {name: own.get(name, number) for name, number in zip(aspects, common, strict=True)}
    return copy(detector).set_params(threshold=wanted)


def thresholds(content: Content, names: Sequence[str]) -> Threshold:
    """The thresholds of the project in the form that the detector accepts."""
    own = {aspect.name: aspect.threshold for aspect in content.aspects if aspect.threshold is not None}
    if not own:
        return "auto" if content.threshold is None else content.threshold
    common: dict[str, float] = {} if content.threshold is None else dict.fromkeys(names, content.threshold)
    return {name: value for name, value in {**common, **own}.items() if name in names}
