"""Our Graph Network: messages computed once for all queries equal those of a separate graph per query."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from awatt.models.graph import Graph, Nodes


def nodes(model: Graph, queries: Tensor, support: Tensor) -> tuple[Nodes, Nodes]:
    n_way, n_shot = support.shape[:2]
    return model.nodes(queries, support.flatten(0, 1), torch.arange(n_way).repeat_interleave(n_shot), n_way)


def joined(*nodes: Nodes) -> Nodes:
    return Nodes(torch.cat([n.features for n in nodes], -2), torch.cat([n.labels for n in nodes], -3))


def one_graph(model: Graph, query: Tensor, support: Tensor) -> Nodes:
    """The first layer as in the paper: within one graph, every node receives messages from all others."""
    graph = joined(*nodes(model, query[None], support))
    weights = model.edges(graph, graph).fill_diagonal_(-torch.inf).softmax(-1)
    return model.convolution(graph, model.convolution.told(graph.means(weights)))


@pytest.mark.parametrize(("n_way", "n_shot"), [(2, 2), (3, 1), (1, 1)])
def test_first_layer_equals_one_graph_per_query(n_way: int, n_shot: int) -> None:
    torch.manual_seed(0)
    model = Graph(4, Graph.config_type())
    queries, support = torch.randn(3, 4), torch.randn(n_way, n_shot, 4)
    with torch.no_grad():
        query_nodes, examples = model.first_layer(*nodes(model, queries, support))
        for i, query in enumerate(queries):
            literal = one_graph(model, query, support)
            ours = joined(*(Nodes(part.features[i], part.labels[i]) for part in (query_nodes, examples)))
            torch.testing.assert_close(ours.features, literal.features)
            torch.testing.assert_close(ours.labels, literal.labels)


def test_initial_labels() -> None:
    query_nodes, examples = nodes(Graph(4, Graph.config_type()), torch.randn(1, 4), torch.randn(2, 2, 4))
    assert query_nodes.labels[..., 0].tolist() == [[0.5, 0.5]]
    assert examples.labels[..., 0].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
