"""An episode's shapes are checked once, when it is made."""

import dataclasses

import numpy as np
import pytest

from awatt.data.episode import Episode


def episode(*lead: int, n_way: int = 3, n_shot: int = 2, n_query: int = 4) -> dict[str, np.ndarray]:
    shapes = {"aspects": (n_way,), "support": (n_way, n_shot), "query": (n_query,)}
    arrays = {
        name: np.arange(int(np.prod(lead + shape)), dtype=np.int64).reshape(lead + shape)
        for name, shape in shapes.items()
    }
    return arrays | {"targets": np.zeros((*lead, n_query, n_way), dtype=bool)}


@pytest.mark.parametrize("lead", [(), (5,), (0,)])
def test_matching_shapes_are_accepted(lead: tuple[int, ...]) -> None:
    made = Episode(**episode(*lead))
    assert made.support.shape == (*lead, 3, 2)
    assert made.targets.shape == (*lead, 4, 3)


@pytest.mark.parametrize(
    ("name", "shape", "sentence"),
    [
        ("support", (5, 4, 2), "support has shape (5, 4, 2), needs (5, 3, 2)"),
        ("support", (4, 3, 2), "support has shape (4, 3, 2), needs (5, 3, 2)"),
        ("targets", (5, 4, 2), "targets has shape (5, 4, 2), needs (5, 4, 3)"),
        ("targets", (5, 3, 4), "targets has shape (5, 3, 4), needs (5, 4, 3)"),
        ("targets", (4, 3), "targets has shape (4, 3), needs (5, 4, 3)"),
    ],
)
def test_a_wrong_shape_is_refused_with_both_shapes(name: str, shape: tuple[int, ...], sentence: str) -> None:
    arrays = episode(5) | {name: np.zeros(shape, dtype=np.int64)}
    with pytest.raises(ValueError, match="has shape") as caught:
        Episode(**arrays)
    assert str(caught.value) == sentence


def test_a_different_number_of_episodes_in_query_is_refused() -> None:
    arrays = episode(5) | {"query": np.zeros((6, 4), np.int64), "targets": np.zeros((6, 4, 3), bool)}
    with pytest.raises(ValueError, match="has shape") as caught:
        Episode(**arrays)
    assert str(caught.value) == "query has shape (6, 4), but there are (5,) episodes"


def test_a_batch_is_indexed_and_sliced() -> None:
    batch = Episode(**episode(5))
    assert len(batch) == 5
    one, part = batch[2], batch[1:3]
    np.testing.assert_array_equal(one.support, batch.support[2])
    np.testing.assert_array_equal(one.query, batch.query[2])
    assert one.aspects.shape == (3,)
    assert len(part) == 2
    np.testing.assert_array_equal(part.aspects, batch.aspects[1:3])
    assert len(list(batch)) == 5


def test_an_episode_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Episode(**episode()).query = np.zeros(4, np.int64)  # type: ignore[misc]
