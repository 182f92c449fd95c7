"""Small pure functions that models are made of. They take numpy or torch arrays alike."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

#: A numpy array or a torch tensor. Shapes stand in the docstrings.
Array = Any


def namespace(array: Array) -> Any:
    """The module that computes with ``array``: numpy or torch."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def softmax(scores: Array) -> Array:
    """Softmax over the last axis."""
    if not isinstance(scores, np.ndarray):
        return namespace(scores).softmax(scores, -1)  # one pass, where the lines below take four
    weights = np.exp(scores - np.amax(scores, -1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def masked_softmax(scores: Array, mask: Array) -> Array:
    """Softmax over the last axis that gives no weight to what the mask leaves out."""
    # Not -inf: a row without any valid place would turn into NaN; here it turns into an even spread.
    return softmax(namespace(scores).where(mask, scores, -1e9))
