"""Packed sentences: taking, picking, padding and blocks of similar length, compared with plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from awatt.arrays import Sentences
from awatt.encoders.base import Block, Encoded, by_length, look_up, pad
from awatt.encoders.words import word_tokenizer

ROWS = st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), min_size=1, max_size=80)


def packed(rows: list[list[int]]) -> Sentences:
    return Sentences(np.array([token for row in rows for token in row]), np.array([len(row) for row in rows]))


def unpacked(sentences: Sentences) -> list[list[int]]:
    line = iter(sentences.ids.tolist())
    return [[next(line) for _ in range(length)] for length in sentences.lengths]


@given(ROWS, st.data())
def test_take(rows: list[list[int]], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    assert unpacked(packed(rows).take(np.array(numbers))) == [rows[number] for number in numbers]


@given(ROWS, st.data())
def test_pad_and_pick(rows: list[list[int]], data: st.DataObject) -> None:
    numbers = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=6, max_size=6))).reshape(2, 3)
    sentences = packed(rows)
    tokens = torch.from_numpy(sentences.ids).float()[:, None]
    block, line = pad(tokens, sentences.lengths, numbers), Encoded.pick(tokens, sentences.lengths, numbers)
    assert block.mask.shape == (2, 3, max(len(rows[number]) for number in numbers.flat))
    assert torch.equal(block.pack().tokens, line.tokens)
    for place in np.ndindex(2, 3):
        assert block.tokens[place][block.mask[place]].flatten().tolist() == rows[numbers[place]]


@settings(max_examples=30)
@given(ROWS)
def test_blocks_of_similar_length_keep_every_token_in_its_place(rows: list[list[int]]) -> None:
    sentences = packed(rows)
    tokens = torch.from_numpy(sentences.ids)[:, None]
    widths = []

    def double(block: object) -> torch.Tensor:
        widths.append(block.mask.shape)  # type: ignore[attr-defined]
        return block.tokens * 2  # type: ignore[attr-defined]

    assert torch.equal(by_length(tokens, sentences.lengths, double), tokens * 2)
    assert all(count <= 50 for count, _ in widths)
    assert [length for _, length in widths] == sorted(length for _, length in widths)


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), min_size=60, max_size=60))
def test_blocks_pass_each_sentence_the_value_of_its_group(rows: list[list[int]]) -> None:
    sentences = packed(rows)
    line = Encoded(torch.from_numpy(sentences.ids)[:, None], sentences.lengths.reshape(2, 30))

    def total(block: Block, given: torch.Tensor) -> torch.Tensor:
        return (block.tokens[..., 0] * block.mask).sum(-1, keepdim=True) + given

    found = line.in_blocks(total, torch.tensor([[1000, 2000], [3000, 4000]]))
    sums = torch.tensor([sum(row) for row in rows]).view(2, 30, 1)
    assert torch.equal(found, sums + torch.tensor([[[1000, 2000]], [[3000, 4000]]]))


def test_look_up_uses_each_distinct_token_once() -> None:
    table = torch.nn.Embedding(10, 3)
    sentences = packed([[7, 2, 7], [2], [5, 5]])
    rows, places = look_up(table, sentences)
    assert len(rows) == 3
    assert torch.equal(rows[places], table.weight[sentences.ids])


@pytest.mark.parametrize("max_length", [1, 2, 100])
def test_texts_are_cut_at_max_length_and_an_empty_one_has_a_token(max_length: int) -> None:
    tokenizer = word_tokenizer(["[UNK]", "a", "b"])
    sentences = Sentences.from_texts(tokenizer, ["a b a", "", "  ", "b"], max_length, empty=2)
    assert unpacked(sentences) == [[1, 2, 1][:max_length], [2], [2], [2]]
