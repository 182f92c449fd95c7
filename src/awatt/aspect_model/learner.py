"""What a detector learns from labels, names and a file, and the probabilities that follow.

labels + names ──► evidence ──► network ──► logits ──► calibration ──► probabilities ──► thresholds
file ──────────────┘ └────────────┘  left-out logits ──┘ └── words       └── of the file ──┘

Without a file, labelled sentences that came as a file's do stand for one, or the examples and the reviews that come
with the model. Without a file and names, as in the benchmark's episodes, the plain network is used, with these reviews
as its background.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from awatt.arrays import Bools, Integers, Sentences, cut, logistic, product, unit
from awatt.aspect_model.calibration import (
    FEWEST_DRAWN,
    Calibration,
    CalibrationPrior,
    assign_folds,
    calibrate,
    drawn_weights,
    representative_weights,
    uncalibrated,
)
from awatt.aspect_model.classifiers import Scores, Settings, score, score_sums, token_directions, weigh_tokens
from awatt.aspect_model.decisions import AIMS, Thresholds, common_threshold, move_towards, thresholds
from awatt.aspect_model.evidence import (
    LearnedEvidence,
    compute_evidence,
    learn_evidence,
    stack_evidence,
)
from awatt.aspect_model.file import File, Read, find_file, look_at, read
from awatt.aspect_model.names import LabelledSentences, add_names, put_in_order
from awatt.aspect_model.network import SCORES, AspectBiases, Network, condition, read_scores
from awatt.aspect_model.plain_network import PLAIN_FEATURES, PlainNetwork, read_plain_scores
from awatt.aspect_model.vectors import EmbeddedSentences, ReadSentences, TokenVectors, WordTable
from awatt.aspect_model.words import WordRidge, learn_words, no_words, score_words

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
#: Is told how many parts of a long computation are done, and how many there are.
OnPart: TypeAlias = Callable[[int, int], object]

FOLDS = 5
HALF_TRUSTED = 10.0  # such sentences, from which on learned thresholds count for more than the model's own
SINGLE_SCORES = ("attended", "lead", "word")  # that the calibration may add to the network's logit
# A name says more on new kinds of text than the network found on those that it was trained on (results/LOG.md).
NAME_WEIGHT, NAME_SHIFT = 1.0, -0.2  # added to its logit: the likeness to the name, on the file's scale
# With fewer aspects the network finds too much: a file covers about the same number of topics however few aspects are
# asked for.
FEW_ASPECTS = 5
N_VALUES = 2 + len(SINGLE_SCORES)  # the logit, the single scores, the words
_TOGETHER = 1000  # left-out sentences that are scored at once; bounds the memory with thousands
MOST_TABULATED = 200  # aspects; the table of the whole vocabulary has 0.7 MB per aspect
_NAME_SCORE = SCORES.index("name_in_file")
_SINGLE_NUMBERS = [SCORES.index(name) for name in SINGLE_SCORES]
_SINGLE_PLAIN = [PLAIN_FEATURES.index(name) for name in SINGLE_SCORES]
# "balanced", with a file but without labels that calibrate: how frequent an aspect is, is then known too badly for a
# threshold that follows the file. It rises with the examples: by a name alone too little is found (results/LOG.md).
NAME_THRESHOLD, FILE_THRESHOLD = 0.12, 0.2  # of an aspect without examples, and with enough of them
ENOUGH_EXAMPLES = 3
PRECISE, THOROUGH = 0.75, 0.1  # the model's own; the second only without a file


@dataclass(frozen=True)
class TrainedParts:
    """Everything that is fixed before a user comes."""

    vectors: TokenVectors
    settings: Settings
    plain: PlainNetwork  # without a file and names
    reviews: Sentences  # that come with the model
    plain_background: EmbeddedSentences  # the same
    network: Network  # with a file, or what stands for one
    background: EmbeddedSentences
    prior: CalibrationPrior
    threshold: float  # "balanced", of the plain network, without enough labels to know better


class LearnedAspects(NamedTuple):
    """All that detection needs: arrays only, no text."""

    evidence: LearnedEvidence
    biases: AspectBiases | None  # None where the plain network is used
    words: WordRidge
    calibration: Calibration
    # Of the file's unlabelled sentences; then, if labels calibrate, left-out ones of the labelled sentences.
    known_values: Values  # (n, n_aspects, n_values)
    known_weights: Floats  # (n,) how much each counts as a sentence of the file
    n_drawn: float  # about how many labelled sentences are like a random sample of the file
    n_reviews: float  # unlabelled sentences of the file that were looked at
    thresholds: Thresholds


def learn(
    parts: TrainedParts, given: LabelledSentences, names: Sequence[str], reviews: Sentences | None = None
) -> LearnedAspects:
    """From labelled sentences, the aspects' names ("" for none), and sentences of the file, at most ``SAMPLE``.

    Every aspect has an example or a name. The same input gives the same result: nothing is random.
    """
    given, _ = put_in_order(given)
    file = find_file(parts.vectors, reviews, given.sentences)
    fitted = _fit(
        parts, given, names, look_at(parts.vectors, parts.reviews, file, given.sentences, given.labels, names)
    )
    n_aspects = given.labels.shape[1]
    calibration, words, n_drawn = uncalibrated(N_VALUES, n_aspects, parts.prior), no_words(n_aspects), 0.0
    values, weights = np.zeros((0, n_aspects, N_VALUES), dtype=np.float32), np.zeros(0)
    if file is not None:
        values = fitted.values(parts, words, file.unlabelled).astype(np.float32)
        weights = np.ones(len(values))
    sample, n_reviews = _sample_weights(given.labels, values, calibration, file), float(len(weights))
    if sample.sum() >= FEWEST_DRAWN:
        words, left_out = _left_out(parts, given, names, file, sample)
        calibration, n_drawn = calibrate(left_out, given.labels, sample, parts.prior), float(sample.sum())
        values, weights = left_out, sample
        if file is not None:
            of_unlabelled = fitted.values(parts, words, file.unlabelled).astype(np.float32)
            values = np.concatenate([of_unlabelled, left_out])
            weights = np.concatenate([np.ones(int(n_reviews)), file.standing])
    own = np.full(n_aspects, parts.threshold)
    if fitted.biases is not None:
        known = np.minimum(1.0, given.labels.sum(0) / ENOUGH_EXAMPLES)
        own = move_towards(np.full(n_aspects, NAME_THRESHOLD), FILE_THRESHOLD, known)
    cuts = _thresholds(own, calibration, values, weights, n_drawn)
    return LearnedAspects(fitted.evidence, fitted.biases, words, calibration, values, weights, n_drawn, n_reviews, cuts)


def probabilities(
    parts: TrainedParts, learned: LearnedAspects, sentences: Sentences, table: WordTable | None = None
) -> Floats:
    """How likely each sentence mentions each aspect. (n_sentences, n_aspects)

    With the table of `tabulate_words` what words say is looked up.
    """
    fitted = _Fitted(learned.evidence, learned.biases)
    if table is None or not len(sentences.lengths):
        values = fitted.values(parts, learned.words, read(parts.vectors, sentences))
    else:
        weighed, vectors = np.split(table.sums(sentences), [6 * len(learned.evidence.names)], axis=1)
        raw = score_sums(
            parts.settings, learned.evidence.classifiers, learned.evidence.examples, weighed, unit(vectors)
        )
        values = fitted.add_words(parts, learned.words, sentences, fitted.read_scores(parts, raw))
    return logistic(learned.calibration.logits(values))


def tabulate_words(parts: TrainedParts, learned: LearnedAspects) -> WordTable | None:
    """What each word says about each aspect, and then its part in the mean vector of a sentence.

    None if that depends on the sentence, or for too many aspects.
    """
    evidence, vectors = learned.evidence, parts.vectors
    n_aspects = len(evidence.names)
    if vectors.context is not None or n_aspects > MOST_TABULATED:
        return None

    def compute(ids: Integers) -> npt.NDArray[np.float32]:
        tokens, norms = vectors.token_vectors(ids)
        cosines = product(tokens, token_directions(evidence.classifiers, evidence.names))
        weighed = weigh_tokens(parts.settings, evidence.classifiers, cosines)
        return np.concatenate([weighed, tokens * norms], 1)

    return WordTable(len(vectors.word_norms), 6 * n_aspects + vectors.stored.table.shape[1], compute)


def left_out_probabilities(
    parts: TrainedParts,
    learned: LearnedAspects,
    given: LabelledSentences,
    names: Sequence[str],
    reviews: Sentences | None,
    on_part: OnPart,
) -> Floats:
    """Of each labelled sentence by a detector that was fitted without it. (n_labelled, n_aspects)

    They are calibrated as the detector is; 0 for an aspect that nothing else describes.
    """
    given, places = put_in_order(given)
    values = learned.known_values[int(learned.n_reviews) :]
    if not len(values):
        values = _cross_fit(parts, given, names, find_file(parts.vectors, reviews, given.sentences), on_part)
    known = values[..., :-1].any(-1)
    return np.where(known, logistic(learned.calibration.logits(values)), 0.0)[places]


def _left_out(
    parts: TrainedParts, given: LabelledSentences, names: Sequence[str], file: File | None, sample: Floats
) -> tuple[WordRidge, Values]:
    """What words add, and the values of each labelled sentence by a detector that was fitted without it."""
    values = _cross_fit(parts, given, names, file)
    words, with_words = _add_words(parts, given, values, sample)
    if calibrate(with_words, given.labels, sample, parts.prior).weights[-1] > 0:
        return words, with_words
    return no_words(given.labels.shape[1]), values  # the labels show that words only mislead


def _add_words(
    parts: TrainedParts, given: LabelledSentences, values: Values, sample: Floats
) -> tuple[WordRidge, Values]:
    """Learn words from what the calibrated values get wrong, and put them into the last column."""
    calibration = calibrate(values, given.labels, sample, parts.prior)
    errors = given.labels - logistic(calibration.logits(values))
    with_words = values.copy()
    words, with_words[..., -1] = learn_words(parts.vectors.word_norms, given.sentences, errors, sample)
    return words, with_words


def _thresholds(own: Floats, calibration: Calibration, values: Values, weights: Floats, n_drawn: float) -> Thresholds:
    """From the values of the file's sample, or of labels that stand for one.

    ``own`` (n_aspects,) are the model's own for "balanced".
    """
    if not len(values):
        return Thresholds(own, np.maximum(own, PRECISE), np.minimum(own, THOROUGH))
    of_file = weights > 0
    known, weights = logistic(calibration.logits(values))[of_file], weights[of_file]
    found = Thresholds(**{aim: thresholds(known, aim, weights) for aim in AIMS})
    # One common threshold is known better than one per aspect, and the model's own better than what few labels say.
    drawn_together = move_towards(found.balanced, common_threshold(known, weights), 0.5)
    doubt = HALF_TRUSTED / (HALF_TRUSTED + n_drawn)
    balanced, precise = move_towards(drawn_together, own, doubt), move_towards(found.precise, PRECISE, doubt)
    return Thresholds(balanced, np.maximum(precise, balanced), np.minimum(found.thorough, balanced))


class _Fitted(NamedTuple):
    evidence: LearnedEvidence
    biases: AspectBiases | None

    def values(self, parts: TrainedParts, words: WordRidge, those: Read) -> Floats:
        """What the calibration reads. (n_sentences, n_aspects, n_values)"""
        return self.add_words(parts, words, those.sentences, self.network_values(parts, those.embedded))

    def add_words(self, parts: TrainedParts, words: WordRidge, sentences: Sentences, values: Floats) -> Floats:
        """The values of the network, and what the words add. (n_sentences, n_aspects, n_values)"""
        of_words = score_words(words, parts.vectors.word_norms, sentences)
        return np.concatenate([values, of_words[..., None]], -1)

    def network_values(self, parts: TrainedParts, sentences: ReadSentences) -> Floats:
        """The network's logit, then single scores. (n_sentences, n_aspects, n_values - 1)"""
        learned = self.evidence
        return self.read_scores(
            parts, score(parts.settings, learned.classifiers, learned.examples, learned.names, sentences)
        )

    def read_scores(self, parts: TrainedParts, raw: Scores) -> Floats:
        """The same from scores."""
        if self.biases is None:
            scores = stack_evidence(self.evidence, raw, PLAIN_FEATURES)
            logits = read_plain_scores(parts.plain, scores).astype(np.float64)
            return np.stack([logits, *(scores[number] for number in _SINGLE_PLAIN)], -1)
        scores = stack_evidence(self.evidence, raw, SCORES)
        logits = read_scores(parts.network, self.biases, scores.astype(np.float64))
        logits = logits + NAME_WEIGHT * scores[_NAME_SCORE] + NAME_SHIFT
        logits += np.log(min(1.0, logits.shape[1] / FEW_ASPECTS))
        return np.stack([logits, *(scores[number] for number in _SINGLE_NUMBERS)], -1)


def _fit(parts: TrainedParts, given: LabelledSentences, names: Sequence[str], file: Read | None) -> _Fitted:
    vectors = parts.vectors.name_vectors(names)
    examples = add_names(given, names, parts.vectors.read_names(names), parts.vectors.tokenize)
    sentences = parts.vectors.embed(examples.sentences)
    labels = examples.labels.astype(np.float32)
    background = parts.plain_background if file is None else parts.background
    of_file = None if file is None else file.embedded
    learned = learn_evidence(parts.settings, sentences, labels, background, vectors, of_file)
    if of_file is None:
        return _Fitted(learned, None)
    evidence = compute_evidence(parts.settings, learned, of_file).astype(np.float64)
    return _Fitted(learned, condition(parts.network, evidence[:1], evidence))


def _sample_weights(labels: Bools, values: Values, calibration: Calibration, file: File | None) -> Floats:
    """How much each labelled sentence counts as one drawn at random, given the file and its values. (n_labelled,)"""
    if file is None:
        return drawn_weights(labels)
    # the aspects of the file's labelled sentences are known for certain
    of_labelled = labels.repeat(file.standing.astype(np.int64), axis=0)
    return representative_weights(labels, np.concatenate([logistic(calibration.logits(values)), of_labelled]))


def _cross_fit(
    parts: TrainedParts,
    given: LabelledSentences,
    names: Sequence[str],
    file: File | None,
    on_part: OnPart = lambda done, total: None,
) -> Values:
    """What the network says of each labelled sentence, fitted without it; 0 of the words.

    (n_labelled, n_aspects, n_values)
    """
    folds = assign_folds(given.labels, FOLDS)
    says = parts.vectors.read_names(names)
    found = np.zeros((*given.labels.shape, N_VALUES), dtype=np.float32)
    for fold in range(FOLDS):
        on_part(fold, FOLDS)
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        kept = LabelledSentences(given.sentences.take(inside), given.labels[inside])
        known = np.flatnonzero(kept.labels.any(0) | says)
        if not len(known) or not len(outside):
            continue
        # An aspect whose only example is left out keeps the prior's logit of 0 for this fold's sentences.
        of_fold = None if file is None else file.part(inside)
        fitted = _fit(
            parts,
            LabelledSentences(kept.sentences, kept.labels[:, known]),
            [names[number] for number in known.tolist()],
            look_at(parts.vectors, parts.reviews, of_fold, kept.sentences, given.labels, names),
        )
        for part in cut(len(outside), _TOGETHER):
            some = outside[part]
            values = fitted.network_values(parts, parts.vectors.read(given.sentences.take(some)))
            found[some[:, None], known, :-1] = values
    return found
