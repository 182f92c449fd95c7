"""The detector's model as pure functions: what examples say about a sentence, and the probability made from it.

They take numpy arrays or torch tensors alike, so training differentiates the same lines that detection runs.
`docs/model.md` explains them with formulas and a worked example.

An aspect is a class-balanced ridge classifier, in closed form, that sees a sentence *through its own attention*, in the
manner of Proto-AWATT. A first classifier on mean vectors says which words speak for the aspect; with these words
weighted up, every example is represented anew, as this aspect sees it, and the classifier is fitted again. Ordinary
review sentences, the *background*, are weak negatives, and scores are measured in standard deviations of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from awatt.arrays import Array, Integers, like, namespace, product, segment_sums, unit, weighted_sums

ATTENTION_PASSES = 2
MAX_NEAREST = 40  # examples per aspect that a sentence is compared with one by one: bounds the time with thousands
_MAX_NUMBERS = 4e6  # held at once while fitting: bounds the memory with many aspects
_PREFIX = "parameter."


class Parameters(NamedTuple):
    """The learned numbers, the same for every aspect. What must be positive is stored as its logarithm."""

    mean_share: Array  # logit of the share that the mean vector has in an attended sentence vector
    log_attention: Array  # sharpness of the attention that represents a sentence
    log_word: Array  # sharpness of the maximum over words
    log_nearest: Array  # sharpness of the maximum over examples
    log_penalty: Array  # ridge penalty of the first classifier
    log_attended_penalty: Array  # and of those fitted on attended vectors
    log_background: Array  # weight of the background, where the positives and the negatives weigh 1 each
    centre: Array  # (dim,) subtracted from mean vectors before they are compared with examples
    weight_1: Array  # (n_features, hidden) of the small network
    bias_1: Array
    weight_2: Array
    bias_2: Array
    weight_3: Array
    bias_3: Array

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Array]) -> Parameters:
        """From the tensors of a saved model."""
        return cls(**{name: tensors[_PREFIX + name] for name in cls._fields})

    def to_tensors(self) -> dict[str, Array]:
        """For saving."""
        return {_PREFIX + name: value for name, value in self._asdict().items()}


class EmbeddedSentences(NamedTuple):
    """Sentences as unit token vectors. Each distinct token is stored once: its vector is the same everywhere."""

    tokens: Array  # (n_distinct, dim)
    rows: Integers  # (n_tokens,) the row of ``tokens`` for each token
    means: Array  # (n_sentences, dim) unit mean vectors
    lengths: Integers  # (n_sentences,) in tokens

    def sums(self, values: Array) -> Array:
        """Sums over each sentence of numbers per distinct token. (n_distinct, n) -> (n_sentences, n)"""
        return segment_sums(values[self.rows], self.lengths)

    def pool(self, weights: Array, values: Array) -> Array:
        """Weighted means over each sentence. (n_distinct, n) both -> (n_sentences, n)"""
        return self.sums(weights * values) / self.sums(weights)


def embed(tokens: Array, norms: Array, rows: Integers, lengths: Integers) -> EmbeddedSentences:
    """From unit token vectors (n_distinct, dim) and the weight of each in a mean vector (n_distinct, 1)."""
    return EmbeddedSentences(tokens, rows, unit(segment_sums((tokens * norms)[rows], lengths)), lengths)


class RawScores(NamedTuple):
    """How much a sentence speaks for each aspect, in five ways. (n_sentences, n_aspects) each"""

    attended: Array  # the classifier on the sentence as the aspect sees it
    whole: Array  # the first classifier, on the mean vector
    word: Array  # the words that speak for the aspect most
    nearest: Array  # similarity to the aspect's nearest examples
    name: Array  # the words most similar to the aspect's name


class Features(NamedTuple):
    """What the small network sees of each (sentence, aspect). (n_sentences, n_aspects) each"""

    attended: Array  # the raw scores above the background's mean, in its standard deviations
    typical: Array  # the attended score where 0 is a left-out example of other aspects and 1 one of this aspect
    whole: Array
    word: Array
    nearest: Array
    lead: Array  # the attended score minus that of the best other aspect
    nearest_lead: Array  # the same for similarity to examples
    own: Array  # mean attended score of the aspect's examples, each left out
    others: Array  # mean attended score of the other aspects' examples, each left out
    n_examples: Array  # logarithm
    n_aspects: Array  # logarithm
    name: Array
    name_fits: Array  # whether the examples' words are similar to the name, too


class Fitted(NamedTuple):
    """What examples teach about the aspects: arrays only, no text."""

    whole_classifier: Array  # (n_aspects, dim + 1) on mean vectors; the constant is last
    attention_classifier: Array  # (n_aspects, dim + 1) directs the attention through which the last one sees
    classifier: Array  # (n_aspects, dim + 1) on attended vectors
    names: Array  # (n_aspects, dim) unit vectors of the names, zeros where there is none
    example_vectors: Array  # (n_nearest, dim) centred mean vectors of examples
    example_labels: Array  # (n_nearest, n_aspects)
    own_mean: Array  # (n_aspects,) left-out scores of the aspect's own examples
    other_mean: Array  # (n_aspects,) and of the other aspects'
    log_count: Array  # (n_aspects,) logarithm of the number of examples
    name_fit: Array  # (n_aspects,) score of the examples for the name, on the background's scale
    background_mean: RawScores  # (n_aspects,) each
    background_std: RawScores  # (n_aspects,) each

    def to_arrays(self) -> dict[str, Any]:
        """For saving, under flat names, in single precision."""
        flat = {name: value for name, value in self._asdict().items() if not isinstance(value, RawScores)}
        for name in ("background_mean", "background_std"):
            flat |= {f"{name}.{score}": value for score, value in getattr(self, name)._asdict().items()}
        return {name: np.asarray(value, dtype=np.float32) for name, value in flat.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Fitted:
        """What ``to_arrays`` gave, or what format 1 saved."""
        if "facts" in arrays:
            arrays = _from_format_1(arrays)
        nested = ("background_mean", "background_std")
        flat = {name: arrays[name] for name in cls._fields if name not in nested}
        return cls(**flat, **{name: RawScores(*(arrays[f"{name}.{s}"] for s in RawScores._fields)) for name in nested})


def _from_format_1(arrays: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"whole": "whole_classifier", "looking": "attention_classifier", "attended": "classifier"}
    renamed |= {"names": "names", "near": "example_vectors", "labels": "example_labels"}
    found = {new: arrays[old] for old, new in renamed.items()}
    found |= dict(zip(("own_mean", "other_mean", "log_count", "name_fit"), arrays["facts"], strict=True))
    for old, new in (("level", "background_mean"), ("spread", "background_std")):
        found |= {f"{new}.{name}": row for name, row in zip(RawScores._fields, arrays[old], strict=True)}
    return found


# ---- learning from examples


def fit(
    parameters: Parameters, examples: EmbeddedSentences, labels: Array, background: EmbeddedSentences, names: Array
) -> Fitted:
    """Learn from labels (n_examples, n_aspects) of 0 and 1, at least one 1 per aspect, and names (n_aspects, dim)."""
    xp = namespace(labels)
    n_examples, n_aspects = labels.shape
    parts = _groups_of_aspects(n_examples, n_aspects, examples.means.shape[1])
    found = [_fit_classifiers(parameters, examples, labels[:, part], background) for part in parts]
    classifiers = _Classifiers(*(xp.concatenate(column) for column in zip(*found, strict=True)))
    kept = _first_of_each_aspect(np.asarray(labels), MAX_NEAREST)
    nothing = 0 * labels[0]
    draft = Fitted(
        whole_classifier=classifiers.whole,
        attention_classifier=classifiers.attention,
        classifier=classifiers.last,
        names=names,
        example_vectors=unit(examples.means - parameters.centre)[kept],
        example_labels=labels[kept],
        own_mean=nothing,
        other_mean=nothing,
        log_count=nothing,
        name_fit=nothing,
        background_mean=RawScores(*[nothing] * 5),
        background_std=RawScores(*[nothing] * 5),
    )
    mean, std = _mean_and_std(raw_scores(parameters, draft, background))
    counts, n_others = labels.sum(0), (1 - labels).sum(0)
    left_out = classifiers.left_out.T  # (n_examples, n_aspects)
    other_mean = (left_out * (1 - labels)).sum(0) / xp.where(n_others > 0, n_others, 1)
    name_score = (raw_scores(parameters, draft, examples).name * labels).sum(0) / counts
    return draft._replace(
        own_mean=(left_out * labels).sum(0) / counts,
        # A lone aspect has no others: the background stands in for them.
        other_mean=xp.where(n_others > 0, other_mean, mean.attended),
        log_count=xp.log(counts),
        name_fit=xp.where((names != 0).any(-1), (name_score - mean.name) / std.name, nothing),
        background_mean=mean,
        background_std=std,
    )


def _groups_of_aspects(n_examples: int, n_aspects: int, dim: int) -> list[slice]:
    size = max(1, int(_MAX_NUMBERS / (n_examples * dim)))
    return [slice(first, first + size) for first in range(0, n_aspects, size)]


def _first_of_each_aspect(labels: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """Which examples are among the first ``count`` of any of their aspects. (n_examples,)"""
    rank = np.cumsum(labels, 0) * labels
    return np.asarray(((rank > 0) & (rank <= count)).any(1))


def _mean_and_std(scores: RawScores) -> tuple[RawScores, RawScores]:
    """Over the sentences; the deviation is never 0, not even for names where there are none."""
    means = [score.mean(0) for score in scores]
    deviations = [(((score - mean) ** 2).mean(0) + 1e-6) ** 0.5 for score, mean in zip(scores, means, strict=True)]
    return RawScores(*means), RawScores(*deviations)


class _Classifiers(NamedTuple):
    whole: Array  # (n_aspects, dim + 1)
    attention: Array
    last: Array
    left_out: Array  # (n_aspects, n_examples) what the last one says of each example when it is left out


def _fit_classifiers(
    parameters: Parameters, examples: EmbeddedSentences, labels: Array, background: EmbeddedSentences
) -> _Classifiers:
    xp = namespace(labels)
    n_examples, n_aspects = labels.shape
    n_background = len(background.lengths)
    others = 1 - labels
    # Positives weigh 1 in all, negatives 1, the background exp(log_background).
    weights = labels / labels.sum(0) + others / xp.where(others.sum(0) > 0, others.sum(0), 1)
    share = xp.exp(parameters.log_background) / n_background
    weights = xp.concatenate([weights, share * like(np.ones((n_background, n_aspects)), labels)]).T
    targets = xp.concatenate([2 * labels - 1, like(-np.ones((n_background, n_aspects)), labels)]).T
    vectors = _with_constant(xp.concatenate([examples.means, background.means]))[None]
    whole, left_out = _ridge(vectors, targets, weights, xp.exp(parameters.log_penalty))
    attention = last = whole
    for number in range(ATTENTION_PASSES):
        attention = last
        vectors = xp.concatenate([_attended_vectors(parameters, each, attention) for each in (examples, background)], 1)
        n_left_out = n_examples if number == ATTENTION_PASSES - 1 else 0
        last, left_out = _ridge(vectors, targets, weights, xp.exp(parameters.log_attended_penalty), n_left_out)
    return _Classifiers(whole, attention, last, left_out)


def _ridge(vectors: Array, targets: Array, weights: Array, penalty: Array, n_left_out: int = 0) -> tuple[Array, Array]:
    """Weighted least squares with a penalty; for the first rows also the prediction of the fit without that row.

    vectors (n or 1, rows, dim), targets and weights (n, rows) -> (n, dim), (n, n_left_out). The smaller of the two
    closed forms is solved, in double precision.
    """
    xp = namespace(vectors)
    rows, dim = vectors.shape[-2:]
    x, y, w = (_cast(values, xp.float64) for values in (vectors, targets, weights))
    first = slice(n_left_out)
    if rows < dim:
        eye = like(np.eye(rows), w)
        system, right = x @ xp.swapaxes(x, -1, -2) + (penalty / w)[..., None] * eye, eye[:, first] + 0 * y[:, :1, None]
        solved = xp.linalg.solve(system, xp.concatenate([y[..., None], right], -1))
        dual, inverse = solved[..., 0], solved[:, first, 1:]
        found = (dual[:, None] @ x)[:, 0]
        left_out = y[:, first] - dual[:, first] / (inverse * eye[first, first]).sum(-1)
    else:
        weighted = xp.swapaxes(x * w[..., None], -1, -2)  # (n, dim, rows)
        system = weighted @ x + penalty * like(np.eye(dim), w)
        solved = xp.linalg.solve(system, xp.concatenate([weighted @ y[..., None], weighted[..., first]], -1))
        found = solved[..., 0]
        leverage = (x[:, first] * xp.swapaxes(solved[..., 1:], -1, -2)).sum(-1)
        predicted = (x[:, first] @ found[..., None])[..., 0]
        left_out = (predicted - leverage * y[:, first]) / (1 - leverage + 1e-9)
    return _cast(found, vectors.dtype), _cast(left_out, vectors.dtype)


def _cast(values: Array, dtype: Any) -> Array:
    return values.astype(dtype) if isinstance(values, np.ndarray) else values.to(dtype)


def _with_constant(vectors: Array) -> Array:
    xp = namespace(vectors)
    return xp.concatenate([vectors, xp.ones_like(vectors[..., :1])], -1)


# ---- attention


def _direction(classifiers: Array) -> Array:
    """Unit vectors whose cosine with a token says how much the token speaks for each aspect. (n_aspects, dim)"""
    return unit(classifiers[:, :-1])


def _attention(cosines: Array, log_sharpness: Array) -> Array:
    """Weights before they are divided by their sum over a sentence; cosines end at 1, so nothing overflows."""
    xp = namespace(cosines)
    return xp.exp(xp.exp(log_sharpness) * (cosines - 1))


def _mean_share(parameters: Parameters) -> Array:
    """The share of the mean vector in an attended vector; the rest is what the aspect attends to."""
    xp = namespace(parameters.mean_share)
    return 1 / (1 + xp.exp(-parameters.mean_share))


def _attended_vectors(parameters: Parameters, sentences: EmbeddedSentences, classifiers: Array) -> Array:
    """Each sentence as each aspect sees it. (n_aspects, n_sentences, dim + 1)"""
    weights = _attention(sentences.tokens @ _direction(classifiers).T, parameters.log_attention)
    totals = sentences.sums(weights).T[..., None]
    share = _mean_share(parameters)
    rows = sentences.rows
    attended = weighted_sums(weights[rows], sentences.tokens[rows], sentences.lengths) / totals
    return _with_constant((1 - share) * attended + share * sentences.means[None])


def attention(parameters: Parameters, fitted: Fitted, sentences: EmbeddedSentences) -> Array:
    """The share of each token in each aspect's attention; a sentence's sum to 1. (n_tokens, n_aspects)"""
    cosines = product(sentences.tokens, _direction(fitted.classifier))
    weights = _attention(cosines, parameters.log_word)
    sentence_of = np.repeat(np.arange(len(sentences.lengths)), sentences.lengths)
    return weights[sentences.rows] / sentences.sums(weights)[sentence_of]


# ---- from a sentence to a probability


def raw_scores(parameters: Parameters, fitted: Fitted, sentences: EmbeddedSentences) -> RawScores:
    """The five scores before they are put on the background's scale."""
    xp = namespace(sentences.tokens)
    n_aspects = len(fitted.names)
    last = fitted.classifier[:, :-1]
    directions = xp.concatenate([_direction(fitted.attention_classifier), _direction(fitted.classifier), fitted.names])
    cosines = product(sentences.tokens, directions)  # one product for all three
    attention_cosine, word, name = (cosines[:, n * n_aspects : (n + 1) * n_aspects] for n in range(3))
    norm = (last * last).sum(-1) ** 0.5
    share = _mean_share(parameters)
    looked_at = sentences.pool(_attention(attention_cosine, parameters.log_attention), word * norm)
    temperature = xp.exp(parameters.log_nearest)
    similarity = product(unit(sentences.means - parameters.centre), fitted.example_vectors)
    closeness = product(xp.exp(temperature * (similarity - 1)), fitted.example_labels.T)
    whole_weights, whole_constant = fitted.whole_classifier[:, :-1], fitted.whole_classifier[:, -1]
    return RawScores(
        attended=(1 - share) * looked_at + share * product(sentences.means, last) + fitted.classifier[:, -1],
        whole=product(sentences.means, whole_weights) + whole_constant,
        word=sentences.pool(_attention(word, parameters.log_word), word),
        nearest=1 + xp.log(closeness + 1e-30) / temperature,
        name=sentences.pool(_attention(name, parameters.log_word), name),
    )


def features(parameters: Parameters, fitted: Fitted, sentences: EmbeddedSentences) -> Features:
    """The evidence for each (sentence, aspect), scaled so that most of it lies between -1 and 1."""
    xp = namespace(sentences.tokens)
    raw = raw_scores(parameters, fitted, sentences)
    scaled = RawScores(
        *(
            (score - mean) / std / 3
            for score, mean, std in zip(raw, fitted.background_mean, fitted.background_std, strict=True)
        )
    )
    zero = 0 * scaled.attended  # gives the numbers of an aspect a row per sentence
    distance = fitted.own_mean - fitted.other_mean + zero
    return Features(
        attended=scaled.attended,
        typical=xp.clip((raw.attended - fitted.other_mean) / xp.where(distance > 0.2, distance, 0.2), -3, 4),
        whole=scaled.whole,
        word=scaled.word,
        nearest=scaled.nearest,
        lead=_lead(raw.attended),
        nearest_lead=_lead(scaled.nearest),
        own=fitted.own_mean + zero,
        others=fitted.other_mean + zero,
        n_examples=(fitted.log_count + zero) / 2,
        n_aspects=np.log(zero.shape[-1]) / 2 + zero,
        name=scaled.name * like((fitted.names != 0).any(-1), zero),
        name_fits=(fitted.name_fit + zero) / 3,
    )


def _lead(values: Array) -> Array:
    """How far each aspect is ahead of the best other one."""
    if values.shape[-1] == 1:
        return 0 * values
    xp = namespace(values)
    best = xp.amax(values, -1)[..., None]
    tied = (values == best).sum(-1)[..., None] > 1
    second = xp.where(tied, best, xp.amax(xp.where(values == best, -1e9, values), -1)[..., None])
    return xp.where(values == best, values - second, values - best)


def logits(parameters: Parameters, evidence: Features, keep: Array | None = None) -> Array:
    """A small network, the same for every aspect. -> (n_sentences, n_aspects)

    ``keep`` (n_features,) of 0 and 1 leaves features out, for the ablation.
    """
    xp = namespace(evidence.attended)
    stacked = xp.stack(list(evidence), -1)
    hidden = (stacked if keep is None else stacked * keep).reshape(-1, len(evidence))
    for weight, bias in ((parameters.weight_1, parameters.bias_1), (parameters.weight_2, parameters.bias_2)):
        hidden = (product(hidden, weight.T) + bias).clip(min=0)
    return (product(hidden, parameters.weight_3.T) + parameters.bias_3).reshape(evidence.attended.shape)
