"""Graph Network: messages between the sentences of an episode over learned edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.encoders.base import Encoded
from awatt.models.base import FewShotModel, sentence_vectors


@dataclass(frozen=True)
class GraphConfig:
    layers: int = 1
    hidden: int = 48
    label_hidden: int = 8
    edge_hidden: int = 48


class Edges(nn.Module):
    def __init__(self, n_features: int, n_labels: int, hidden: int) -> None:
        super().__init__()
        self.similarity = nn.Sequential(
            nn.Linear(n_features + n_labels, hidden),
            nn.LeakyReLU(),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(),
            nn.Linear(hidden, 1, bias=False),
        )

    def forward(self, features: Tensor, labels: Tensor, rows: slice = slice(None)) -> Tensor:
        """features (..., nodes, f), labels (..., nodes, n_way, g) -> (..., rows, nodes)"""
        apart = (features[..., rows, None, :] - features[..., None, :, :]).abs()
        squares = (labels**2).sum(-2)
        inner = torch.einsum("...ing,...jng->...ijg", labels[..., rows, :, :], labels)
        other = squares[..., rows, None, :] + squares[..., None, :, :] - 2 * inner
        logits = self.similarity(torch.cat([apart, other], -1))[..., 0]
        itself = torch.eye(features.shape[-2], dtype=torch.bool)[rows]
        return logits.masked_fill(itself, -1e9).softmax(-1)


class Graph(FewShotModel):
    """Garcia & Bruna 2018, "Few-Shot Learning with Graph Neural Networks". https://arxiv.org/abs/1711.04043"""

    config_type = GraphConfig
    config: GraphConfig

    def __init__(self, dim: int, config: GraphConfig) -> None:
        super().__init__(dim, config)
        self.edges, self.feature_maps, self.label_maps, self.mixes = (nn.ModuleList() for _ in range(4))
        n_features, n_labels = dim, 1
        for _ in range(config.layers):
            self.edges.append(Edges(n_features, n_labels, config.edge_hidden))
            self.feature_maps.append(nn.Linear(2 * n_features, config.hidden))
            self.label_maps.append(nn.Linear(2 * n_labels, config.label_hidden))
            self.mixes.append(nn.Linear(2 * n_features, config.label_hidden, bias=False))
            n_features += config.hidden
            n_labels += config.label_hidden
        self.last = Edges(n_features, n_labels, config.edge_hidden)
        self.readout = nn.Linear(2 * n_labels, 1, bias=False)

    def summarise(self, support: Encoded) -> Tensor:
        return sentence_vectors(support)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        *lead, n_way, n_shot, dim = summary.shape
        queries = sentence_vectors(query)
        n_query = queries.shape[-2]
        support = summary.flatten(-3, -2)[..., None, :, :].expand(*lead, n_query, n_way * n_shot, dim)
        x = torch.cat([queries[..., None, :], support], -2)
        one_hot = torch.eye(n_way).repeat_interleave(n_shot, 0)
        y = torch.cat([torch.full((1, n_way), 1 / n_way), one_hot])[..., None].expand(*lead, n_query, -1, -1, -1)

        def spread(edges, x, y):
            return torch.cat([x, edges @ x], -1), torch.cat(
                [y, (edges @ y.flatten(-2)).view(*edges.shape[:-1], *y.shape[-2:])], -1
            )

        for edges, fm, lm, mix in zip(self.edges, self.feature_maps, self.label_maps, self.mixes):
            xs, ys = spread(edges(x, y), x, y)
            x = torch.cat([x, F.leaky_relu(fm(xs))], -1)
            y = torch.cat([y, F.leaky_relu(lm(ys) + mix(xs)[..., None, :])], -1)
        row = self.last(x, y, slice(0, 1))
        mass = (row @ y.flatten(-2)).view(*row.shape[:-1], *y.shape[-2:])
        return self.readout(torch.cat([y[..., :1, :, :], mass], -1))[..., 0, :, 0]
