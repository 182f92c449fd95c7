"""The small network, the same for every aspect: from the evidence for a (sentence, aspect) to a logit.

It is *monotone*: a higher score never lowers the probability. What the labels and the file say of an aspect only moves
the thresholds of its units. On kinds of text that it was not trained on a free network ranks sentences worse than a
single score does (results/LOG.md); this one cannot reverse a ranking.

The functions take numpy or torch arrays alike: training differentiates the same lines that detection runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from awatt.arrays import Array, logistic, namespace
from awatt.aspect_model.evidence import FEATURES

SCORES = (  # what differs from sentence to sentence; a higher one never makes an aspect less likely
    "attended",
    "whole",
    "word",
    "nearest",
    "name",
    "typical",
    "lead",
    "nearest_lead",
    "negative_lead",
    "attended_in_file",
    "whole_in_file",
    "word_in_file",
    "nearest_in_file",
    "name_in_file",
    "rank_in_file",
)
FACTS = (  # what is the same for all sentences
    "positives",
    "negatives",
    "positives_spread",
    "negatives_spread",
    "n_positives",
    "n_negatives",
    "n_off_topic",
    "n_aspects",
    "has_name",
    "name_fits",
    "file_level",
    "file_spread",
    "n_file",
)
SCORE_COLUMNS = [FEATURES.index(name) for name in SCORES]
FACT_COLUMNS = [FEATURES.index(name) for name in FACTS]
PAIRS = 1024  # of a sentence and an aspect that are computed together: their hidden units fit into the CPU's cache
_RAREST = 3e-3  # share of a file, below which shares are not told apart


class Layer(NamedTuple):
    """inputs @ weights + what the aspect's facts and the file add."""

    weights: Array  # (n_units, n_inputs), none below 0
    facts: Array  # (n_units, n_facts)
    file: Array  # (n_units, n_detectors)
    bias: Array  # (n_units,)


class Network(NamedTuple):
    """All its numbers."""

    first: Layer
    second: Layer
    last: Layer  # one unit, which reads the second layer and the scores
    detectors: Array  # (n_detectors, n_scores) soft counts: in what share of the file's sentences is each of them on
    detector_bias: Array  # (n_detectors,)
    lowest_facts: Array  # (n_facts,) facts are kept within what training has seen
    highest_facts: Array  # (n_facts,)


class AspectBiases(NamedTuple):
    """What facts and file add to each layer: all that the network keeps of an aspect. (n_aspects, n_units) each"""

    first: Array
    second: Array
    last: Array


def condition(network: Network, evidence: Array, file_evidence: Array | None) -> AspectBiases:
    """From evidence of any one sentence (1, n_aspects, n_features), whose facts count, and of the file's sentences."""
    xp = namespace(evidence)
    facts = evidence[0][:, FACT_COLUMNS]
    facts = xp.minimum(xp.maximum(facts, network.lowest_facts), network.highest_facts)
    added = [facts @ layer.facts.T + layer.bias for layer in (network.first, network.second, network.last)]
    if file_evidence is not None:
        on = file_evidence[..., SCORE_COLUMNS] @ network.detectors.T + network.detector_bias
        shares = xp.log(logistic(on).mean(0) + _RAREST) + 3  # (n_aspects, n_detectors)
        added = [
            bias + shares @ layer.file.T
            for bias, layer in zip(added, (network.first, network.second, network.last), strict=True)
        ]
    return AspectBiases(*added)


def compute_logits(network: Network, biases: AspectBiases, evidence: Array) -> Array:
    """(n_sentences, n_aspects, n_features) -> (n_sentences, n_aspects)"""
    xp = namespace(evidence)
    return read_scores(network, biases, xp.moveaxis(evidence[..., SCORE_COLUMNS], -1, 0))


def read_scores(network: Network, biases: AspectBiases, scores: Array) -> Array:
    """The same from the scores alone, one after the other. (n_scores, n_sentences, n_aspects)"""
    n_sentences, n_aspects = scores.shape[1:]
    size = max(1, PAIRS // n_aspects)
    parts = [_read_block(network, biases, scores[:, first : first + size]) for first in range(0, n_sentences, size)]
    return namespace(scores).concatenate(parts) if parts else scores[0]


def _read_block(network: Network, biases: AspectBiases, scores: Array) -> Array:
    """Units come first: what is done with half of them is then done on neighbours."""
    shape = scores.shape[1:]
    scores = scores.reshape(len(scores), -1)
    hidden = _activate(_add(network.first.weights @ scores, biases.first, shape))
    hidden = _activate(_add(network.second.weights @ hidden, biases.second, shape))
    last, n_units = network.last.weights, len(hidden)
    return _add(last[:, :n_units] @ hidden + last[:, n_units:] @ scores, biases.last, shape).reshape(shape)


def _add(values: Array, biases: Array, shape: Sequence[int]) -> Array:
    """(n_units, n_pairs), (n_aspects, n_units) -> (n_units, n_pairs)"""
    by_pair = values.reshape(len(values), *shape)  # the same numbers
    by_pair += biases.T[:, None]
    return values


def _activate(values: Array) -> Array:
    """Half of the units level off, the others go on: both shapes are needed, as no weight is below 0."""
    curved, straight = values[: len(values) // 2], values[len(values) // 2 :]
    if isinstance(values, np.ndarray):  # in place
        np.tanh(curved, out=curved)
        np.maximum(straight, 0.1 * straight, out=straight)
        return values
    xp = namespace(values)
    return xp.concatenate([xp.tanh(curved), xp.maximum(straight, 0.1 * straight)])
