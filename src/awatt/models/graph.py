"""Graph Network: labels travel from the examples to a query over learned edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.encoders.base import Encoded
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class GraphConfig:
    """Sizes of what a graph convolution adds to a node, and of the network that weighs the edges."""

    n_features: int = 48
    n_labels: int = 8  # for each class
    edge: int = 48


class Nodes(NamedTuple):
    """What is known of the nodes of a graph: in general, and of each class."""

    features: Tensor  # (..., nodes, n_features)
    labels: Tensor  # (..., nodes, n_way, n_labels)

    def means(self, weights: Tensor) -> Nodes:
        """Weighted means of these nodes. weights (..., receivers, nodes)"""
        labels = weights @ self.labels.flatten(-2)
        return Nodes(weights @ self.features, labels.view(*labels.shape[:-1], *self.labels.shape[-2:]))

    def as_graphs(self) -> Nodes:
        """Every node as a graph of its own. (..., nodes, 1, ...)"""
        return Nodes(self.features[..., None, :], self.labels[..., None, :, :])

    def in_graphs(self) -> Nodes:
        """The same nodes in every graph. (..., 1, nodes, ...)"""
        return Nodes(self.features[..., None, :, :], self.labels[..., None, :, :, :])

    def towards(self, other: Nodes, share: Tensor) -> Nodes:
        """On the way from these nodes to others. share (..., nodes)"""
        share = share[..., None]
        return Nodes(self.features.lerp(other.features, share), self.labels.lerp(other.labels, share[..., None]))


class Edges(nn.Module):
    """How much two nodes have to tell each other: learned from how they differ, so the same from both sides."""

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
        """Weights before their softmax. (..., these, those)"""
        features = (these.features[..., :, None, :] - those.features[..., None, :, :]).abs()
        # Squared differences of the labels, summed over the classes, so that their order does not matter.
        common = torch.einsum("...inl,...jnl->...ijl", these.labels, those.labels)
        own = [(side.labels**2).sum(-2) for side in (these, those)]
        labels = own[0][..., :, None, :] + own[1][..., None, :, :] - 2 * common
        return self.similarity(self.features(features) + self.labels(labels))[..., 0]


class Layer(nn.Module):
    """A linear map of nodes. The features add the same to the labels of every class."""

    def __init__(self, n_features: int, n_labels: int, config: GraphConfig, bias: bool) -> None:
        super().__init__()
        self.features = nn.Linear(n_features, config.n_features, bias=bias)
        self.labels = nn.Linear(n_labels, config.n_labels, bias=bias)
        self.labels_from_features = nn.Linear(n_features, config.n_labels, bias=False)

    def forward(self, nodes: Nodes) -> Nodes:
        from_features = self.labels_from_features(nodes.features)[..., None, :]
        return Nodes(self.features(nodes.features), self.labels(nodes.labels) + from_features)


def beside(few: Tensor, more: Tensor) -> Tensor:
    """More numbers for the same nodes, which may be in more graphs now."""
    return torch.cat([few.expand(*more.shape[:-1], -1), more], -1)


class Convolution(nn.Module):
    """What a node is and the mean of what its neighbours tell it; the result is put beside what it was."""

    def __init__(self, n_features: int, n_labels: int, config: GraphConfig) -> None:
        super().__init__()
        self.own = Layer(n_features, n_labels, config, bias=True)
        self.told = Layer(n_features, n_labels, config, bias=False)  # linear, so as good before the mean as after it

    def forward(self, nodes: Nodes, messages: Nodes) -> Nodes:
        own = self.own(nodes)
        features = F.leaky_relu(own.features + messages.features)
        labels = F.leaky_relu(own.labels + messages.labels)
        return Nodes(beside(nodes.features, features), beside(nodes.labels, labels))


class Graph(FewShotModel):
    """A variant of our own of Garcia & Bruna 2018 (``GraphNetwork``). https://arxiv.org/abs/1711.04043

    Each query is a node of a graph with all examples. The paper writes the one-hot label among a node's features and
    reads one number a class from the last layer, which ties the weights to one N and one order of the classes. Here
    the labels are channels of their own, one for each class, and all classes share the weights. There are two layers
    and no batch norm.
    """

    config_type = GraphConfig
    config: GraphConfig

    def __init__(self, dim: int, config: GraphConfig) -> None:
        super().__init__(dim, config)
        self.edges = Edges(dim, 1, config.edge)
        self.convolution = Convolution(dim, 1, config)
        n_labels = 1 + config.n_labels
        self.last_edges = Edges(dim + config.n_features, n_labels, config.edge)
        # Without features and bias: they would add the same to every class.
        self.readout = nn.Linear(2 * n_labels, 1, bias=False)

    def summarise(self, support: Encoded) -> Tensor:
        """Every example as a vector. (..., n_way, n_shot, dim)"""
        return sentence_vectors(support)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        n_way, n_shot = summary.shape[-3:-1]
        owner = torch.arange(n_way, device=summary.device).repeat_interleave(n_shot)
        return self._answers(sentence_vectors(query), summary.flatten(-3, -2), owner, n_way)

    def scores_each(self, query: Encoded, summaries: Sequence[Tensor]) -> Tensor:
        counts = torch.tensor([summary.shape[-2] for summary in summaries])
        owner = torch.arange(len(summaries)).repeat_interleave(counts).to(summaries[0].device)
        examples = torch.cat([summary.flatten(-3, -2) for summary in summaries], -2)
        return self._answers(sentence_vectors(query), examples, owner, len(summaries))

    def _answers(self, queries: Tensor, support: Tensor, owner: Tensor, n_way: int) -> Tensor:
        asking, examples = self.first_layer(*self.nodes(queries, support, owner, n_way))
        # Of the last layer only what the query gets is wanted.
        answers = examples.means(self.last_edges(asking, examples).softmax(-1))
        return self.readout(beside(asking.labels, answers.labels))[..., 0, :, 0]

    def nodes(self, queries: Tensor, support: Tensor, owner: Tensor, n_way: int) -> tuple[Nodes, Nodes]:
        """The queries, to which all classes are alike, and the examples with their labels.

        queries (..., n_query, dim), support (..., n_examples, dim), owner (n_examples,) the class of each
        """
        unknown = queries.new_full((*queries.shape[:-1], n_way, 1), 1 / n_way)
        known = torch.eye(n_way, dtype=support.dtype, device=support.device)[owner][..., None]
        return Nodes(queries, unknown), Nodes(support, known.expand(*support.shape[:-2], -1, -1, -1))

    def first_layer(self, asking: Nodes, examples: Nodes) -> tuple[Nodes, Nodes]:
        """After a convolution: each query, and the examples in its graph. (..., n_query, 1 or n_examples, ...)

        What the examples tell each other is the same in all graphs and is computed once; in a query's graph it gives
        way to what the query tells, by the share that the query has of the softmax. No node tells itself anything.
        """
        outer = self.edges(asking, examples)  # (..., n_query, n_examples)
        inner = self.edges(examples, examples)
        itself = torch.eye(inner.shape[-1], dtype=torch.bool, device=inner.device)
        inner = inner.masked_fill(itself, torch.finfo(inner.dtype).min)
        share = (outer - inner.logsumexp(-1)[..., None, :]).sigmoid()
        from_query, from_examples = self.convolution.told(asking), self.convolution.told(examples)
        among = from_examples.means(inner.softmax(-1))
        heard = among.in_graphs().towards(from_query.as_graphs(), share)
        to_query = from_examples.means(outer.softmax(-1))
        return self.convolution(asking, to_query).as_graphs(), self.convolution(examples.in_graphs(), heard)
