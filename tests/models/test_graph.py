"""Graph Network: what is computed once for all queries is what each query's own graph would give."""

from __future__ import annotations

import torch

from awatt.models.graph import Graph, Nodes


def test_edges_shared_between_queries_are_those_of_the_full_graph() -> None:
    torch.manual_seed(0)
    model = Graph(4, Graph.config_type())
    queries = Nodes(torch.randn(3, 4), torch.full((3, 2, 1), 0.5))
    examples = Nodes(torch.randn(4, 4), torch.eye(2).repeat_interleave(2, 0)[..., None])
    weights = model.adjacency(queries, examples)
    assert weights.shape == (3, 5, 5)
    for number in range(3):
        whole = Nodes(queries.features[[number]], queries.labels[[number]]).join(examples, 0)
        logits = model.edges(whole, whole).fill_diagonal_(-torch.inf)
        torch.testing.assert_close(weights[number], logits.softmax(-1))
