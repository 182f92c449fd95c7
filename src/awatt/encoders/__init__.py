"""Encoders: from text to one vector per token."""

from awatt.encoders.base import Encoded, Encoder
from awatt.encoders.glove import GloveCNN
from awatt.encoders.lstm import GloveLSTM
from awatt.encoders.static import StaticEncoder
from awatt.encoders.transformer import TransformerEncoder

ENCODERS: dict[str, type[Encoder]] = {
    "glove-cnn": GloveCNN,
    "glove-lstm": GloveLSTM,
    "static": StaticEncoder,
    "transformer": TransformerEncoder,
}

__all__ = ["ENCODERS", "Encoded", "Encoder"]
