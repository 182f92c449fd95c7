"""Graph Network: the shared computation equals the paper's separate graph per query, layer by layer."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from awatt.encoders.base import Block
from awatt.errors import AwattError
from awatt.models.graph_network import Convolution, Edges, GraphNetwork, GraphNetworkConfig, Part

SMALL = GraphNetworkConfig(n_features=3, edge=4, max_way=4)


def settled(model: torch.nn.Module) -> torch.nn.Module:
    """In evaluation mode, with running statistics that differ from those of a new model."""
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm1d):
            part.running_mean.normal_()  # type: ignore[union-attr]
            part.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]
    return model.eval()


def literal_weights(edges: Edges, nodes: Tensor) -> Tensor:
    """Eq. 4 for one graph: every pair of nodes, one at a time. nodes (n, features) -> (n, n)"""
    size = len(nodes)
    found = torch.full((size, size), -torch.inf)
    for i in range(size):
        for j in range(size):
            if i != j:
                # The paper's first layer maps all features at once.
                first = torch.cat([layer.weight for layer in edges.first], -1)  # type: ignore[arg-type]
                found[i, j] = edges.layers((first @ (nodes[i] - nodes[j]).abs())[None])[0, 0]
    return found.softmax(-1)


def literal_layer(layer: Convolution, nodes: Tensor) -> Tensor:
    received = literal_weights(layer.edges, nodes) @ nodes
    return torch.cat([nodes, F.leaky_relu(layer.norm(layer.map(torch.cat([nodes, received], -1))))], -1)


@pytest.mark.parametrize(("n_way", "n_shot"), [(3, 2), (4, 1), (1, 1), (2, 3)])
def test_scores_equal_one_graph_per_query(n_way: int, n_shot: int) -> None:
    torch.manual_seed(0)
    model = settled(GraphNetwork(5, SMALL))
    assert isinstance(model, GraphNetwork)
    queries, support = torch.randn(3, 5), torch.randn(n_way, n_shot, 5)
    mask = torch.ones(n_way, n_shot, 1, dtype=torch.bool)
    summary = model.summarise(Block(support[..., None, :], mask).pack())
    found = model.scores(Block(queries[:, None, :], mask.new_ones(3, 1)).pack(), summary)
    for number, query in enumerate(queries):
        even = torch.tensor([1 / n_way] * n_way + [0.0] * (4 - n_way))
        rows = [torch.cat([query, even])]
        for way in range(n_way):
            rows += [torch.cat([example, torch.eye(4)[way]]) for example in support[way]]
        nodes = torch.stack(rows)
        for layer in model.convolutions:
            assert isinstance(layer, Convolution)
            nodes = literal_layer(layer, nodes)
        received = literal_weights(model.last_edges, nodes)[0] @ nodes
        expected = model.readout(torch.cat([nodes[0], received]))[:n_way]
        torch.testing.assert_close(found[number], expected, atol=1e-5, rtol=1e-5)


def test_adjacency_by_hand() -> None:
    """The weight of an edge is minus the difference: one query at 0, examples at 1 and 3."""
    layer = Convolution([1], SMALL)
    layer.edges.forward = lambda *pairs: [-parts[0].sum(-1) for parts in pairs]  # type: ignore[method-assign]
    graph = Part(torch.tensor([[[0.0]]]), torch.tensor([[[1.0], [3.0]]]))
    found = layer.adjacency([graph])[0]
    # The query: e^-1 and e^-3, so 0.880797 and 0.119203; the example at 1: e^-1 and e^-2; that at 3: e^-3 and e^-2.
    expected = [[0, 0.880797, 0.119203], [0.731059, 0, 0.268941], [0.268941, 0.731059, 0]]
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-6, rtol=0)


def test_there_are_three_layers_with_batch_norm() -> None:
    model = GraphNetwork(50, GraphNetworkConfig())
    assert [layer.map.out_features for layer in model.convolutions] == [24, 24]  # type: ignore[union-attr]
    norms = [part for part in model.modules() if isinstance(part, torch.nn.BatchNorm1d)]
    assert len(norms) == 3 * 4 + 2  # four in each layer's edge network, one in each of the two convolutions
    assert model.readout.in_features == 2 * (50 + 10 + 2 * 24)


def test_more_aspects_than_the_labels_allow_are_refused() -> None:
    support = Block(torch.zeros(5, 1, 1, 2), torch.ones(5, 1, 1, dtype=torch.bool)).pack()
    with pytest.raises(AwattError) as caught:
        GraphNetwork(2, SMALL).summarise(support)
    assert str(caught.value) == (
        "this graph network takes at most 4 aspects, found 5. Train it with --set model.max_way=5, "
        "or use graph-shared, which takes any number."
    )


@pytest.mark.parametrize("name", ["n_features", "edge", "max_way"])
def test_sizes_are_at_least_one(name: str) -> None:
    with pytest.raises(AwattError, match=rf"model\.{name} is 0, needs at least 1"):
        GraphNetworkConfig(**{name: 0})
