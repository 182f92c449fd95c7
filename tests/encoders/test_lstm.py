"""The LSTM: blocks of similar length change nothing, and both directions are correct."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from awatt.arrays import Sentences
from awatt.encoders import Encoder
from awatt.errors import AwattError

Make = Callable[..., Encoder]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_batch_equals_its_sentences_alone(
    make: Make, texts: tuple[str, ...], alone: Callable[[Encoder, Sentences], torch.Tensor], bidirectional: bool
) -> None:
    encoder = make("glove-lstm", bidirectional=bidirectional)
    sentences = encoder.tokenize(texts)
    assert encoder(sentences).shape == (len(sentences.ids), 6)
    torch.testing.assert_close(encoder(sentences), alone(encoder, sentences), rtol=1e-5, atol=1e-5)


def test_it_is_torchs_bidirectional_lstm(make: Make) -> None:
    encoder = make("glove-lstm")
    sentences = encoder.tokenize(["the waiter was friendly ."])
    theirs = torch.nn.LSTM(5, 3, bidirectional=True)
    forward, backward = (dict(lstm.named_parameters()) for lstm in encoder.lstms)  # type: ignore[union-attr]
    theirs.load_state_dict(forward | {f"{name}_reverse": value for name, value in backward.items()})
    wanted = theirs(encoder.table(torch.from_numpy(sentences.ids)))[0]  # type: ignore[operator]
    torch.testing.assert_close(encoder(sentences), wanted)


def test_one_direction_does_not_see_what_follows(make: Make) -> None:
    encoder = make("glove-lstm", bidirectional=False)
    one, other = (encoder(encoder.tokenize([text])) for text in ("the food was good", "the food was clean"))
    assert torch.equal(one[:3], other[:3])
    both = make("glove-lstm")
    one, other = (both(both.tokenize([text])) for text in ("the food was good", "the food was clean"))
    assert not torch.allclose(one[0], other[0])


def test_two_directions_need_an_even_size(make: Make) -> None:
    with pytest.raises(AwattError, match=r"encoder.hidden is 7, needs an even number"):
        make("glove-lstm", hidden=7)
