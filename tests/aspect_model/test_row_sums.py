"""Sums of rows: numpy's own, to the last bit."""

import numpy as np
import pytest

from awatt.arrays import Sentences, segment_sums
from awatt.aspect_model.row_sums import row_sums

TABLE = np.random.default_rng(0).normal(size=(50, 12)).astype(np.float32)


@pytest.fixture(autouse=True, params=["as few", "as many"])
def counted_as(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are added by numpy itself: what is done with many is tested with few, too."""
    if request.param == "as many":
        monkeypatch.setattr("awatt.aspect_model.row_sums._SMALL", 0)


def drawn(lengths: list[int]) -> Sentences:
    ids = np.random.default_rng(1).integers(0, len(TABLE), sum(lengths))
    return Sentences(ids, np.array(lengths, dtype=np.int64))


@pytest.mark.parametrize(
    "lengths", [[1], [2, 9, 1, 8], list(range(1, 140)), [129, 130, 300, 1, 5], [3] * 600 + [17] * 300]
)
def test_the_same_bits_as_numpy(lengths: list[int]) -> None:
    sentences = drawn(lengths)
    expected = segment_sums(TABLE[sentences.ids], sentences.lengths)
    assert np.array_equal(row_sums(TABLE, sentences.ids, sentences.lengths), expected)


def test_a_sum_does_not_depend_on_the_others() -> None:
    sentences = drawn([7, 40, 12, 200, 1, 26])
    together = row_sums(TABLE, sentences.ids, sentences.lengths)
    for number in range(6):
        alone = sentences.take(np.array([number]))
        assert np.array_equal(row_sums(TABLE, alone.ids, alone.lengths)[0], together[number])
