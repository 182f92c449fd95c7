"""GloVe: both sources of its vectors and errors in them, the table, and the convolution against torch's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from awatt.arrays import Sentences
from awatt.encoders import Encoder
from awatt.encoders.convolution import Convolution
from awatt.encoders.glove import read_glove
from awatt.errors import AwattError, DataError

Make = Callable[..., Encoder]


def test_the_package_and_a_text_file_give_the_same(tmp_path: Path) -> None:
    words, vectors = read_glove()
    assert len(words) == len(vectors) == 400_000
    assert vectors.shape[1] == 50
    assert words[:2] == ["the", ","]
    path = tmp_path / "glove.txt"
    lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in zip(words[:9], vectors[:9], strict=True)]
    path.write_text("".join(lines), "utf-8")
    read_words, read_vectors = read_glove(str(path))
    assert read_words == words[:9]
    np.testing.assert_array_equal(read_vectors, vectors[:9])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"the 1 2\nof 1\n", r"line 2: needs a word and 2 numbers, found 'of 1"),
        (b"the 1 2\nof 1 two\n", r"line 2: needs a word and 2 numbers, found 'of 1 two"),
        (b"the\n", "line 1: needs a word and at least 1 numbers"),
        (b"the 1\n\xff\xfe 2\n", "is not UTF-8"),
    ],
)
def test_an_error_in_a_text_file_names_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "glove.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_glove(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_a_missing_text_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_glove(str(tmp_path / name))


def test_unknown_words_share_the_mean_of_the_vectors(make: Make) -> None:
    encoder = make("glove-cnn")
    sentences = encoder.tokenize(["xyzzy the qwerty", ""])
    assert sentences.ids[0] == sentences.ids[2] == sentences.ids[3] == 0
    torch.testing.assert_close(encoder.table.weight[0], encoder.table.weight[1:].mean(0))


@pytest.mark.parametrize("name", ["glove-cnn", "glove-lstm"])
def test_only_words_of_the_batch_get_a_gradient(make: Make, name: str) -> None:
    encoder = make(name)
    sentences = encoder.tokenize(["the food . the food", "room"])
    encoder(sentences).square().sum().backward()
    gradient = encoder.table.weight.grad
    assert gradient is not None
    assert gradient.is_sparse
    assert set(encoder.sparse) == {"table.weight"}
    touched = gradient.coalesce().indices()[0].tolist()
    assert touched == sorted(set(sentences.ids.tolist()))


@pytest.mark.parametrize("window", [1, 3, 5])
def test_the_convolution_is_torchs_on_each_sentence_alone(window: int) -> None:
    torch.manual_seed(0)
    convolution = Convolution(4, 7, window)
    chance = np.random.default_rng(0)
    lengths = np.array([1, 5, 2, 9])
    sentences = Sentences(chance.integers(0, 6, lengths.sum()), lengths)
    rows = torch.randn(6, 4)
    found = convolution(rows, sentences.ids, lengths).split(lengths.tolist())
    weight = convolution.kernel.view(4, window, 7).permute(2, 0, 1)  # (hidden, width, window)
    for ids, vectors in zip(np.split(sentences.ids, np.cumsum(lengths)[:-1]), found, strict=True):
        wanted = F.conv1d(rows[ids].T[None], weight, convolution.bias, padding=window // 2)[0].T
        torch.testing.assert_close(vectors, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("window", [0, 2, -1])
def test_an_even_window_is_refused(make: Make, window: int) -> None:
    with pytest.raises(AwattError, match=f"encoder.window is {window}, needs an odd number"):
        make("glove-cnn", window=window)


def test_a_batch_equals_its_sentences_alone(
    make: Make, texts: tuple[str, ...], alone: Callable[[Encoder, Sentences], torch.Tensor]
) -> None:
    encoder = make("glove-cnn")
    sentences = encoder.tokenize(texts)
    assert encoder(sentences).shape == (len(sentences.ids), encoder.dim)
    torch.testing.assert_close(encoder(sentences), alone(encoder, sentences))
