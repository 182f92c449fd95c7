"""The network for detectors that were given neither reviews nor names: from evidence to the logit of an aspect.

Without both there is nothing to condition on. On the benchmark's episodes, which have neither, this free network is
better by about one point of F1 than the monotone one (results/LOG.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from awatt.arrays import Array, namespace
from awatt.aspect_model.evidence import FEATURES
from awatt.aspect_model.network import PAIRS

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
    if isinstance(scores, np.ndarray):  # in double precision: rounding must not show what else is in the batch
        network = PlainNetwork(*(array.astype(np.float64) for array in network))
    columns = scores.reshape(len(scores), -1)
    parts = [_read_block(network, columns[:, first : first + PAIRS]) for first in range(0, columns.shape[1], PAIRS)]
    return (namespace(scores).concatenate(parts) if parts else columns[0]).reshape(scores.shape[1:])


def _read_block(network: PlainNetwork, hidden: Array) -> Array:
    """(n_features, n_pairs) -> (n_pairs,)"""
    for weight, bias in ((network.weight_1, network.bias_1), (network.weight_2, network.bias_2)):
        hidden = weight.T @ hidden
        hidden += bias[:, None]
        hidden = np.maximum(hidden, 0, out=hidden) if isinstance(hidden, np.ndarray) else hidden.clip(min=0)
    return (network.weight_3.T @ hidden)[0] + network.bias_3
