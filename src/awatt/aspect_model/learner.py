"""What a detector learns from labels, names and a file, and the probabilities that follow.

labels + names ──► evidence ──► network ──► logits ──► calibration ──► probabilities ──► thresholds
file ──────────────┘ └────────────┘  left-out logits ──┘                  └── of the file ──┘

Without a file the plain network and its own background are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import Sentences
from awatt.aspect_model.calibration import (
    Calibration,
    CalibrationPrior,
    assign_folds,
    calibrate,
    representative_weights,
    uncalibrated,
)
from awatt.aspect_model.classifiers import Settings
from awatt.aspect_model.decisions import AIMS, Thresholds, thresholds
from awatt.aspect_model.evidence import FEATURES, LearnedEvidence, compute_evidence, learn_evidence
from awatt.aspect_model.names import LabelledSentences, add_names, name_words
from awatt.aspect_model.network import AspectBiases, Network, compute_logits, condition
from awatt.aspect_model.plain_network import PlainNetwork, compute_plain_logits
from awatt.aspect_model.vectors import EmbeddedSentences, TokenVectors

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FOLDS = 5
FEWEST_DRAWN = 10.0  # sentences that may be a sample of the file, below which labels do not calibrate
MANY_PER_ASPECT = 20  # labelled sentences, from which on they calibrate even without a file and off-topic ones
SAMPLE = 500  # sentences of a file that are looked at
FEWEST_REVIEWS = 10  # sentences of a file, below which it says nothing
SINGLE_SCORES = ("attended", "lead", "word")  # that the calibration may add to the network's logit
N_VALUES = 1 + len(SINGLE_SCORES)
_SINGLE_COLUMNS = [FEATURES.index(name) for name in SINGLE_SCORES]
# "balanced", with a file but without labels that calibrate: how frequent an aspect is, is then known too badly for a
# threshold of its own (results/LOG.md)
UNCALIBRATED_THRESHOLD = 0.2
DEFAULT_THRESHOLDS = {"precise": 0.75, "thorough": 0.1}  # without a file and without enough labels to know better


@dataclass(frozen=True)
class TrainedParts:
    """Everything that is fixed before a user comes."""

    vectors: TokenVectors
    settings: Settings
    plain: PlainNetwork  # without a file
    plain_background: EmbeddedSentences
    network: Network  # with a file
    background: EmbeddedSentences
    prior: CalibrationPrior
    threshold: float  # "balanced", without a file and without enough labels to know better


class LearnedAspects(NamedTuple):
    """All that detection needs: arrays only, no text."""

    evidence: LearnedEvidence
    biases: AspectBiases | None  # None without a file
    calibration: Calibration
    known_values: Floats  # (n, n_aspects, n_values) of the file's sample; without one, left-out ones of the labels
    known_weights: Floats  # (n,) how much each counts
    n_drawn: float  # about how many labelled sentences are like a random sample of the file
    thresholds: Thresholds


def learn(
    parts: TrainedParts, given: LabelledSentences, names: Sequence[str], reviews: Sentences | None = None
) -> LearnedAspects:
    """From labelled sentences, the aspects' names ("" for none), and sentences of the file, at most ``SAMPLE``.

    Every aspect has an example or a name. The same input gives the same result: nothing is random.
    """
    file = _embed_file(parts, reviews, given.sentences)
    fitted = _fit(parts, given, names, file)
    n_aspects = given.labels.shape[1]
    calibration = uncalibrated(N_VALUES, n_aspects, parts.prior)
    values, weights, n_drawn = np.zeros((0, n_aspects, N_VALUES)), np.zeros(0), 0.0
    if file is not None:
        values = fitted.values(parts, file)
        weights = np.ones(len(values))
    sample = _sample_weights(given.labels, calibration, values)
    if sample.sum() >= FEWEST_DRAWN:
        left_out = _cross_fit(parts, given, names, file)
        calibration, n_drawn = calibrate(left_out, given.labels, sample, parts.prior), float(sample.sum())
        if file is None:
            values, weights = left_out, sample
    cuts = _thresholds(parts, calibration, values, weights, calibrated=n_drawn > 0)
    return LearnedAspects(fitted.evidence, fitted.biases, calibration, values, weights, n_drawn, cuts)


def probabilities(parts: TrainedParts, learned: LearnedAspects, sentences: Sentences) -> Floats:
    """How likely each sentence mentions each aspect. (n_sentences, n_aspects)"""
    fitted = _Fitted(learned.evidence, learned.biases)
    return _logistic(learned.calibration.logits(fitted.values(parts, parts.vectors.embed(sentences))))


def left_out_probabilities(
    parts: TrainedParts,
    learned: LearnedAspects,
    given: LabelledSentences,
    names: Sequence[str],
    reviews: Sentences | None,
) -> Floats:
    """Of each labelled sentence by a detector that was fitted without it. (n_labelled, n_aspects)

    They are calibrated as the detector is; 0 for an aspect that nothing else describes.
    """
    values = _cross_fit(parts, given, names, _embed_file(parts, reviews, given.sentences))
    likely = _logistic(learned.calibration.logits(values))
    return np.where(values.any(-1), likely, 0.0)


def _embed_file(parts: TrainedParts, reviews: Sentences | None, labelled: Sentences) -> EmbeddedSentences | None:
    """The file without its labelled sentences, whose scores are better than those of new ones; None if it is small."""
    if reviews is None:
        return None
    known = set(_token_bytes(labelled))
    unlabelled = [number for number, tokens in enumerate(_token_bytes(reviews)) if tokens not in known]
    if len(unlabelled) < FEWEST_REVIEWS:
        return None
    return parts.vectors.embed(reviews.take(np.array(unlabelled)))


def _token_bytes(sentences: Sentences) -> list[bytes]:
    return [ids.tobytes() for ids in np.split(sentences.ids, np.cumsum(sentences.lengths)[:-1])]


def known_probabilities(learned: LearnedAspects) -> Floats:
    """Of the file's sample, or left-out ones of the labels; what thresholds and estimates are made from."""
    return _logistic(learned.calibration.logits(learned.known_values))


def _thresholds(
    parts: TrainedParts, calibration: Calibration, values: Floats, weights: Floats, calibrated: bool
) -> Thresholds:
    n_aspects = len(calibration.shift)
    if len(values):
        known = _logistic(calibration.logits(values))
        found = Thresholds(**{aim: thresholds(known, aim, weights) for aim in AIMS})
        return found if calibrated else found._replace(balanced=np.full(n_aspects, UNCALIBRATED_THRESHOLD))
    return Thresholds(
        **{aim: np.full(n_aspects, DEFAULT_THRESHOLDS.get(aim, parts.threshold), dtype=np.float64) for aim in AIMS}
    )


class _Fitted(NamedTuple):
    evidence: LearnedEvidence
    biases: AspectBiases | None

    def values(self, parts: TrainedParts, sentences: EmbeddedSentences) -> Floats:
        """What the calibration reads: the network's logit, then single scores. (n_sentences, n_aspects, n_values)"""
        evidence = compute_evidence(parts.settings, self.evidence, sentences)
        if self.biases is None:
            logits = compute_plain_logits(parts.plain, evidence).astype(np.float64)
        else:
            logits = compute_logits(parts.network, self.biases, evidence.astype(np.float64))
        return np.concatenate([logits[..., None], evidence[..., _SINGLE_COLUMNS]], -1)


def _fit(
    parts: TrainedParts, given: LabelledSentences, names: Sequence[str], file: EmbeddedSentences | None
) -> _Fitted:
    examples = add_names(given, names, parts.vectors.tokenize)
    vectors = parts.vectors.name_vectors(names)
    sentences = parts.vectors.embed(examples.sentences)
    labels = examples.labels.astype(np.float32)
    background = parts.plain_background if file is None else parts.background
    learned = learn_evidence(parts.settings, sentences, labels, background, vectors, file)
    if file is None:
        return _Fitted(learned, None)
    of_file = compute_evidence(parts.settings, learned, file).astype(np.float64)
    return _Fitted(learned, condition(parts.network, of_file[:1], of_file))


def _sample_weights(labels: Bools, calibration: Calibration, values: Floats) -> Floats:
    """How much each labelled sentence counts as one drawn at random. (n_labelled,)"""
    weights = representative_weights(labels, _logistic(calibration.logits(values)))
    if len(values):
        return weights
    # Without a file, off-topic labels or a great many show that sentences were labelled as they came.
    as_they_came = (~labels.any(1)).sum() >= FEWEST_DRAWN or len(labels) >= MANY_PER_ASPECT * labels.shape[1]
    return weights * float(as_they_came)


def _cross_fit(
    parts: TrainedParts, given: LabelledSentences, names: Sequence[str], file: EmbeddedSentences | None
) -> Floats:
    """The values of each labelled sentence by a detector that was fitted without it."""
    folds = assign_folds(given.labels, FOLDS)
    found = np.zeros((*given.labels.shape, N_VALUES))
    for fold in range(FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        kept = LabelledSentences(given.sentences.take(inside), given.labels[inside])
        known = np.flatnonzero(kept.labels.any(0) | np.array([bool(name_words(name)) for name in names]))
        if not len(known) or not len(outside):
            continue
        # An aspect whose only example is left out keeps the prior's logit of 0 for this fold's sentences.
        fitted = _fit(
            parts,
            LabelledSentences(kept.sentences, kept.labels[:, known]),
            [names[number] for number in known.tolist()],
            file,
        )
        left_out = parts.vectors.embed(given.sentences.take(outside))
        found[np.ix_(outside, known)] = fitted.values(parts, left_out)
    return found


def _logistic(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logits)))
