"""The evidence for each (sentence, aspect): some thirty numbers, of which a small network makes the score.

Scores are measured on two scales: that of the *background*, ordinary sentences that come with the model, and, where
the user's own reviews are given, that of the *file*: where a sentence lies among some hundred of its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from awatt.aspect_model.classifiers import (
    Classifiers,
    Examples,
    Floats,
    Scores,
    Settings,
    background_rows,
    balanced_rows,
    fit_classifiers,
    follow_labels,
    keep_examples,
    name_scores_of_examples,
    score,
)
from awatt.aspect_model.vectors import EmbeddedSentences, ReadSentences

FEATURES = (
    "attended",  # the scores above the background's mean, in its standard deviations
    "whole",
    "word",
    "nearest",
    "negative",
    "name",
    "typical",  # the attended score on a scale where 0 is a labelled sentence without the aspect and 1 one with it
    "lead",  # the attended score before the best other aspect's, or behind it
    "nearest_lead",
    "negative_lead",  # likeness to the nearest examples before that to the nearest negatives
    "positives",  # facts of the aspect, from here on: left-out scores of its positives, mean
    "negatives",  # and of its negatives
    "positives_spread",  # their standard deviations
    "negatives_spread",
    "n_positives",
    "n_negatives",
    "n_off_topic",
    "n_aspects",
    "has_name",
    "name_fits",  # whether the examples' words are like the name
    "attended_in_file",  # from here on: the scores above the file's mean, in its standard deviations
    "whole_in_file",
    "word_in_file",
    "nearest_in_file",
    "name_in_file",
    "rank_in_file",  # the share of the file with a higher attended score, as a logarithm
    "file_level",  # the file's mean of the attended score on the background's scale
    "file_spread",
    "n_file",  # size of the file's sample; 0 without one
)
_PLACES = {name: number for number, name in enumerate(FEATURES)}


class Scale(NamedTuple):
    """Mean and standard deviation of each score over some sentences; every array of the scores is (1, n_aspects)."""

    mean: Scores
    spread: Scores


class Facts(NamedTuple):
    """What left-out predictions and counts say of each aspect; every array is (n_aspects,)."""

    positives: Floats
    negatives: Floats
    positives_spread: Floats
    negatives_spread: Floats
    n_positives: Floats
    n_negatives: Floats
    n_off_topic: Floats
    has_name: Floats
    name_fits: Floats


class LearnedEvidence(NamedTuple):
    """What is kept of labelled sentences, names and the file: arrays only, no text."""

    classifiers: Classifiers
    examples: Examples
    names: Floats  # (n_aspects, dim)
    facts: Facts
    background: Scale
    file: Scale
    file_attended: Floats  # (n_file, n_aspects) the file's attended scores, each column in ascending order


def learn_evidence(
    settings: Settings,
    sentences: EmbeddedSentences,
    labels: Floats,
    background: EmbeddedSentences,
    names: Floats,
    file: ReadSentences | None = None,
) -> LearnedEvidence:
    """From labels (n_sentences, n_aspects) of 0 and 1, at least one 1 per aspect, and names (n_aspects, dim)."""
    n_aspects = labels.shape[1]
    groups = [balanced_rows(sentences, labels), background_rows(settings, background, n_aspects)]
    classifiers, left_out = fit_classifiers(follow_labels(settings, len(labels)), groups)
    examples = keep_examples(settings, sentences, labels)
    ordinary = measure_scale(score(settings, classifiers, examples, names, background))
    of_examples = name_scores_of_examples(settings, names, sentences, labels)
    facts = _facts(labels, left_out, names, of_examples, ordinary)
    in_file, attended = ordinary, np.zeros((0, n_aspects), np.float32)
    if file is not None:
        of_file = score(settings, classifiers, examples, names, file)
        in_file, attended = measure_scale(of_file), np.sort(of_file.attended, 0)
    return LearnedEvidence(classifiers, examples, names, facts, ordinary, in_file, attended)


def measure_scale(scores: Scores) -> Scale:
    """Mean and standard deviation over the sentences; the latter is never 0."""
    means: list[Floats] = [values.mean(0, keepdims=True) for values in scores]
    spreads: list[Floats] = [np.sqrt(values.var(0, keepdims=True) + 1e-6) for values in scores]
    return Scale(Scores(*means), Scores(*spreads))


def on_scale(scores: Scores, scale: Scale, name: str) -> Floats:
    """One score in standard deviations above the mean, divided by 3, so that all evidence has about the same size."""
    values, mean, spread = (getattr(each, name) for each in (scores, *scale))
    found: Floats = (values - mean) / spread / np.float32(3)
    return found


def _facts(labels: Floats, left_out: Floats, names: Floats, of_examples: Floats, ordinary: Scale) -> Facts:
    others = 1 - labels
    has_name = (names != 0).any(-1).astype(np.float32)
    positives, positives_spread = _mean_and_spread(left_out, labels)
    negatives, negatives_spread = _mean_and_spread(left_out, others)
    # A lone aspect has no negatives: the background stands for them.
    lone = others.sum(0) == 0
    negatives = np.where(lone, ordinary.mean.attended[0], negatives)
    fits = (of_examples - ordinary.mean.name[0]) / ordinary.spread.name[0] / np.float32(3)
    off_topic = np.full(labels.shape[1], (labels.sum(1) == 0).sum())
    return Facts(
        positives,
        negatives,
        positives_spread,
        negatives_spread,
        np.log(labels.sum(0)),
        np.log1p(others.sum(0)),
        np.log1p(off_topic),
        has_name,
        fits * has_name,
    )


def _mean_and_spread(values: Floats, where: Floats) -> tuple[Floats, Floats]:
    """Over the rows where the flag is 1; zeros where there are none. (n, n_aspects) -> (n_aspects,) twice"""
    count = np.maximum(where.sum(0), 1)
    mean = (values * where).sum(0) / count
    return mean, np.sqrt((((values - mean) ** 2) * where).sum(0) / count)


def compute_evidence(settings: Settings, learned: LearnedEvidence, sentences: ReadSentences) -> Floats:
    """The evidence in the order of ``FEATURES``. (n_sentences, n_aspects, n_features)"""
    return arrange_evidence(learned, score(settings, learned.classifiers, learned.examples, learned.names, sentences))


def arrange_evidence(learned: LearnedEvidence, raw: Scores) -> Floats:
    """The evidence from scores. (n_sentences, n_aspects, n_features)"""
    found = np.zeros((*raw.attended.shape, len(FEATURES)), dtype=np.float32)
    for name, values in {**_of_aspects(learned), **_of_sentences(learned, raw)}.items():
        found[..., _PLACES[name]] = values
    return found


def stack_evidence(learned: LearnedEvidence, raw: Scores, names: Sequence[str]) -> Floats:
    """Some features, one after the other. (n_names, n_sentences, n_aspects)"""
    found = np.zeros((len(names), *raw.attended.shape), dtype=np.float32)
    features = _of_sentences(learned, raw)
    if not features.keys() >= set(names):
        features |= _of_aspects(learned)
    for place, name in zip(found, names, strict=True):
        if name in features:
            place[:] = features[name]
    return found


def _of_sentences(learned: LearnedEvidence, raw: Scores) -> dict[str, Any]:
    """What differs from sentence to sentence, by name; that of the file only if there is one.

    Each is (n_sentences, n_aspects).
    """
    facts, background, n_file = learned.facts, learned.background, len(learned.file_attended)
    distance = np.maximum(facts.positives - facts.negatives, 0.2)
    nearest = on_scale(raw, background, "nearest")
    columns: dict[str, Any] = {
        "attended": on_scale(raw, background, "attended"),
        "whole": on_scale(raw, background, "whole"),
        "word": on_scale(raw, background, "word"),
        "nearest": nearest,
        "negative": on_scale(raw, background, "negative"),
        "name": on_scale(raw, background, "name") * facts.has_name,
        "typical": np.clip((raw.attended - facts.negatives) / distance, -3, 4),
        "lead": _lead(raw.attended),
        "nearest_lead": _lead(nearest),
        "negative_lead": 3 * (raw.nearest - raw.negative),
    }
    if n_file:
        for name in ("attended", "whole", "word", "nearest", "name"):
            columns[f"{name}_in_file"] = on_scale(raw, learned.file, name)
        columns["name_in_file"] *= facts.has_name
        higher = np.stack(
            [n_file - np.searchsorted(*pair) for pair in zip(learned.file_attended.T, raw.attended.T, strict=True)], 1
        )
        columns["rank_in_file"] = -np.log((higher + 0.5) / (n_file + 1)) / 3
    return columns


def _of_aspects(learned: LearnedEvidence) -> dict[str, Any]:
    """What is the same for all sentences, by name; that of the file only if there is one. (n_aspects,) or a number"""
    facts, background, n_file = learned.facts, learned.background, len(learned.file_attended)
    columns: dict[str, Any] = {
        "positives": facts.positives,
        "negatives": facts.negatives,
        "positives_spread": facts.positives_spread,
        "negatives_spread": facts.negatives_spread,
        "n_positives": facts.n_positives / 2,
        "n_negatives": facts.n_negatives / 4,
        "n_off_topic": facts.n_off_topic / 4,
        "n_aspects": np.float32(np.log(len(facts.positives)) / 2),
        "has_name": facts.has_name,
        "name_fits": facts.name_fits,
    }
    if n_file:
        columns |= {
            "file_level": on_scale(learned.file.mean, background, "attended"),
            "file_spread": learned.file.spread.attended / background.spread.attended - 1,
            "n_file": np.float32(np.log(n_file) / 5),
        }
    return columns


def _lead(values: Floats) -> Floats:
    """How far each aspect is before the best other one; 0 for a lone aspect."""
    if values.shape[1] == 1:
        return np.zeros_like(values)
    ordered = np.partition(values, -2, axis=1)
    best, second = ordered[:, -1:], ordered[:, -2:-1]
    return np.where(values == best, values - second, values - best)
