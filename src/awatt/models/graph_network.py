"""Graph Network as in its paper: three layers over a graph of one query and all examples, with one-hot labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.encoders.base import Encoded
from awatt.errors import AwattError
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class GraphNetworkConfig:
    """Sizes. The paper's are 48 and 96 for images; these suit vectors of 50 numbers, and a CPU."""

    #: numbers that a layer adds to a node
    n_features: int = 24
    #: width of the network that weighs the edges; its first two layers have twice as many
    edge: int = 16
    #: places of the one-hot label. Those that an episode does not need stay empty and change nothing.
    max_way: int = 10

    def __post_init__(self) -> None:
        for name in ("n_features", "edge", "max_way"):
            if getattr(self, name) < 1:
                raise AwattError(f"model.{name} is {getattr(self, name)}, needs at least 1.")


class Graphs(NamedTuple):
    """For each query a graph of its own: its node, and those of the examples."""

    query: Tensor  # (..., n_query, 1, features)
    examples: Tensor  # (..., n_query or 1, n_examples, features); 1 while they are the same in all graphs


class Edges(nn.Module):
    """How much two nodes have to tell each other, from how they differ (Eq. 4): the same from both sides."""

    def __init__(self, n_features: int, hidden: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for size, following in pairwise((n_features, 2 * hidden, 2 * hidden, hidden, hidden)):
            layers += [nn.Linear(size, following, bias=False), nn.BatchNorm1d(following), nn.LeakyReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(hidden, 1, bias=False))

    def forward(self, *pairs: Tensor) -> list[Tensor]:
        """Weights before their softmax. Differences (..., features) -> (...), all in one batch of the batch norm."""
        weights = self.layers(torch.cat([pair.flatten(0, -2) for pair in pairs]))[:, 0]
        parts = weights.split([pair[..., 0].numel() for pair in pairs])
        return [part.view(pair.shape[:-1]) for part, pair in zip(parts, pairs, strict=True)]


class Convolution(nn.Module):
    """A layer: what a node is and the mean of what the others are; the result is put beside what it was (Eq. 2)."""

    def __init__(self, n_in: int, config: GraphNetworkConfig) -> None:
        super().__init__()
        self.edges = Edges(n_in, config.edge)
        self.map = nn.Linear(2 * n_in, config.n_features, bias=False)
        self.norm = nn.BatchNorm1d(config.n_features)

    def forward(self, graphs: Graphs) -> Graphs:
        query, examples = graphs
        weights = self.adjacency(graphs)  # (..., n_query, 1 + n_examples, 1 + n_examples)
        nodes = torch.cat([query, examples.expand(*query.shape[:-2], -1, -1)], -2)
        found = self.map(torch.cat([nodes, weights @ nodes], -1))
        found = self.norm(found.flatten(0, -2)).view(found.shape)
        nodes = torch.cat([nodes, F.leaky_relu(found)], -1)
        return Graphs(nodes[..., :1, :], nodes[..., 1:, :])

    def adjacency(self, graphs: Graphs) -> Tensor:
        """Softmax over each node's neighbours; no node tells itself anything.

        An edge is weighed once for both of its nodes, and once for all graphs while the examples are the same there.
        """
        query, examples = graphs
        size = examples.shape[-2]
        first, second = torch.triu_indices(size, size, 1, device=examples.device)
        between = (examples.index_select(-2, first) - examples.index_select(-2, second)).abs()
        inner, outer = self.edges(between, (query - examples).abs())
        weights = inner.new_full((*outer.shape[:-1], 1 + size, 1 + size), torch.finfo(inner.dtype).min)
        weights[..., 0, 1:] = weights[..., 1:, 0] = outer
        weights[..., 1 + first, 1 + second] = weights[..., 1 + second, 1 + first] = inner
        return weights.softmax(-1)


class GraphNetwork(FewShotModel):
    """Garcia & Bruna 2018, "Few-Shot Learning with Graph Neural Networks". https://arxiv.org/abs/1711.04043

    A node is a sentence's vector and its one-hot label, spread evenly over the classes for the query. Two layers of
    learned edges and a graph convolution, with batch norm, each add features to the nodes; a third reads the scores at
    the query. The one-hot label ties the weights to the order of the classes.
    """

    config_type = GraphNetworkConfig
    config: GraphNetworkConfig
    ordered = True

    def __init__(self, dim: int, config: GraphNetworkConfig) -> None:
        super().__init__(dim, config)
        sizes = [dim + config.max_way + layer * config.n_features for layer in range(3)]
        self.convolutions = nn.ModuleList(Convolution(size, config) for size in sizes[:2])
        self.last_edges = Edges(sizes[2], config.edge)
        self.readout = nn.Linear(2 * sizes[2], config.max_way)

    def summarise(self, support: Encoded) -> Tensor:
        """Every example as a vector. (..., n_way, n_shot, dim)"""
        n_way = support.shape[-2]
        if n_way > self.config.max_way:
            raise AwattError(
                f"this graph network writes labels in {self.config.max_way} places, found {n_way} aspects. "
                f"Train it with --set model.max_way={n_way}, or use graph-shared, which takes any number."
            )
        return sentence_vectors(support)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        graphs = self.nodes(sentence_vectors(query), summary)
        for convolution in self.convolutions:
            graphs = convolution(graphs)
        # Of the last layer only what the query gets is wanted.
        asking, examples = graphs
        (weights,) = self.last_edges((asking - examples).abs())  # (..., n_query, n_examples)
        heard = weights[..., None, :].softmax(-1) @ examples
        return self.readout(torch.cat([asking, heard], -1))[..., 0, : summary.shape[-3]]

    def nodes(self, queries: Tensor, support: Tensor) -> Graphs:
        """Vectors and labels side by side. queries (..., n_query, dim), support (..., n_way, n_shot, dim)"""
        n_way, n_shot = support.shape[-3:-1]
        labels = torch.eye(n_way, self.config.max_way, dtype=support.dtype, device=support.device)
        examples, known = support.flatten(-3, -2), labels.repeat_interleave(n_shot, 0)
        asking = torch.cat([queries, labels.mean(0).expand(*queries.shape[:-1], -1)], -1)
        examples = torch.cat([examples, known.expand(*examples.shape[:-1], -1)], -1)
        return Graphs(asking[..., None, :], examples[..., None, :, :])
