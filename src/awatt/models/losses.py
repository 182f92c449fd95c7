"""Losses that a method can be trained with, each a mean over the queries."""

from __future__ import annotations

import torch
from torch import Tensor


def normalised(targets: Tensor, dtype: torch.dtype) -> Tensor:
    """Targets that sum to one over the classes, as in the paper; all zero for a query without any aspect."""
    numbers = targets.to(dtype)
    return numbers / numbers.sum(-1, keepdim=True).clamp(min=1)


def squared_error(probabilities: Tensor, targets: Tensor) -> Tensor:
    """Eq. 8 against the normalised targets. probabilities and targets (..., n_query, n_way)"""
    return ((probabilities - normalised(targets, probabilities.dtype)) ** 2).sum(-1).mean()


def cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Negative log-likelihood of the class under a softmax, averaged if a query has several classes."""
    return -(scores.log_softmax(-1) * normalised(targets, scores.dtype)).sum(-1).mean()


def relation_error(probabilities: Tensor, targets: Tensor) -> Tensor:
    """Squared error with target 1 for every class of a query and 0 for the others (Sung et al. 2018, Eq. 2)."""
    return ((probabilities - targets.to(probabilities.dtype)) ** 2).sum(-1).mean()
