"""The project at work: the detector that its examples teach, and the scores, words and map of its sentences.

Everything here follows from the project's file. It is computed when it is asked for and kept until the counters of the
file move, whichever process moved them.
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
from awatt.detector.detector import CHUNK, AspectDetector
from awatt.detector.examples import Examples
from awatt.detector.models import Model, load_model
from awatt.detector.report import Report
from awatt.detector.results import Detection
from awatt.detector.suggest import Suggestion, make_suggestions
from awatt.detector.thresholds import Threshold
from awatt.errors import AwattError
from awatt.server.content import Aspect, Content, Example, Version
from awatt.server.projection import project
from awatt.server.store import ProjectStore
from awatt.thresholds.default import default_threshold

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Reviews:
    """The sentences of the project, and their tokens, which do not change when examples do."""

    version: int
    ids: list[int]
    reviews: list[int]
    texts: list[str]
    model: Model

    @cached_property
    def chunks(self) -> list[tuple[list[str], Sentences]]:
        """What is computed at once."""
        parts = [self.texts[first : first + CHUNK] for first in range(0, len(self.texts), CHUNK)]
        return [(part, self.model.tokenize(part)) for part in parts]

    @cached_property
    def place(self) -> dict[int, int]:
        """Where in the lists the sentence with an id is."""
        return {key: number for number, key in enumerate(self.ids)}


@dataclass(frozen=True)
class Taught:
    """What the examples of one moment teach; None while no aspect has an example."""

    version: int
    content: Content
    detector: AspectDetector | None


class Workbench:
    """Answers what the page and the API ask of the project."""

    def __init__(self, store: ProjectStore, model: Path | None = None) -> None:
        self.store, self.model_folder = store, model
        self.model = load_model(model)
        self._lock = threading.RLock()  # the detector: short
        self._scoring = threading.Lock()  # all sentences: long
        self._taught: Taught | None = None
        self._reviews: Reviews | None = None
        self._ready: tuple[int, AspectDetector] | None = None
        self._scores: tuple[Version, Floats] | None = None
        self._map: tuple[int, Floats] | None = None

    # -- what the file says

    def content(self) -> Content:
        """Aspects, examples and settings."""
        return self.store.content()

    def auto_threshold(self) -> float:
        """The model's own for the project's aspects; the page needs one number, whatever the model decides by."""
        n_aspects = sum(1 for each in self.store.content().aspects)
        number = self.model.auto_threshold(max(1, n_aspects))
        return default_threshold(max(1, n_aspects)) if number is None else number

    def reviews(self) -> Reviews:
        """The sentences."""
        with self._lock, self.store.snapshot():
            version = self.store.version().reviews
            if self._reviews is None or self._reviews.version != version:
                rows = self.store.sentences()
                ids, numbers, texts = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
                self._reviews = Reviews(version, ids, numbers, texts, self.model)
            return self._reviews

    def taught(self) -> Taught:
        """The detector and the aspects that it knows."""
        with self._lock:
            version = self.store.version()
            if self._taught is None or self._taught.version != version.learned:
                content = self.store.content()
                self._taught = Taught(
                    content.version.learned, content, teach(content.aspects, content.examples, self.model_folder)
                )
            return self._taught

    def detector(self) -> AspectDetector:
        """A detector with the project's thresholds, for detection, reports and folders."""
        with self._lock:
            revision = self.store.version().revision
            if self._ready is not None and self._ready[0] == revision:
                return self._ready[1]
            taught, content = self.taught(), self.store.content()
            if taught.detector is None:
                raise AwattError("no aspect has an example yet, so nothing can be found. Add an aspect with examples.")
            aspects = taught.detector.aspects
            wanted = thresholds(content, aspects)
            if self.model.auto_threshold(len(aspects)) is None:  # decided per sentence: the page's number counts here
                own = wanted if isinstance(wanted, dict) else {}
                common = self.auto_threshold() if isinstance(wanted, dict | str) else wanted
                wanted = {name: own.get(name, common) for name in aspects}
            detector = copy(taught.detector).set_params(threshold=wanted)
            self._ready = revision, detector
            return detector

    # -- detection

    def detect(self, texts: Sequence[str], threshold: Threshold | None, words: bool) -> list[Detection]:
        """What each text mentions."""
        return self.detector().detect_many(texts, threshold, words)

    def scores(self) -> tuple[Version, list[Aspect], Floats]:
        """Of every sentence and aspect (n_sentences, n_aspects), and of which moment they are."""
        with self._scoring:
            taught, reviews, version = self.taught(), self.reviews(), self.store.version()
            key = Version(0, taught.version, reviews.version)
            if self._scores is None or self._scores[0] != key:
                self._scores = key, self._score(taught, reviews)
            return Version(version.revision, taught.version, reviews.version), taught.content.aspects, self._scores[1]

    def _score(self, taught: Taught, reviews: Reviews) -> Floats:
        empty = np.zeros((len(reviews.ids), len(taught.content.aspects)), dtype=np.float32)
        if taught.detector is None or not reviews.ids:
            return empty
        parts = [taught.detector.score_tokenized(texts, tokens) for texts, tokens in reviews.chunks]
        return np.concatenate(parts).astype(np.float32)

    def words(self, ids: Sequence[int]) -> list[tuple[int, Detection]]:
        """The words that decide for every aspect, found or not: the page moves the threshold on its own."""
        reviews, taught = self.reviews(), self.taught()
        known = [key for key in ids if key in reviews.place]
        if taught.detector is None:
            return []
        found = taught.detector.detect_many([reviews.texts[reviews.place[key]] for key in known], threshold=0.0)
        return list(zip(known, found, strict=True))

    def found(self) -> tuple[Content, Reviews, Floats, npt.NDArray[np.bool_]]:
        """What each sentence mentions, as the page shows it: what a person said counts before what was detected."""
        version, aspects, scores = self.scores()
        reviews, content = self.reviews(), self.store.content()
        if (content.version.learned, content.version.reviews) != (version.learned, version.reviews):
            return self.found()  # somebody changed it meanwhile
        names = [aspect.name for aspect in aspects]
        common = content.threshold if content.threshold is not None else self.auto_threshold()
        cut = np.array([common if each.threshold is None else each.threshold for each in content.aspects])
        found = (scores >= np.maximum(cut, 1e-12)) if names else np.zeros(scores.shape, dtype=bool)
        judged = {example.text: example.aspects for example in content.examples}
        columns = {aspect.id: column for column, aspect in enumerate(aspects)}
        for number, text in enumerate(reviews.texts):
            if text in judged:
                found[number] = False
                found[number, [columns[key] for key in judged[text]]] = True
        return content, reviews, scores, found

    # -- advice

    def report(self) -> Report:
        """How good to expect it to be."""
        return self.detector().report()

    def suggest(self, k: int, texts: list[str] | None = None) -> list[tuple[int | None, Suggestion]]:
        """What to label next: of these texts, or of the project's sentences with their ids."""
        detector = self.detector()
        if texts is not None:
            return [(None, each) for each in detector.suggest(texts, k)]
        version, _, scores = self.scores()
        reviews = self.reviews()
        if reviews.version != version.reviews or scores.shape != (len(reviews.texts), len(detector.aspects)):
            return self.suggest(k)  # somebody changed it meanwhile
        if not reviews.texts:
            return []
        made = make_suggestions(detector, reviews.texts, k, scores.astype(np.float64))
        return [(reviews.ids[each.index], each) for each in made]

    def sentence_map(self) -> tuple[int, Floats]:
        """A place for each sentence: near ones speak of the same. (n_sentences, 2), from -1 to 1; of which reviews"""
        with self._scoring:
            reviews = self.reviews()
            if self._map is None or self._map[0] != reviews.version:
                vectors = [self.model.mean_vectors(tokens) for _, tokens in reviews.chunks]
                self._map = (
                    reviews.version,
                    project(np.concatenate(vectors)) if vectors else np.zeros((0, 2), np.float32),
                )
            return self._map

    # -- changes that need more than the file

    def judge_sentence(
        self, key: int, aspects: Sequence[int] | None, seen: Sequence[int] | EllipsisType | None = ...
    ) -> None:
        """A person says what a sentence mentions, or takes it back; ``seen`` as for the store's `judge`."""
        text = self.store.sentence_text(key)
        if aspects is None:
            self.store.forget(text, seen)
        else:
            self.store.judge(text, aspects, seen=seen)


def teach(aspects: Sequence[Aspect], examples: Sequence[Example], model: Path | None = None) -> AspectDetector | None:
    """A detector of these examples; of those that mention none, too."""
    names = {aspect.id: aspect.name for aspect in aspects}
    if not any(example.aspects for example in examples):
        return None
    pairs = ((example.text, [names[key] for key in example.aspects]) for example in examples)
    return AspectDetector.from_examples(Examples.from_pairs(pairs, names.values()), model=model)


def thresholds(content: Content, names: Sequence[str]) -> Threshold:
    """The project's thresholds as the detector takes them."""
    own = {aspect.name: aspect.threshold for aspect in content.aspects if aspect.threshold is not None}
    if not own:
        return "auto" if content.threshold is None else content.threshold
    common: dict[str, float] = {} if content.threshold is None else dict.fromkeys(names, content.threshold)
    return {name: value for name, value in {**common, **own}.items() if name in names}
