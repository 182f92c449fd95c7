"""The bundled model: what examples teach of each aspect, and how likely a sentence mentions it. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from awatt.packed import Sentences, starts

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Adapted:
    """What a matcher keeps of the examples: arrays only, no text."""

    arrays: dict[str, npt.NDArray[np.generic]]


class Matcher:
    """Token vectors and the few numbers that were learned on top of them."""

    def __init__(self, tokenizer: Tokenizer, table: Floats, threshold: float, max_length: int) -> None:
        self.tokenizer, self.table, self.threshold, self.max_length = tokenizer, table, threshold, max_length

    @classmethod
    def load(cls, folder: Path | None = None) -> Matcher:
        """From a saved folder; the bundled one by default."""
        folder = folder or Path(__file__).parent / "pretrained"
        config = json.loads((folder / "config.json").read_text("utf-8"))
        tensors = load_file(folder / "model.safetensors")
        table = tensors["table"].astype(np.float32) * tensors["scale"]
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        return cls(tokenizer, table, config["threshold"], config["max_length"])

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """The texts as token ids; a text without any token becomes one unknown token."""
        return Sentences.from_texts(self.tokenizer, texts, self.max_length, empty=1)

    def adapt(self, examples: Sentences, labels: npt.NDArray[np.bool_], names: Sequence[str]) -> Adapted:
        """Learn from examples (n_examples), labels (n_examples, n_aspects) and the aspects' names."""
        vectors = self._means(examples)
        prototypes = labels.T.astype(np.float32) @ vectors / np.maximum(labels.sum(0), 1)[:, None]
        return Adapted({"prototypes": prototypes.astype(np.float32)})

    def probabilities(self, adapted: Adapted, sentences: Sentences) -> npt.NDArray[np.float64]:
        """How likely each sentence mentions each aspect. (n_sentences, n_aspects)"""
        prototypes = adapted.arrays["prototypes"]
        similarity = self._means(sentences) @ _unit(prototypes).T
        return 1 / (1 + np.exp(-14 * (similarity.astype(np.float64) - 0.45)))

    def weights(self, adapted: Adapted, sentences: Sentences) -> Floats:
        """How much each token speaks for each aspect: at least 0, a sentence's sum to 1. (n_tokens, n_aspects)"""
        speaks = np.maximum(self.table[sentences.ids] @ _unit(adapted.arrays["prototypes"]).T, 0) + 1e-9
        totals = np.add.reduceat(speaks, starts(sentences.lengths))
        return speaks / np.repeat(totals, sentences.lengths, axis=0)

    def _means(self, sentences: Sentences) -> Floats:
        sums = np.add.reduceat(self.table[sentences.ids], starts(sentences.lengths))
        return _unit(sums)


def _unit(vectors: Floats) -> Floats:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
