"""Encoders: text to a vector for each token."""

from awatt.encoders.base import Encoded, Encoder, Sentences
from awatt.encoders.glove import GloveCNN

ENCODERS: dict[str, type[Encoder]] = {"glove-cnn": GloveCNN}

__all__ = ["ENCODERS", "Encoded", "Encoder", "Sentences"]
