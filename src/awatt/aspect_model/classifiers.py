"""An aspect's classifiers: ridge regression in closed form that reads a sentence through its own attention.

A first classifier on mean vectors says which words speak for the aspect. With these words weighted up, every labelled
sentence is represented anew, as this aspect sees it, and the classifier is fitted again, twice, the first time roughly
(as in Proto-AWATT, the attention follows from the examples). Ordinary sentences, the *background*, are weak negatives.

Everything here is a pure function of numpy arrays. `docs/explanation/model.md` has the formulas and a worked example.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import Integers, product, ranges, segment_sums, starts, unit
from awatt.aspect_model.ridge import approach_ridge, ridge, shared_ridge
from awatt.aspect_model.vectors import EmbeddedSentences, ReadSentences, join

Floats = npt.NDArray[np.float32]

PLENTY = 100  # labelled sentences, from which on the penalty falls with their number
PENALTY_POWER = 0.6
NEAREST = 40  # examples per aspect that a sentence is compared with one by one; bounds the time with thousands
_CELLS = 24e6  # numbers held at once while fitting; bounds the memory with many aspects
_BLOCK = 64  # sentences that are padded together


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

    sentences: EmbeddedSentences
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
    word: Floats  # how strongly the most relevant words indicate the aspect
    nearest: Floats  # likeness to the aspect's nearest examples
    negative: Floats  # likeness to the nearest labelled sentences without the aspect
    name: Floats  # likeness of words to the aspect's name


class Examples(NamedTuple):
    """Labelled sentences that are kept to compare with one by one."""

    vectors: Floats  # (n_kept, dim) mean vectors, centred
    labels: Floats  # (n_kept, n_aspects)


def balanced_rows(sentences: EmbeddedSentences, labels: Floats) -> LabelledRows:
    """Positives weigh 1 together, negatives too, for each aspect that has any."""
    others = 1 - labels
    weights = labels / np.maximum(labels.sum(0), 1) + others / np.maximum(others.sum(0), 1)
    return LabelledRows(sentences, 2 * labels - 1, weights)


def background_rows(settings: Settings, background: EmbeddedSentences, n_aspects: int) -> LabelledRows:
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
    sentences, targets, weights = zip(*groups, strict=True)
    whole = shared_ridge([_with_constant(each.means) for each in sentences], targets, weights, settings.penalty)
    rows = LabelledRows(join(sentences), np.concatenate(targets), np.concatenate(weights))
    n_rows, dim = len(rows.targets), whole.shape[1]
    seen = np.empty((min(len(whole), max(1, int(_CELLS / (n_rows * dim)))), n_rows, dim), dtype=np.float32)
    attention, attended = np.empty_like(whole), np.empty_like(whole)
    left_out = np.empty_like(targets[0])
    for first in range(0, len(whole), len(seen)):
        part = slice(first, first + len(seen))
        attention[part], attended[part], left_out[:, part] = _fit_part(
            settings, rows, whole[part], part, seen, len(left_out)
        )
    return Classifiers(whole, attention, attended), left_out


def _fit_part(
    settings: Settings, rows: LabelledRows, whole: Floats, part: slice, seen: Floats, n_left_out: int
) -> tuple[Floats, Floats, Floats]:
    """The last two classifiers of some aspects, and left-out scores; ``seen`` is memory for what they see."""
    targets, weights, seen = rows.targets[:, part].T, rows.weights[:, part].T, seen[: len(whole)]
    attend(settings, rows.sentences, whole, seen)
    attention = approach_ridge(seen, targets, weights, settings.attended_penalty, whole)
    attend(settings, rows.sentences, attention, seen)
    attended, left_out = ridge(seen, targets, weights, settings.attended_penalty, n_left_out)
    return attention, attended, left_out.T


def attend(settings: Settings, sentences: EmbeddedSentences, classifiers: Floats, seen: Floats) -> None:
    """Each sentence as each aspect sees it, a constant last: into ``seen`` (n_aspects, n_sentences, dim + 1)."""
    weights = attention_weights(sentences.tokens @ direction(classifiers).T, settings.attention_temperature)
    lengths, first = sentences.lengths, starts(sentences.lengths)
    seen[..., -1] = 1
    order = np.argsort(lengths, kind="stable")
    for block in np.split(order, range(_BLOCK, len(order), _BLOCK)):  # of similar length, padded
        places = np.arange(lengths[block].max())
        inside = places < lengths[block][:, None]
        tokens = sentences.rows[first[block][:, None] + np.where(inside, places, 0)]
        shares = weights[tokens] * inside[..., None]
        shares *= np.float32(1 - settings.mean_share) / shares.sum(1, keepdims=True)
        attended = np.swapaxes(shares, 1, 2) @ sentences.tokens[tokens]  # (n_block, n_aspects, dim)
        attended += np.float32(settings.mean_share) * sentences.means[block][:, None]
        seen[:, block, :-1] = np.swapaxes(attended, 0, 1)


def shown_attention(settings: Settings, classifiers: Classifiers, sentences: ReadSentences) -> Floats:
    """The share of each token in what a user is shown; a sentence's sum to 1. (n_tokens, n_aspects)"""
    cosines = sentences.cosines(direction(classifiers.attended))
    return attention_shares(sentences.spread(attention_weights(cosines, settings.word_temperature)), sentences.lengths)


def attention_shares(weights: Floats, lengths: Integers) -> Floats:
    """Each token's share of its sentence's sum. (n_tokens, n_aspects)"""
    found: Floats = weights / np.repeat(segment_sums(weights, lengths), lengths, axis=0)
    return found


def shown_weights(n_aspects: int) -> slice:
    """Of the columns of `weigh_tokens`: the weights that `shown_attention` takes."""
    return slice(n_aspects, 2 * n_aspects)


def keep_examples(settings: Settings, sentences: EmbeddedSentences, labels: Floats) -> Examples:
    """The first examples of each aspect in the given order, and as many sentences without any."""
    groups = [*labels.T, labels.sum(1) == 0]
    kept = np.unique(np.concatenate([np.flatnonzero(group)[:NEAREST] for group in groups]))
    return Examples(unit(sentences.means[kept] - settings.centre), labels[kept])


def score(
    settings: Settings, classifiers: Classifiers, examples: Examples, names: Floats, sentences: ReadSentences
) -> Scores:
    """All scores of the sentences; ``names`` are unit vectors (n_aspects, dim), zeros for an aspect without one."""
    weighed = weigh_tokens(settings, classifiers, sentences.cosines(token_directions(classifiers, names)))
    return score_sums(settings, classifiers, examples, sentences.sums(weighed), sentences.means)


def name_scores_of_examples(settings: Settings, names: Floats, sentences: EmbeddedSentences, labels: Floats) -> Floats:
    """The mean score by the name of the sentences that mention each aspect. (n_aspects,)"""
    cosines, first = product(sentences.tokens, names), starts(sentences.lengths)
    found = np.zeros(len(names), dtype=np.float32)
    for aspect in range(len(names)):
        own = np.flatnonzero(labels[:, aspect])
        lengths = sentences.lengths[own]
        speaks = cosines[sentences.rows[ranges(first[own], lengths)], aspect][:, None]
        weights = attention_weights(speaks, settings.word_temperature)
        weighted, totals = segment_sums(weights * speaks, lengths), segment_sums(weights, lengths)
        found[aspect] = (weighted / totals).mean()
    return found


def token_directions(classifiers: Classifiers, names: Floats) -> Floats:
    """What tokens are compared with: each aspect's attention, what speaks for it, its name. (3 * n_aspects, dim)"""
    return np.concatenate([direction(classifiers.attention), direction(classifiers.attended), names])


def weigh_tokens(settings: Settings, classifiers: Classifiers, cosines: Floats) -> Floats:
    """What a sentence's scores are sums of, from cosines with `token_directions`. (n_tokens, 6 * n_aspects)

    Three weights of each token for each aspect (by the aspect's attention, by how much the token speaks for the
    aspect, and by its likeness to the name), then each weight times what it weighs.
    """
    attention, word, name = np.split(cosines, 3, axis=1)
    last = classifiers.attended[:, :-1]
    weights = np.concatenate(
        [
            attention_weights(attention, settings.attention_temperature),
            attention_weights(word, settings.word_temperature),
            attention_weights(name, settings.word_temperature),
        ],
        1,
    )
    return np.concatenate(
        [weights, weights * np.concatenate([word * np.sqrt((last * last).sum(-1)), word, name], 1)], 1
    )


def score_sums(settings: Settings, classifiers: Classifiers, examples: Examples, sums: Floats, means: Floats) -> Scores:
    """All scores from the sums of `weigh_tokens` over each sentence, and the sentences' mean vectors."""
    share, n_aspects = settings.mean_share, len(classifiers.whole)
    weights, weighted = np.split(sums, 2, axis=1)
    attended, of_word, of_name = np.split(weighted / weights, 3, axis=1)
    of_means = product(means, np.concatenate([classifiers.attended[:, :-1], classifiers.whole[:, :-1]]))
    attended = (1 - share) * attended + share * of_means[:, :n_aspects] + classifiers.attended[:, -1]
    whole = of_means[:, n_aspects:] + classifiers.whole[:, -1]
    temperature = settings.nearest_temperature
    alike = np.exp(temperature * (product(unit(means - settings.centre), examples.vectors) - 1)).astype(np.float64)
    # hardly more than one aspect per example: no product of all pairs
    numbers, aspects = np.divmod(np.flatnonzero(examples.labels > 0), n_aspects)
    order = np.argsort(aspects, kind="stable")
    of_own = np.add.reduceat(alike[:, numbers[order]], np.searchsorted(aspects[order], np.arange(n_aspects)), axis=1)
    of_others = np.maximum(alike.sum(1, keepdims=True) - of_own, 0)
    nearest = 1 + np.log(of_own.astype(np.float32) + 1e-30) / temperature
    negative = 1 + np.log(of_others.astype(np.float32) + 1e-7) / temperature  # there may be none
    return Scores(attended, whole, of_word, nearest, negative, of_name)


def attention_weights(cosines: Floats, temperature: float) -> Floats:
    """Weights before they are divided by their sum over a sentence; nothing overflows: cosines end at 1."""
    return np.exp(np.float32(temperature) * (cosines - 1))


def direction(classifiers: Floats) -> Floats:
    """The unit vector whose product with a word's vector says how much the word speaks for the aspect."""
    return unit(classifiers[:, :-1])


def _with_constant(vectors: Floats) -> Floats:
    return np.concatenate([vectors, np.ones_like(vectors[..., :1])], -1)
