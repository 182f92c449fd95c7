"""What a detector learns from labels, names and a file, and the probabilities that follow.

labels + names ──► evidence ──► network ──► logits ──► calibration ──► probabilities ──► thresholds
file ──────────────┘ └────────────┘  left-out logits ──┘                  └── of the file ──┘

Without a file the bundled network and its background are used as before: on the benchmark's episodes, which have no
file, it is better by about one point of F1 than the network that reads files (results/curve/LOG.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.aspect_model.calibration import (
    Calibration,
    CalibrationPrior,
    assign_folds,
    calibrate,
    representative_weights,
    uncalibrated,
)
from awatt.aspect_model.classifiers import Settings
from awatt.aspect_model.decisions import thresholds
from awatt.aspect_model.evidence import FEATURES, LearnedEvidence, compute_evidence, learn_evidence
from awatt.aspect_model.names import LabelledSentences, add_names, name_words
from awatt.aspect_model.network import AspectBiases, Network, compute_logits, condition
from awatt.evidence import FEATURES as BUNDLED_FEATURES
from awatt.evidence import Line
from awatt.evidence import logits as bundled_logits
from awatt.matcher import Matcher
from awatt.packed import Sentences

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FOLDS = 5
FEWEST_DRAWN = 10.0  # sentences that may be a sample of the file, below which labels do not calibrate
MANY_PER_ASPECT = 20  # labelled sentences, from which on they calibrate even without a file and off-topic ones
SAMPLE = 500  # sentences of a file that are looked at
FEWEST_REVIEWS = 10  # sentences of a file, below which it says nothing
SINGLE_SCORES = ("attended", "lead", "word")  # that the calibration may add to the network's logit
_SINGLE_COLUMNS = [FEATURES.index(name) for name in SINGLE_SCORES]
_RENAMED = {"own": "positives", "others": "negatives", "n_examples": "n_positives"}
_BUNDLED_COLUMNS = [FEATURES.index(_RENAMED.get(name, name)) for name in BUNDLED_FEATURES]
# "balanced", with a file but without labels that calibrate: how frequent an aspect is, is then known too badly for a
# threshold of its own (results/curve/LOG.md)
UNCALIBRATED_THRESHOLD = 0.2
DEFAULT_THRESHOLDS = {"precise": 0.75, "thorough": 0.1}  # without a file and without enough labels to know better


@dataclass(frozen=True)
class AspectModel:
    """Everything that is fixed before a user comes."""

    vectors: Matcher  # texts to token vectors
    settings: Settings
    network: Network
    background: Line  # of the network that reads files; the bundled one has its own
    prior: CalibrationPrior


class LearnedAspects(NamedTuple):
    """All that detection needs: arrays only, no text."""

    evidence: LearnedEvidence
    biases: AspectBiases | None  # None without a file
    calibration: Calibration
    known_values: Floats  # (n, n_aspects, n_values) of the file's sample; without one, left-out ones of the labels
    known_weights: Floats  # (n,) how much each counts
    n_drawn: float  # about how many labelled sentences are like a random sample of the file


def learn(
    model: AspectModel, given: LabelledSentences, names: Sequence[str], reviews: Sentences | None = None
) -> LearnedAspects:
    """From labelled sentences, the aspects' names ("" for none), and sentences of the file, at most ``SAMPLE``.

    Every aspect has an example or a name. The same input gives the same result: nothing is random.
    """
    enough = reviews is not None and len(reviews.lengths) >= FEWEST_REVIEWS
    file = model.vectors.read(reviews) if reviews is not None and enough else None
    fitted = _fit(model, given, names, file)
    n_aspects = given.labels.shape[1]
    calibration = uncalibrated(1 + len(SINGLE_SCORES), n_aspects, model.prior)
    values, weights, n_drawn = np.zeros((0, n_aspects, 1 + len(SINGLE_SCORES))), np.zeros(0), 0.0
    if file is not None:
        values = fitted.values(model, file)
        weights = np.ones(len(values))
    sample = _sample_weights(given.labels, calibration, values)
    if sample.sum() >= FEWEST_DRAWN:
        left_out = _cross_fit(model, given, names, file)
        calibration, n_drawn = calibrate(left_out, given.labels, sample, model.prior), float(sample.sum())
        if file is None:
            values, weights = left_out, sample
    return LearnedAspects(fitted.evidence, fitted.biases, calibration, values, weights, n_drawn)


def probabilities(model: AspectModel, learned: LearnedAspects, sentences: Sentences) -> Floats:
    """How likely each sentence mentions each aspect. (n_sentences, n_aspects)"""
    fitted = _Fitted(learned.evidence, learned.biases)
    return _logistic(learned.calibration.logits(fitted.values(model, model.vectors.read(sentences))))


def known_probabilities(learned: LearnedAspects) -> Floats:
    """Of the file's sample, or left-out ones of the labels; what thresholds and estimates are made from."""
    return _logistic(learned.calibration.logits(learned.known_values))


def choose_thresholds(model: AspectModel, learned: LearnedAspects, aim: str = "balanced") -> Floats:
    """One threshold per aspect for "balanced", "precise" or "thorough". (n_aspects,)"""
    if not len(learned.known_values):
        default = DEFAULT_THRESHOLDS.get(aim, model.vectors.threshold)
        return np.full(len(learned.calibration.shift), default)
    if aim == "balanced" and not learned.n_drawn:
        return np.full(len(learned.calibration.shift), UNCALIBRATED_THRESHOLD)
    return thresholds(known_probabilities(learned), aim, learned.known_weights)


class _Fitted(NamedTuple):
    evidence: LearnedEvidence
    biases: AspectBiases | None

    def values(self, model: AspectModel, sentences: Line) -> Floats:
        """What the calibration reads: the network's logit, then single scores. (n_sentences, n_aspects, n_values)"""
        evidence = compute_evidence(model.settings, self.evidence, sentences)
        if self.biases is None:
            bundled = np.ascontiguousarray(evidence[..., _BUNDLED_COLUMNS])
            logits = bundled_logits(model.vectors.parameters, bundled).astype(np.float64)
        else:
            logits = compute_logits(model.network, self.biases, evidence.astype(np.float64))
        return np.concatenate([logits[..., None], evidence[..., _SINGLE_COLUMNS]], -1)


def _fit(model: AspectModel, given: LabelledSentences, names: Sequence[str], file: Line | None) -> _Fitted:
    examples = add_names(given, names, model.vectors.tokenize)
    vectors = model.vectors.name_vectors([name_words(name) for name in names])
    sentences = model.vectors.read(examples.sentences)
    labels = examples.labels.astype(np.float32)
    background = model.vectors.background if file is None else model.background
    learned = learn_evidence(model.settings, sentences, labels, background, vectors, file)
    if file is None:
        return _Fitted(learned, None)
    of_file = compute_evidence(model.settings, learned, file).astype(np.float64)
    return _Fitted(learned, condition(model.network, of_file[:1], of_file))


def _sample_weights(labels: Bools, calibration: Calibration, values: Floats) -> Floats:
    """How much each labelled sentence counts as one drawn at random. (n_labelled,)"""
    weights = representative_weights(labels, _logistic(calibration.logits(values)))
    if len(values):
        return weights
    # Without a file, off-topic labels or a great many show that sentences were labelled as they came.
    as_they_came = (~labels.any(1)).sum() >= FEWEST_DRAWN or len(labels) >= MANY_PER_ASPECT * labels.shape[1]
    return weights * float(as_they_came)


def _cross_fit(model: AspectModel, given: LabelledSentences, names: Sequence[str], file: Line | None) -> Floats:
    """The values of each labelled sentence by a detector that was fitted without it."""
    folds = assign_folds(given.labels, FOLDS)
    found = np.zeros((*given.labels.shape, 1 + len(SINGLE_SCORES)))
    for fold in range(FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        kept = LabelledSentences(given.sentences.take(inside), given.labels[inside])
        known = np.flatnonzero(kept.labels.any(0) | np.array([bool(name_words(name)) for name in names]))
        # An aspect whose only example is left out keeps the prior's logit of 0 for this fold's sentences.
        part = _fit(model, LabelledSentences(kept.sentences, kept.labels[:, known]), [names[n] for n in known], file)
        left_out = model.vectors.read(given.sentences.take(outside))
        found[np.ix_(outside, known)] = part.values(model, left_out)
    return found


def _logistic(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logits)))
