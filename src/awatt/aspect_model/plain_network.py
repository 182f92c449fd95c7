"""The network for detectors that were given no reviews: from the evidence for a (sentence, aspect) to a logit.

Without a file there is nothing to condition on. On the benchmark's episodes, which have none, this free network is
better by about one point of F1 than the monotone one (results/LOG.md).
"""

from __future__ import annotations

from typing import NamedTuple

from awatt.arrays import Array, namespace, product
from awatt.aspect_model.evidence import FEATURES

PLAIN_FEATURES = (
    "attended",
    "typical",
    "whole",
    "word",
    "nearest",
    "lead",
    "nearest_lead",
    "positives",
    "negatives",
    "n_positives",
    "n_aspects",
    "name",
    "name_fits",
)
PLAIN_COLUMNS = [FEATURES.index(name) for name in PLAIN_FEATURES]


class PlainNetwork(NamedTuple):
    """Two hidden layers, the same for every aspect."""

    weight_1: Array  # (n_features, hidden)
    bias_1: Array
    weight_2: Array
    bias_2: Array
    weight_3: Array
    bias_3: Array


def compute_plain_logits(network: PlainNetwork, evidence: Array) -> Array:
    """(n_sentences, n_aspects, n_features) -> (n_sentences, n_aspects). Numpy or torch alike."""
    return read_plain_scores(network, namespace(evidence).moveaxis(evidence[..., PLAIN_COLUMNS], -1, 0))


def read_plain_scores(network: PlainNetwork, scores: Array) -> Array:
    """The same from the features alone, one after the other. (n_features, n_sentences, n_aspects)"""
    hidden = scores.reshape(len(scores), -1)
    for weight, bias in ((network.weight_1, network.bias_1), (network.weight_2, network.bias_2)):
        hidden = (product(weight.T, hidden.T) + bias[:, None]).clip(min=0)
    return (product(network.weight_3.T, hidden.T) + network.bias_3[:, None]).reshape(scores.shape[1:])
