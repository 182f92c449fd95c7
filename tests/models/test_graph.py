"""Graph Network: what is computed once for all queries is what each query's own graph would give."""

from __future__ import annotations

import torch

from awatt.models.graph import Graph


def test_edges_computed_once_are_those_of_every_graph() -> None:
    torch.manual_seed(0)
    model = Graph(4, Graph.config_type())
    graph = model.graph(torch.randn(3, 4), torch.randn(2, 2, 4))
    assert graph.labels[0, :, :, 0].tolist() == [[0.5, 0.5], [1, 0], [1, 0], [0, 1], [0, 1]]
    logits = model.edges(graph, graph)
    logits.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    torch.testing.assert_close(model.adjacency(graph), logits.softmax(-1))
