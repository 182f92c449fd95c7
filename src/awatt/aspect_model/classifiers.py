"""An aspect's classifiers: ridge regression in closed form that reads a sentence through its own attention.

A first classifier on mean vectors says which words speak for the aspect. With these words weighted up, every labelled
sentence is represented anew, as this aspect sees it, and the classifier is fitted again, twice (as in Proto-AWATT, the
attention follows from the examples). Ordinary sentences, the *background*, are weak negatives.

Everything here is a pure function of numpy arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.evidence import Line
from awatt.models.ops import product, unit, weighted_sums

Floats = npt.NDArray[np.float32]

PASSES = 2  # of attention
PLENTY = 100  # labelled sentences, from which on the penalty falls with their number
PENALTY_POWER = 0.6
NEAREST = 40  # examples per aspect that a sentence is compared with one by one; bounds the time with thousands
_CELLS = 4e6  # numbers held at once while fitting; bounds the memory with many aspects


class Settings(NamedTuple):
    """The learned numbers that the classifiers and the scores depend on."""

    attention_temperature: float
    word_temperature: float
    nearest_temperature: float
    mean_share: float  # share of the mean vector in what an aspect sees of a sentence; the rest is what it attends to
    penalty: float  # of the first classifier
    attended_penalty: float
    background_weight: float  # of all background sentences together; positives and negatives weigh 1 each
    centre: Floats  # (dim,) mean of many sentences' mean vectors


class LabelledRows(NamedTuple):
    """Sentences with a target and a weight for each aspect."""

    sentences: Line
    targets: Floats  # (n_sentences, n_aspects) from -1, without the aspect, to 1, with it
    weights: Floats  # (n_sentences, n_aspects)


class Classifiers(NamedTuple):
    """Linear classifiers of each aspect, their constants last."""

    whole: Floats  # (n_aspects, dim + 1) of mean vectors
    attention: Floats  # (n_aspects, dim + 1) whose direction decides which words the last one reads
    attended: Floats  # (n_aspects, dim + 1) of what the attention sees


class Scores(NamedTuple):
    """What is computed for each (sentence, aspect); every array is (n_sentences, n_aspects)."""

    attended: Floats  # the last classifier
    whole: Floats  # the first one
    word: Floats  # how much the words speak for the aspect that do so most
    nearest: Floats  # likeness to the aspect's nearest examples
    negative: Floats  # likeness to the nearest labelled sentences without the aspect
    name: Floats  # likeness of words to the aspect's name


class Examples(NamedTuple):
    """Labelled sentences that are kept to compare with one by one."""

    vectors: Floats  # (n_kept, dim) mean vectors, centred
    labels: Floats  # (n_kept, n_aspects)


def balanced_rows(sentences: Line, labels: Floats) -> LabelledRows:
    """Positives weigh 1 together, negatives too, for each aspect that has any."""
    others = 1 - labels
    weights = labels / np.maximum(labels.sum(0), 1) + others / np.maximum(others.sum(0), 1)
    return LabelledRows(sentences, 2 * labels - 1, weights)


def background_rows(settings: Settings, background: Line, n_aspects: int) -> LabelledRows:
    """Weak negatives for every aspect."""
    shape = (len(background.lengths), n_aspects)
    weight = settings.background_weight / len(background.lengths)
    return LabelledRows(background, -np.ones(shape, np.float32), np.full(shape, weight, np.float32))


def follow_labels(settings: Settings, n_labelled: int) -> Settings:
    """Penalties that fall with the number of labels: weights sum to a constant, so that they would grow with it."""
    factor = min(1.0, (PLENTY / max(1, n_labelled)) ** PENALTY_POWER)
    return settings._replace(penalty=settings.penalty * factor, attended_penalty=settings.attended_penalty * factor)


def fit_classifiers(settings: Settings, groups: list[LabelledRows]) -> tuple[Classifiers, Floats]:
    """The classifiers, and for the sentences of the first group what the last one says when each is left out.

    Left-out scores are (n_sentences, n_aspects). They are exact for a fixed attention: the attention has seen them.
    """
    n_rows = sum(len(rows.sentences.lengths) for rows in groups)
    n_aspects = groups[0].targets.shape[1]
    size = max(1, int(_CELLS / (n_rows * groups[0].sentences.means.shape[1])))
    parts = [_fit_part(settings, groups, slice(first, first + size)) for first in range(0, n_aspects, size)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Classifiers(*columns[:3]), columns[3].T


def _fit_part(settings: Settings, groups: list[LabelledRows], part: slice) -> tuple[Floats, Floats, Floats, Floats]:
    targets = np.concatenate([rows.targets[:, part] for rows in groups]).T
    weights = np.concatenate([rows.weights[:, part] for rows in groups]).T
    n_first = len(groups[0].sentences.lengths)
    means = _with_constant(np.concatenate([rows.sentences.means for rows in groups]))[None]
    whole, left_out = ridge(means, targets, weights, settings.penalty)
    attention = attended = whole
    for number in range(PASSES):
        attention = attended
        seen = np.concatenate([attend(settings, rows.sentences, attention) for rows in groups], 1)
        n_left_out = n_first if number == PASSES - 1 else 0
        attended, left_out = ridge(seen, targets, weights, settings.attended_penalty, n_left_out)
    return whole, attention, attended, left_out


def ridge(rows: Floats, targets: Floats, weights: Floats, penalty: float, n_left_out: int = 0) -> tuple[Floats, Floats]:
    """Weighted ridge regression; for the first rows also what the fit without that row predicts for it.

    rows (n or 1, n_rows, dim), targets and weights (n, n_rows) -> (n, dim), (n, n_left_out). The smaller of the two
    closed forms is solved, in double precision.
    """
    n_rows, dim = rows.shape[-2:]
    x, y, w = rows.astype(np.float64), targets.astype(np.float64), weights.astype(np.float64)
    first = slice(n_left_out)
    if n_rows < dim:
        eye = np.eye(n_rows)
        system = x @ np.swapaxes(x, -1, -2) + (penalty / np.maximum(w, 1e-9))[..., None] * eye
        solved = np.linalg.solve(system, np.concatenate([y[..., None], eye[:, first] + 0 * y[:, :1, None]], -1))
        dual, inverse = solved[..., 0], solved[:, first, 1:]
        found = (dual[:, None] @ x)[:, 0]
        left_out = y[:, first] - dual[:, first] / np.einsum("nii->ni", inverse)
    else:
        weighted = np.swapaxes(x * w[..., None], -1, -2)  # (n, dim, n_rows)
        system = weighted @ x + penalty * np.eye(dim)
        solved = np.linalg.solve(system, np.concatenate([weighted @ y[..., None], weighted[..., first]], -1))
        found = solved[..., 0]
        leverage = (x[:, first] * np.swapaxes(solved[..., 1:], -1, -2)).sum(-1)
        predicted = (x[:, first] @ found[..., None])[..., 0]
        left_out = (predicted - leverage * y[:, first]) / (1 - leverage + 1e-9)
    return found.astype(rows.dtype), left_out.astype(rows.dtype)


def attend(settings: Settings, sentences: Line, classifiers: Floats) -> Floats:
    """Each sentence as each aspect sees it, a constant last. (n_aspects, n_sentences, dim + 1)"""
    speaks = sentences.words @ direction(classifiers).T
    weights = attention_weights(speaks, settings.attention_temperature)
    totals = sentences.sums(weights).T[..., None]
    seen = weighted_sums(weights[sentences.places], sentences.words[sentences.places], sentences.lengths) / totals
    return _with_constant((1 - settings.mean_share) * seen + settings.mean_share * sentences.means[None])


def keep_examples(settings: Settings, sentences: Line, labels: Floats) -> Examples:
    """The first examples of each aspect, and as many sentences without any."""
    groups = np.concatenate([labels, (labels.sum(1, keepdims=True) == 0)], 1)
    rank = np.cumsum(groups, 0) * groups
    kept = ((rank > 0) & (rank <= NEAREST)).any(1)
    return Examples(unit(sentences.means - settings.centre)[kept], labels[kept])


def score(settings: Settings, classifiers: Classifiers, examples: Examples, names: Floats, sentences: Line) -> Scores:
    """All scores of the sentences; ``names`` are unit vectors (n_aspects, dim), zeros for an aspect without one."""
    share, last = settings.mean_share, classifiers.attended[:, :-1]
    directions = np.concatenate([direction(classifiers.attention), direction(classifiers.attended), names])
    attention, word, name = np.split(product(sentences.words, directions), 3, axis=1)
    norm = np.sqrt((last * last).sum(-1))
    attended = _pooled(attention_weights(attention, settings.attention_temperature), word * norm, sentences)
    attended = (1 - share) * attended + share * product(sentences.means, last) + classifiers.attended[:, -1]
    whole = product(sentences.means, classifiers.whole[:, :-1]) + classifiers.whole[:, -1]
    of_word, of_name = (
        _pooled(attention_weights(values, settings.word_temperature), values, sentences) for values in (word, name)
    )
    temperature = settings.nearest_temperature
    alike = np.exp(temperature * (product(unit(sentences.means - settings.centre), examples.vectors) - 1))
    nearest = 1 + np.log(product(alike, examples.labels.T) + 1e-30) / temperature
    negative = 1 + np.log(product(alike, 1 - examples.labels.T) + 1e-7) / temperature  # there may be none
    return Scores(attended, whole, of_word, nearest, negative, of_name)


def attention_weights(cosines: Floats, temperature: float) -> Floats:
    """Weights before they are divided by their sum over a sentence; nothing overflows: cosines end at 1."""
    return np.exp(np.float32(temperature) * (cosines - 1))


def direction(classifiers: Floats) -> Floats:
    """The unit vector whose product with a word's vector says how much the word speaks for the aspect."""
    return unit(classifiers[:, :-1])


def _pooled(weights: Floats, values: Floats, sentences: Line) -> Floats:
    """Weighted means over the words of each sentence. (n_words, n) -> (n_sentences, n)"""
    return sentences.sums(weights * values) / sentences.sums(weights)


def _with_constant(vectors: Floats) -> Floats:
    return np.concatenate([vectors, np.ones_like(vectors[..., :1])], -1)
