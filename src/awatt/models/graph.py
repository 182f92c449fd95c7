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
    """Sizes, chosen on validation; the paper's are for images."""

    hidden: int = 48
    label_hidden: int = 8
    edge_hidden: int = 48


class Edges(nn.Module):
    """How similar two nodes are: an MLP on how their features and labels differ, the same from both sides (Eq. 5)."""

    def __init__(self, n_features: int, n_labels: int, hidden: int) -> None:
        super().__init__()
        self.similarity = nn.Sequential(
            nn.Linear(n_features + n_labels, hidden),
            nn.LeakyReLU(),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(),
            nn.Linear(hidden, 1, bias=False),
        )

    def forward(self, features: tuple[Tensor, Tensor], labels: tuple[Tensor, Tensor]) -> Tensor:
        """Two sets of nodes: features (..., nodes, n_features), labels (..., nodes, n_way, n_labels).

        -> (..., nodes of the first, nodes of the second)
        """
        apart = (features[0][..., :, None, :] - features[1][..., None, :, :]).abs()
        squares = [(side**2).sum(-2) for side in labels]
        inner = torch.einsum("...inl,...jnl->...ijl", *labels)
        differ = squares[0][..., :, None, :] + squares[1][..., None, :, :] - 2 * inner
        return self.similarity(torch.cat(torch.broadcast_tensors(apart, differ) if False else [apart, differ.expand(*apart.shape[:-1], -1)], -1))[..., 0]


class Graph(FewShotModel):
    """Garcia & Bruna 2018, "Few-Shot Learning with Graph Neural Networks". https://arxiv.org/abs/1711.04043"""

    config_type = GraphConfig
    config: GraphConfig

    def __init__(self, dim: int, config: GraphConfig) -> None:
        super().__init__(dim, config)
        self.first = Edges(dim, 1, config.edge_hidden)
        self.features = nn.Linear(2 * dim, config.hidden)
        self.labels = nn.Linear(2, config.label_hidden)
        self.mix = nn.Linear(2 * dim, config.label_hidden, bias=False)
        self.last = Edges(dim + config.hidden, 1 + config.label_hidden, config.edge_hidden)
        self.readout = nn.Linear(2 * (1 + config.label_hidden), 1, bias=False)

    def summarise(self, support: Encoded) -> Tensor:
        return sentence_vectors(support)

    def scores(self, query: Encoded, summary: Tensor) -> Tensor:
        *lead, n_way, n_shot, dim = summary.shape
        queries, support = sentence_vectors(query), summary.flatten(-3, -2)
        n_query = queries.shape[-2]
        known = torch.eye(n_way, device=support.device).repeat_interleave(n_shot, 0)[..., None]
        unknown = torch.full((1, n_way, 1), 1 / n_way, device=support.device)
        between = self.first((queries, support), (unknown, known))[..., None, :]
        within = self.first((support, support), (known, known))
        within = within.masked_fill(torch.eye(within.shape[-1], dtype=torch.bool, device=support.device), -torch.inf)
        within = within[..., None, :, :].expand(*lead, n_query, -1, -1)
        itself = torch.full_like(between[..., :1], -torch.inf)
        logits = torch.cat([torch.cat([itself, between], -1), torch.cat([between.transpose(-1, -2), within], -1)], -2)
        A = logits.softmax(-1)
        x = torch.cat([queries[..., None, :], support[..., None, :, :].expand(*lead, n_query, -1, -1)], -2)
        y = torch.cat([unknown, known]).expand(*lead, n_query, -1, -1, -1)
        Ay = torch.einsum("...ij,...jnl->...inl", A, y)
        xs, ys = torch.cat([x, A @ x], -1), torch.cat([y, Ay], -1)
        x = torch.cat([x, F.leaky_relu(self.features(xs))], -1)
        y = torch.cat([y, F.leaky_relu(self.labels(ys) + self.mix(xs)[..., None, :])], -1)
        row = self.last((x[..., :1, :], x[..., 1:, :]), (y[..., :1, :, :], y[..., 1:, :, :])).softmax(-1)
        mass = torch.einsum("...ij,...jnl->...inl", row, y[..., 1:, :, :])
        return self.readout(torch.cat([y[..., :1, :, :], mass], -1))[..., 0, :, 0]
