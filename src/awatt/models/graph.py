"""Graph Network: labels travel from the examples to a query over learned edges."""

from __future__ import annotations

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

    def split(self) -> tuple[Nodes, Nodes]:
        """The query, which is the first node, and the examples."""
        features, labels = self
        return Nodes(features[..., :1, :], labels[..., :1, :, :]), Nodes(features[..., 1:, :], labels[..., 1:, :, :])

    def beside(self, other: Nodes) -> Nodes:
        """The same nodes with more numbers each."""
        return Nodes(torch.cat([self.features, other.features], -1), torch.cat([self.labels, other.labels], -1))

    def messages(self, weights: Tensor) -> Nodes:
        """Weighted means of these nodes. weights (..., receivers, nodes)"""
        return Nodes(weights @ self.features, torch.einsum("...ij,...jnl->...inl", weights, self.labels))


class Edges(nn.Module):
    """How much two nodes have to tell each other: learned from how they differ, so the same from both sides."""

    def __init__(self, n_features: int, n_labels: int, hidden: int) -> None:
        super().__init__()
        self.similarity = nn.Sequential(
            nn.Linear(n_features + n_labels, hidden),
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
        return self.similarity(torch.cat([features, labels], -1))[..., 0]


class Convolution(nn.Module):
    """What a node is and what its neighbours tell it, through a layer; the result is added to what it was."""

    def __init__(self, n_features: int, n_labels: int, config: GraphConfig) -> None:
        super().__init__()
        self.features = nn.Linear(2 * n_features, config.n_features)
        self.labels = nn.Linear(2 * n_labels, config.n_labels)
        self.labels_from_features = nn.Linear(2 * n_features, config.n_labels, bias=False)

    def forward(self, nodes: Nodes, messages: Nodes) -> Nodes:
        features, labels = nodes.beside(messages)
        of_labels = self.labels(labels) + self.labels_from_features(features)[..., None, :]
        return nodes.beside(Nodes(F.leaky_relu(self.features(features)), F.leaky_relu(of_labels)))


class Graph(FewShotModel):
    """Garcia & Bruna 2018, "Few-Shot Learning with Graph Neural Networks". https://arxiv.org/abs/1711.04043

    Each query is a node of a graph with all examples. The paper writes the one-hot label among a node's features and
    reads one number a class from the last layer, which ties the weights to one N and one order of the classes. Here
    the labels are channels of their own, one for each class, and all classes share the weights.
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
        graph = self.graph(sentence_vectors(query), summary)
        graph = self.convolution(graph, graph.messages(self.adjacency(graph)))
        # Of the last layer only what the query gets is wanted.
        asking, examples = graph.split()
        answers = examples.messages(self.last_edges(asking, examples).softmax(-1))
        return self.readout(asking.beside(answers).labels)[..., 0, :, 0]

    def graph(self, queries: Tensor, support: Tensor) -> Nodes:
        """A graph for each query: the query, to which all classes are alike, then the examples with their labels.

        queries (..., n_query, dim), support (..., n_way, n_shot, dim)
        """
        n_way, n_shot, dim = support.shape[-3:]
        features = support.flatten(-3, -2)[..., None, :, :].expand(*queries.shape[:-1], -1, dim)
        known = torch.eye(n_way, dtype=support.dtype, device=support.device).repeat_interleave(n_shot, 0)
        labels = torch.cat([torch.full_like(known[:1], 1 / n_way), known])[..., None]
        return Nodes(torch.cat([queries[..., None, :], features], -2), labels.expand(*queries.shape[:-1], -1, -1, -1))

    def adjacency(self, graph: Nodes) -> Tensor:
        """Weights of the edges at first, none from a node to itself. (..., n_query, nodes, nodes)"""
        asking, examples = graph.split()
        outer = self.edges(asking, examples)  # (..., n_query, 1, n_examples)
        # Among the examples they are the same in all graphs, and are computed once.
        once = Nodes(examples.features[..., 0, :, :], examples.labels[..., 0, :, :, :])
        inner = self.edges(once, once)[..., None, :, :].expand(*outer.shape[:-2], -1, -1)
        logits = torch.cat([F.pad(outer, (1, 0)), torch.cat([outer.transpose(-1, -2), inner], -1)], -2)
        itself = torch.eye(logits.shape[-1], dtype=torch.bool, device=logits.device)
        return logits.masked_fill(itself, -torch.inf).softmax(-1)
