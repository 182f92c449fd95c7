"""Sums of a table's rows over many sentences at once: the same to the last bit as numpy's `add.reduceat`, but faster.

`reduceat` wants all rows side by side, many times what fits into the CPU's cache, and reads them column by column. Here
sentences stand one below the other, sorted by length, and are added place by place. A score is written with
four digits, and float32 has seven: another order of summation would change a digit here and there. So the order is
numpy's: the first row, plus the sum of the others, of which every eighth is added up (eight sums), these in pairs, then
those that are left.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from awatt.arrays import Integers, ranges, segment_sums, starts

Floats = npt.NDArray[np.float32]

_LANES = 8
_LONGEST = 128 + 1  # rows; numpy halves longer sums first
_SMALL = 2**17  # numbers to add: they fit into the cache, so that `reduceat` is fast, and few calls count
_TOGETHER = 256  # sentences: their sums fit into the cache
_STEPS = np.arange(_LANES)[:, None]


def row_sums(table: Floats, ids: Integers, lengths: Integers) -> Floats:
    """The sum of each sentence's rows, of which there is at least one. (n_sentences, width)"""
    if len(lengths) and len(ids) * table.shape[1] <= _SMALL:
        return segment_sums(table[ids], lengths)
    found = np.empty((len(lengths), table.shape[1]), dtype=np.float32)
    first, order = starts(lengths), np.argsort(-lengths, kind="stable")
    n_long = int((lengths > _LONGEST).sum())
    if n_long:
        long = order[:n_long]
        found[long] = segment_sums(table[ids[ranges(first[long], lengths[long])]], lengths[long])
    for begin in range(n_long, len(order), _TOGETHER):
        block = order[begin : begin + _TOGETHER]
        found[block] = _block_sums(table, ids, first[block], lengths[block] - 1)
    return found


def _block_sums(table: Floats, ids: Integers, first: Integers, n_others: Integers) -> Floats:
    """``n_others``, the number of rows after the first of each sentence, descends."""
    spare = np.empty((len(first), table.shape[1]), dtype=np.float32)

    def add(sums: Floats, places: Integers) -> None:
        """The rows at one place in each of the first sentences."""
        part = spare[: len(places)]
        table.take(ids[places], axis=0, out=part, mode="clip")  # with "raise" numpy would copy once more
        np.add(sums, part, out=sums)

    found = np.zeros_like(spare)
    n_rounds = n_others // _LANES
    for number in range(int(n_rounds[0])):
        count = int((n_rounds > number).sum())
        places = first[:count] + 1 + number * _LANES + _STEPS
        if not number:
            lanes = np.empty((_LANES, count, table.shape[1]), dtype=np.float32)
            table.take(ids[places], axis=0, out=lanes, mode="clip")
            continue
        for lane, row in zip(lanes, places, strict=True):
            add(lane[:count], row)
    if n_rounds[0]:
        while len(lanes) > 1:
            lanes = lanes[::2] + lanes[1::2]
        found[: lanes.shape[1]] = lanes[0]
    n_left = n_others % _LANES
    by_left = np.argsort(-n_left, kind="stable")
    found, begin, n_left = found[by_left], (first + 1 + n_rounds * _LANES)[by_left], n_left[by_left]
    for number in range(int(n_left[0])):
        count = int((n_left > number).sum())
        add(found[:count], begin[:count] + number)
    add(found, first[by_left])
    back = np.empty_like(found)
    back[by_left] = found
    return back
