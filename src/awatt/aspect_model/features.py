"""What examples say about a sentence: a few numbers for each (sentence, aspect), and the probability made from them.

Pure functions of arrays, numpy or torch alike: training differentiates the same lines that detection runs.

An aspect is a ridge classifier, in closed form and class-balanced, that looks at a sentence *through its own
attention*, in the manner of Proto-AWATT: a first classifier on mean vectors says which words speak for the aspect; with
these words weighed up, every example is represented anew, as this aspect sees it, and the classifier is fitted again.
Ordinary review sentences, the *background*, are weak negatives, and the scale on which everything is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from awatt.arrays import Array, Integers, like, namespace, product, segment_sums, unit, weighted_sums

#: The learned numbers: temperatures, penalties and the small network; logarithms of what must be above 0.
Parameters = Mapping[str, Array]

PASSES = 2  # of attention
FEATURES = (
    "attended",  # the classifier's score above the background's, in its standard deviations
    "typical",  # the same on a scale where 0 is an example of other aspects and 1 one of this, each left out
    "whole",  # the first classifier, which sees the whole sentence
    "word",  # how much the words speak for the aspect that do so most
    "nearest",  # likeness to the aspect's nearest examples
    "lead",  # the score before the best other aspect's, or behind it
    "nearest_lead",  # the same of likeness
    "own",  # how well the aspect's examples are found, each left out
    "others",  # and how well the other aspects' are told apart
    "n_examples",
    "n_aspects",
    "name",  # likeness of words to the aspect's name
    "name_fits",  # whether the examples' words are like it, too
)
_NEAREST = 40  # examples of an aspect that are compared with one by one: bounds the time with thousands
_MANY = 4e6  # numbers that are held at once while fitting: bounds the memory with many aspects


class Line(NamedTuple):
    """Sentences as unit vectors. A word that comes often may stand once: what it says is the same everywhere."""

    words: Array  # (n_words, dim)
    places: Integers  # (n_tokens,) which word each token is
    means: Array  # (n_sentences, dim)
    lengths: Integers  # (n_sentences,) in tokens

    def sums(self, values: Array) -> Array:
        """Of numbers of the words, over the tokens of each sentence. (n_words, n) -> (n_sentences, n)"""
        return segment_sums(values[self.places], self.lengths)


class Fitted(NamedTuple):
    """What is kept of the examples: arrays only."""

    whole: Array  # (n_aspects, dim + 1) the classifier of mean vectors, its constant last
    looking: Array  # (n_aspects, dim + 1) the one whose attention the last one was fitted with
    attended: Array  # (n_aspects, dim + 1) the last one
    names: Array  # (n_aspects, dim) zeros where there is no name
    near: Array  # (n_near, dim) mean vectors of examples, centred
    labels: Array  # (n_near, n_aspects)
    facts: Array  # (4, n_aspects) own, others, n_examples, name_fits
    level: Array  # (5, n_aspects) means of the background's scores
    spread: Array  # (5, n_aspects) and their standard deviations


def read_line(words: Array, loudness: Array, places: Integers, lengths: Integers) -> Line:
    """Unit vectors of words (n_words, dim), and how much each counts in a sentence's mean (n_words, 1)."""
    return Line(words, places, unit(segment_sums((words * loudness)[places], lengths)), lengths)


def fit(parameters: Parameters, examples: Line, labels: Array, background: Line, names: Array) -> Fitted:
    """Learn from labels (n_examples, n_aspects) of 0 and 1, at least one 1 an aspect, and names (n_aspects, dim)."""
    n_examples, n_aspects = labels.shape
    group = max(1, int(_MANY / (n_examples * examples.means.shape[1])))
    parts = [slice(first, first + group) for first in range(0, n_aspects, group)]
    columns = [_classifiers(parameters, examples, labels[:, part], background) for part in parts]
    xp = namespace(labels)
    whole, looking, attended, left_out = (xp.concatenate(column) for column in zip(*columns, strict=True))
    # The first of each aspect.
    rank = np.cumsum(np.asarray(labels), 0) * np.asarray(labels)
    kept = ((rank > 0) & (rank <= _NEAREST)).any(1)
    near = unit(examples.means - parameters["centre"])[kept]
    zeros = 0 * labels[:1]
    draft = Fitted(whole, looking, attended, names, near, labels[kept], facts=zeros, level=zeros, spread=zeros)
    ordinary = scores(parameters, draft, background)  # (5, n_background, n_aspects)
    level = ordinary.mean(1)
    spread = (((ordinary - level[:, None]) ** 2).mean(1) + 1e-6) ** 0.5  # never 0: without names there is none
    counts, others = labels.sum(0), 1 - labels
    own = (left_out.T * labels).sum(0) / counts
    # A lone aspect has no others: the background stands for them.
    n_others = others.sum(0)
    told = (left_out.T * others).sum(0) / xp.where(n_others > 0, n_others, 1)
    told = xp.where(n_others > 0, told, level[0])
    of_names = (scores(parameters, draft, examples)[-1] * labels).sum(0) / counts
    fits = xp.where((names != 0).any(-1), (of_names - level[-1]) / spread[-1], 0 * own)
    return draft._replace(facts=xp.stack([own, told, xp.log(counts), fits]), level=level, spread=spread)


def _classifiers(
    parameters: Parameters, examples: Line, labels: Array, background: Line
) -> tuple[Array, Array, Array, Array]:
    """``whole``, ``looking``, ``attended``, and what the last one says of each example when it is left out."""
    xp = namespace(labels)
    n_examples, n_aspects = labels.shape
    n_background = len(background.lengths)
    others = 1 - labels
    weights = labels / labels.sum(0) + others / xp.where(others.sum(0) > 0, others.sum(0), 1)
    share = xp.exp(parameters["log_background"]) / n_background
    weights = xp.concatenate([weights, share * like(np.ones((n_background, n_aspects)), labels)]).T
    truth = xp.concatenate([2 * labels - 1, like(-np.ones((n_background, n_aspects)), labels)]).T
    seen = _with_constant(xp.concatenate([examples.means, background.means]))[None]
    whole, left_out = _ridge(seen, truth, weights, xp.exp(parameters["log_penalty"]))
    looking = attended = whole
    for number in range(PASSES):
        looking = attended
        seen = xp.concatenate([_seen(parameters, line, looking) for line in (examples, background)], 1)
        last = n_examples if number == PASSES - 1 else 0
        attended, left_out = _ridge(seen, truth, weights, xp.exp(parameters["log_attended_penalty"]), last)
    return whole, looking, attended, left_out


def _ridge(seen: Array, truth: Array, weights: Array, penalty: Array, n_left_out: int = 0) -> tuple[Array, Array]:
    """Weighted least squares with a penalty; for the first rows also what the fit without that row says of it.

    seen (n or 1, rows, dim), truth and weights (n, rows) -> (n, dim), (n, n_left_out). The smaller of the two closed
    forms is solved, in double precision.
    """
    xp = namespace(seen)
    rows, dim = seen.shape[-2:]
    x, y, w = (_cast(values, xp.float64) for values in (seen, truth, weights))
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
    return _cast(found, seen.dtype), _cast(left_out, seen.dtype)


def _cast(values: Array, dtype: Any) -> Array:
    return values.astype(dtype) if isinstance(values, np.ndarray) else values.to(dtype)


def _with_constant(vectors: Array) -> Array:
    xp = namespace(vectors)
    return xp.concatenate([vectors, xp.ones_like(vectors[..., :1])], -1)


def _direction(classifiers: Array) -> Array:
    """What a token's vector is multiplied with to know how much it speaks for each aspect: a cosine."""
    return unit(classifiers[:, :-1])


def _attention(speaks: Array, log_temperature: Array) -> Array:
    """Weights before they are divided by their sum over a sentence; nothing overflows: cosines end at 1."""
    xp = namespace(speaks)
    return xp.exp(xp.exp(log_temperature) * (speaks - 1))


def _share(parameters: Parameters) -> Array:
    """How much of a sentence's representation is its mean vector, the rest what the aspect looks at."""
    xp = namespace(parameters["mean_share"])
    return 1 / (1 + xp.exp(-parameters["mean_share"]))


def _seen(parameters: Parameters, line: Line, looking: Array) -> Array:
    """Each sentence as each aspect sees it. (n_aspects, n_sentences, dim + 1)"""
    weights = _attention(line.words @ _direction(looking).T, parameters["log_attention"])
    totals = line.sums(weights).T[..., None]
    share = _share(parameters)
    looked_at = weighted_sums(weights[line.places], line.words[line.places], line.lengths) / totals
    return _with_constant((1 - share) * looked_at + share * line.means[None])


def scores(parameters: Parameters, fitted: Fitted, line: Line) -> Array:
    """The five scores that are measured on the background's scale. (5, n_sentences, n_aspects)"""
    xp = namespace(line.words)
    share = _share(parameters)
    last = fitted.attended[:, :-1]
    directions = xp.concatenate([_direction(fitted.looking), _direction(fitted.attended), fitted.names])
    looking, word, name = _thirds(product(line.words, directions))  # one product for all three
    size = (last * last).sum(-1) ** 0.5
    looked_at = _pooled(_attention(looking, parameters["log_attention"]), word * size, line)
    attended = (1 - share) * looked_at + share * product(line.means, last) + fitted.attended[:, -1]
    whole = product(line.means, fitted.whole[:, :-1]) + fitted.whole[:, -1]
    of_word, of_name = (_pooled(_attention(values, parameters["log_word"]), values, line) for values in (word, name))
    temperature = xp.exp(parameters["log_nearest"])
    alike = product(unit(line.means - parameters["centre"]), fitted.near)
    nearest = 1 + xp.log(product(xp.exp(temperature * (alike - 1)), fitted.labels.T) + 1e-30) / temperature
    return xp.stack([attended, whole, of_word, nearest, of_name])


def _thirds(values: Array) -> tuple[Array, Array, Array]:
    third = values.shape[-1] // 3
    return values[:, :third], values[:, third : 2 * third], values[:, 2 * third :]


def _pooled(weights: Array, values: Array, line: Line) -> Array:
    return line.sums(weights * values) / line.sums(weights)


def features(parameters: Parameters, fitted: Fitted, line: Line) -> Array:
    """The evidence for each (sentence, aspect), in the order of ``FEATURES``. (n_sentences, n_aspects, n_features)"""
    xp = namespace(line.words)
    raw = scores(parameters, fitted, line)
    attended, whole, word, nearest, name = (raw - fitted.level[:, None]) / fitted.spread[:, None] / 3
    own, others, n_examples, fits = (fact + 0 * attended for fact in fitted.facts)
    distance = own - others
    typical = (raw[0] - others) / xp.where(distance > 0.2, distance, 0.2)
    named = like((fitted.names != 0).any(-1), attended)
    columns = {
        "attended": attended,
        "typical": xp.clip(typical, -3, 4),
        "whole": whole,
        "word": word,
        "nearest": nearest,
        "lead": _lead(raw[0]),
        "nearest_lead": _lead(nearest),
        "own": own,
        "others": others,
        "n_examples": n_examples / 2,
        "n_aspects": np.log(attended.shape[-1]) / 2 + 0 * attended,
        "name": name * named,
        "name_fits": fits / 3,
    }
    return xp.stack([columns[column] for column in FEATURES], -1)


def _lead(values: Array) -> Array:
    """How far each aspect is before the best other one."""
    if values.shape[-1] == 1:
        return 0 * values
    xp = namespace(values)
    best = xp.amax(values, -1)[..., None]
    second = xp.amax(xp.where(values == best, -1e9, values), -1)[..., None]
    return xp.where(values == best, values - second, values - best)


def logits(parameters: Parameters, evidence: Array) -> Array:
    """A small network, the same for every aspect. (n_sentences, n_aspects, n_features) -> (n_sentences, n_aspects)"""
    hidden = evidence.reshape(-1, evidence.shape[-1])
    for layer in (1, 2):
        hidden = (product(hidden, parameters[f"weight_{layer}"].T) + parameters[f"bias_{layer}"]).clip(min=0)
    return (product(hidden, parameters["weight_3"].T) + parameters["bias_3"]).reshape(evidence.shape[:-1])


def attention(parameters: Parameters, fitted: Fitted, line: Line) -> Array:
    """How much of each aspect's attention each token has; a sentence's sum to 1. (n_tokens, n_aspects)"""
    weights = _attention(product(line.words, _direction(fitted.attended)), parameters["log_word"])
    owner = np.repeat(np.arange(len(line.lengths)), line.lengths)
    return weights[line.places] / line.sums(weights)[owner]
