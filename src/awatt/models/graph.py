"""Our variant of the Graph Network: labels spread from the examples to a query over learned edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.config import check_at_least
from awatt.encoders.base import Encoded
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class GraphConfig:
    """Number of features that a graph convolution adds to a node, and width of the network that weights the edges."""

    n_features: int = 48
    n_labels: int = 8  # label features per class
    edge: int = 48

    def __post_init__(self) -> None:
        check_at_least(self, "model", n_features=1, n_labels=1, edge=1)


class Nodes(NamedTuple):
    """The nodes of a graph: features of the sentence, and label features per class."""

    features: Tensor  # (..., nodes, n_features)
    labels: Tensor  # (..., nodes, n_way, n_labels)

    def means(self, weights: Tensor) -> Nodes:
        """Weighted means of the nodes, one per receiving node. weights (..., receivers, nodes)"""
        labels = weights @ self.labels.flatten(-2)
        return Nodes(weights @ self.features, labels.view(*labels.shape[:-1], *self.labels.shape[-2:]))

    def as_graphs(self) -> Nodes:
        """Each node in a graph of its own. (..., nodes, 1, ...)"""
        return Nodes(self.features[..., None, :], self.labels[..., None, :, :])

    def in_graphs(self) -> Nodes:
        """The same nodes in every graph. (..., 1, nodes, ...)"""
        return Nodes(self.features[..., None, :, :], self.labels[..., None, :, :, :])

    def interpolate(self, other: Nodes, share: Tensor) -> Nodes:
        """Linear interpolation: these nodes at share 0, ``other`` at share 1. share (..., nodes)"""
        share = share[..., None]
        return Nodes(self.features.lerp(other.features, share), self.labels.lerp(other.labels, share[..., None]))


class Edges(nn.Module):
    """Weights of the edges, learned from the absolute differences of two nodes and therefore symmetric."""

    def __init__(self, n_features: int, n_labels: int, hidden: int) -> None:
        super().__init__()
        self.features = nn.Linear(n_features, hidden)
        self.labels = nn.Linear(n_labels, hidden, bias=False)
        self.similarity = nn.Sequential(
            nn.LeakyReLU(),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(),
            nn.Linear(hidden, 1, bias=False),
        )

    def forward(self, these: Nodes, those: Nodes) -> Tensor:
        """Edge weights before the softmax. (..., these, those)"""
        features = (these.features[..., :, None, :] - those.features[..., None, :, :]).abs()
        # Squared differences of the labels, summed over the classes, so that their order does not matter.
        common = torch.einsum("...inl,...jnl->...ijl", these.labels, those.labels)
        own = [(side.labels**2).sum(-2) for side in (these, those)]
        labels = own[0][..., :, None, :] + own[1][..., None, :, :] - 2 * common
        return self.similarity(self.features(features) + self.labels(labels))[..., 0]


class Layer(nn.Module):
    """A linear map of nodes. The features contribute equally to the labels of every class."""

    def __init__(self, n_features: int, n_labels: int, config: GraphConfig, bias: bool) -> None:
        super().__init__()
        self.features = nn.Linear(n_features, config.n_features, bias=bias)
        self.labels = nn.Linear(n_labels, config.n_labels, bias=bias)
        self.labels_from_features = nn.Linear(n_features, config.n_labels, bias=False)

    def forward(self, nodes: Nodes) -> Nodes:
        from_features = self.labels_from_features(nodes.features)[..., None, :]
        return Nodes(self.features(nodes.features), self.labels(nodes.labels) + from_features)


def append_features(old: Tensor, new: Tensor) -> Tensor:
    """Concatenate features of the same nodes; ``old`` is repeated if ``new`` has one copy of them per graph."""
    return torch.cat([old.expand(*new.shape[:-1], -1), new], -1)


class Convolution(nn.Module):
    """Combine each node with the mean message of its neighbours, and append the result to its features."""

    def __init__(self, n_features: int, n_labels: int, config: GraphConfig) -> None:
        super().__init__()
        self.own = Layer(n_features, n_labels, config, bias=True)
        self.told = Layer(
            n_features, n_labels, config, bias=False
        )  # messages; linear, so it may be applied before the mean

    def forward(self, nodes: Nodes, messages: Nodes) -> Nodes:
        own = self.own(nodes)
        features = F.leaky_relu(own.features + messages.features)
        labels = F.leaky_relu(own.labels + messages.labels)
        return Nodes(append_features(nodes.features, features), append_features(nodes.labels, labels))


class Graph(FewShotModel):
    """Our variant of Garcia & Bruna 2018 (``GraphNetwork``). https://arxiv.org/abs/1711.04043

    Each query forms a graph with all examples. The paper appends the one-hot label to a node's features and reads one
    number per class from the last layer, which ties the weights to one N and one order of the classes. Here each class
    has its own label channels, and all classes share the weights. There are two layers and no batch norm.
    """

    config_type = GraphConfig
    config: GraphConfig

    def __init__(self, dim: int, config: GraphConfig) -> None:
        super().__init__(dim, config)
        self.edges = Edges(dim, 1, config.edge)
        self.convolution = Convolution(dim, 1, config)
        n_labels = 1 + config.n_labels
        self.last_edges = Edges(dim + config.n_features, n_labels, config.edge)
        # No features and no bias: they would add the same number to every class.
        self.readout = nn.Linear(2 * n_labels, 1, bias=False)

    def summarise(self, support: Encoded) -> Tensor:
        """One vector per example. (..., n_way, n_shot, dim)"""
        return sentence_vectors(support)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        n_way, n_shot = summary.shape[-3:-1]
        owner = torch.arange(n_way, device=summary.device).repeat_interleave(n_shot)
        return self._class_scores(sentence_vectors(query), summary.flatten(-3, -2), owner, n_way)

    def scores_each(self, query: Encoded, summaries: Sequence[Tensor]) -> Tensor:
        counts = torch.tensor([summary.shape[-2] for summary in summaries])
        owner = torch.arange(len(summaries)).repeat_interleave(counts).to(summaries[0].device)
        examples = torch.cat([summary.flatten(-3, -2) for summary in summaries], -2)
        return self._class_scores(sentence_vectors(query), examples, owner, len(summaries))

    def _class_scores(self, queries: Tensor, support: Tensor, owner: Tensor, n_way: int) -> Tensor:
        query, examples = self.first_layer(*self.nodes(queries, support, owner, n_way))
        # The last layer is only needed at the query.
        received = examples.means(self.last_edges(query, examples).softmax(-1))
        return self.readout(append_features(query.labels, received.labels))[..., 0, :, 0]

    def nodes(self, queries: Tensor, support: Tensor, owner: Tensor, n_way: int) -> tuple[Nodes, Nodes]:
        """Query nodes with uniform labels, and example nodes with one-hot labels.

        queries (..., n_query, dim), support (..., n_examples, dim), owner (n_examples,) the class of each example
        """
        unknown = queries.new_full((*queries.shape[:-1], n_way, 1), 1 / n_way)
        known = torch.eye(n_way, dtype=support.dtype, device=support.device)[owner][..., None]
        return Nodes(queries, unknown), Nodes(support, known.expand(*support.shape[:-2], -1, -1, -1))

    def first_layer(self, queries: Nodes, examples: Nodes) -> tuple[Nodes, Nodes]:
        """First convolution: each query, and the examples in its graph. (..., n_query, 1 or n_examples, ...)

        Messages between examples are the same in all graphs and are computed once. In a query's graph they are mixed
        with the query's message by the query's share of the softmax. No node sends a message to itself.
        """
        outer = self.edges(queries, examples)  # (..., n_query, n_examples)
        inner = self.edges(examples, examples)
        itself = torch.eye(inner.shape[-1], dtype=torch.bool, device=inner.device)
        inner = inner.masked_fill(itself, torch.finfo(inner.dtype).min)
        share = (outer - inner.logsumexp(-1)[..., None, :]).sigmoid()
        from_queries, from_examples = self.convolution.told(queries), self.convolution.told(examples)
        between_examples = from_examples.means(inner.softmax(-1))
        to_examples = between_examples.in_graphs().interpolate(from_queries.as_graphs(), share)
        to_queries = from_examples.means(outer.softmax(-1))
        return self.convolution(queries, to_queries).as_graphs(), self.convolution(examples.in_graphs(), to_examples)
