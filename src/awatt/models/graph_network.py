"""Graph Network as in its paper: three layers over a graph of one query and all examples, with one-hot labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.config import check_at_least
from awatt.encoders.base import Encoded
from awatt.errors import AwattError
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class GraphNetworkConfig:
    """Layer sizes. The paper uses 48 and 96 for images; these suit vectors of 50 numbers on a CPU."""

    #: features that a layer adds to a node
    n_features: int = 24
    #: width of the network that weights the edges; its first two layers are twice as wide
    edge: int = 16
    #: length of the one-hot label. Entries that an episode does not need stay zero and change nothing.
    max_way: int = 10

    def __post_init__(self) -> None:
        check_at_least(self, "model", n_features=1, edge=1, max_way=1)


class Part(NamedTuple):
    """Some of the features of all nodes. Each query has its own graph: its node and those of the examples."""

    query: Tensor  # (..., n_query, 1, features)
    examples: Tensor  # (..., n_query or 1, n_examples, features); 1 where they are the same in all graphs

    def between_examples(self) -> Tensor:
        """Absolute difference of each pair of examples. (..., n_query or 1, n_pairs, features)"""
        first, second = pairs(self.examples)
        return (self.examples.index_select(-2, first) - self.examples.index_select(-2, second)).abs()

    def from_query(self) -> Tensor:
        """Absolute difference of each example from the query. (..., n_query, n_examples, features)"""
        return (self.query - self.examples).abs()


def pairs(examples: Tensor) -> Tensor:
    """Indices of the two nodes of each pair. (2, n_pairs)"""
    size = examples.shape[-2]
    return torch.triu_indices(size, size, 1, device=examples.device)


class Edges(nn.Module):
    """Edge weights, learned from the absolute differences of two nodes (Eq. 4) and therefore symmetric."""

    def __init__(self, sizes: Sequence[int], hidden: int) -> None:
        super().__init__()
        # A linear layer on concatenated parts is a sum of one layer per part; shared parts are mapped only once.
        self.first = nn.ModuleList(nn.Linear(size, 2 * hidden, bias=False) for size in sizes)
        layers: list[nn.Module] = [nn.BatchNorm1d(2 * hidden), nn.LeakyReLU()]
        for size, following in pairwise((2 * hidden, 2 * hidden, hidden, hidden)):
            layers += [nn.Linear(size, following, bias=False), nn.BatchNorm1d(following), nn.LeakyReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(hidden, 1, bias=False))

    def forward(self, *differences: list[Tensor]) -> list[Tensor]:
        """Edge weights before the softmax, with one batch norm over all. Parts (..., features) -> (...)"""
        mapped = [
            reduce(torch.add, (layer(part) for layer, part in zip(self.first, parts, strict=True)))
            for parts in differences
        ]
        weights = self.layers(torch.cat([one.flatten(0, -2) for one in mapped]))[:, 0]
        parts = weights.split([one[..., 0].numel() for one in mapped])
        return [part.view(one.shape[:-1]) for part, one in zip(parts, mapped, strict=True)]


class Convolution(nn.Module):
    """A layer: new features of a node from its own features and the weighted mean of the others' (Eq. 2)."""

    def __init__(self, sizes: Sequence[int], config: GraphNetworkConfig) -> None:
        super().__init__()
        self.edges = Edges(sizes, config.edge)
        self.map = nn.Linear(2 * sum(sizes), config.n_features, bias=False)
        self.norm = nn.BatchNorm1d(config.n_features)

    def forward(self, graphs: list[Part]) -> Part:
        weights = self.adjacency(graphs)  # (..., n_query, 1 + n_examples, 1 + n_examples)
        nodes = joined(graphs)
        found = self.map(torch.cat([nodes, weights @ nodes], -1))
        found = F.leaky_relu(self.norm(found.flatten(0, -2)).view(found.shape))
        return Part(found[..., :1, :], found[..., 1:, :])

    def adjacency(self, graphs: list[Part]) -> Tensor:
        """Softmax over each node's neighbours; no node is its own neighbour.

        An edge is weighted once for both of its nodes, and once for all graphs as long as they share the examples.
        """
        inner, outer = self.edges([part.between_examples() for part in graphs], [part.from_query() for part in graphs])
        size = 1 + outer.shape[-1]
        weights = inner.new_full((*outer.shape[:-1], size, size), torch.finfo(inner.dtype).min)
        weights[..., 0, 1:] = weights[..., 1:, 0] = outer
        first, second = 1 + pairs(graphs[0].examples)
        weights[..., first, second] = weights[..., second, first] = inner
        return weights.softmax(-1)


def joined(graphs: list[Part]) -> Tensor:
    """All features of all nodes, the query's node first. (..., n_query, 1 + n_examples, features)"""
    queries = torch.cat([part.query for part in graphs], -1)
    lead = queries.shape[:-2]
    examples = torch.cat([part.examples.expand(*lead, -1, -1) for part in graphs], -1)
    return torch.cat([queries, examples], -2)


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
        sizes = [dim + config.max_way, config.n_features, config.n_features]
        self.convolutions = nn.ModuleList(Convolution(sizes[:layer], config) for layer in (1, 2))
        self.last_edges = Edges(sizes, config.edge)
        self.readout = nn.Linear(2 * sum(sizes), config.max_way)

    def summarise(self, support: Encoded) -> Tensor:
        """One vector per example. (..., n_way, n_shot, dim)"""
        self._check(support.shape[-2])
        return sentence_vectors(support)

    def summarise_each(self, support: Sequence[Encoded]) -> list[Tensor]:
        self._check(len(support))
        return super().summarise_each(support)

    def _check(self, n_way: int) -> None:
        if n_way > self.config.max_way:
            raise AwattError(
                f"this graph network takes at most {self.config.max_way} aspects, found {n_way}. "
                f"Train it with --set model.max_way={n_way}, or use graph-shared, which takes any number."
            )

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        queries = sentence_vectors(query)
        if self.training or queries.ndim == 2:
            return self._answers(queries, list(summary.unbind(-3)))
        # Batch norm reads its running statistics, so episodes are independent. One at a time needs less memory.
        episodes = zip(queries, summary, strict=True)
        return torch.stack([self._answers(own, list(each.unbind(-3))) for own, each in episodes])

    def scores_each(self, query: Encoded, summaries: Sequence[Tensor]) -> Tensor:
        return self._answers(sentence_vectors(query), [summary[0] for summary in summaries])

    def _answers(self, queries: Tensor, classes: list[Tensor]) -> Tensor:
        """queries (..., n_query, dim), classes (..., n_shot, dim) each -> (..., n_query, n_way)"""
        graphs = [self.nodes(queries, classes)]
        for convolution in self.convolutions:
            graphs.append(convolution(graphs))
        # The last layer is only needed at the query.
        (weights,) = self.last_edges([part.from_query() for part in graphs])  # (..., n_query, n_examples)
        nodes = joined(graphs)
        asking, examples = nodes[..., :1, :], nodes[..., 1:, :]
        heard = weights[..., None, :].softmax(-1) @ examples
        return self.readout(torch.cat([asking, heard], -1))[..., 0, : len(classes)]

    def nodes(self, queries: Tensor, classes: list[Tensor]) -> Part:
        """Sentence vectors with their labels appended. queries (..., n_query, dim), classes (..., n_shot, dim) each"""
        examples = torch.cat(classes, -2)
        counts = torch.tensor([each.shape[-2] for each in classes], device=examples.device)
        labels = torch.eye(len(classes), self.config.max_way, dtype=examples.dtype, device=examples.device)
        known = labels.repeat_interleave(counts, 0)
        asking = torch.cat([queries, labels.mean(0).expand(*queries.shape[:-1], -1)], -1)
        examples = torch.cat([examples, known.expand(*examples.shape[:-1], -1)], -1)
        return Part(asking[..., None, :], examples[..., None, :, :])
