"""The bundled model: what examples teach of each aspect, and how likely a sentence mentions it. Needs no torch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save
from tokenizers import Tokenizer

from awatt import __version__
from awatt.arrays import Sentences
from awatt.aspect_model.features import Fitted, Line, attention, features, fit, logits, read_line
from awatt.errors import DataError
from awatt.files import write_text, write_whole

FORMAT = 1
BUNDLED = Path(__file__).parent / "weights"
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Adapted:
    """What a matcher keeps of the examples: arrays only, no text."""

    arrays: dict[str, Floats]

    @property
    def fitted(self) -> Fitted:
        """The same by name."""
        return Fitted(**self.arrays)


class Matcher:
    """Token vectors, a background of ordinary sentences, and the few numbers that were learned on top of them."""

    def __init__(self, tokenizer: Tokenizer, tensors: Mapping[str, npt.NDArray[Any]], settings: dict[str, Any]) -> None:
        self.tokenizer, self.settings = tokenizer, settings
        self.tensors = dict(tensors)
        self.threshold, self.max_length = float(settings["threshold"]), int(settings["max_length"])
        # int8 (n_words, dim), and two numbers a word: what makes its vector one of length 1, and its length before
        self.table, self.scale, self.loudness = (tensors[name] for name in ("table", "scale", "loudness"))
        prefix = "parameter."
        self.parameters = {name.removeprefix(prefix): tensors[name] for name in tensors if name.startswith(prefix)}
        ordinary = Sentences(tensors["background_ids"].astype(np.int64), tensors["background_lengths"].astype(np.int64))
        self.background = self.read(ordinary)

    @classmethod
    def load(cls, folder: Path | None = None) -> Matcher:
        """From a saved folder; the bundled one by default."""
        folder = folder or BUNDLED
        try:
            settings = json.loads((folder / "config.json").read_bytes())
            weights = (folder / "model.safetensors").read_bytes()
            if settings["format"] != FORMAT:
                raise DataError(
                    f"has format {settings['format']!r}, this version reads {FORMAT}.", folder / "config.json"
                )
            if hashlib.sha256(weights).hexdigest() != settings["sha256"]:
                raise DataError(
                    "is not the file that config.json names (sha256 differs).", folder / "model.safetensors"
                )
            tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text("utf-8"))
            return cls(tokenizer, load(weights), settings)
        except DataError:
            raise
        except FileNotFoundError as error:
            raise DataError(f"lacks {Path(error.filename).name}. Is this a model's folder?", folder) from None
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"is not a model that detects: {error!r}.", folder) from None

    def save(self, folder: Path) -> None:
        """Write ``config.json``, ``model.safetensors`` and ``tokenizer.json``, each whole."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = save(self.tensors)
        settings = {**self.settings, "format": FORMAT, "awatt": __version__}
        settings["sha256"] = hashlib.sha256(weights).hexdigest()
        write_text(folder / "tokenizer.json", self.tokenizer.to_str())
        write_whole(folder / "model.safetensors", weights)
        write_text(folder / "config.json", json.dumps(settings, indent=1) + "\n")

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """The texts as token ids; a text without any token becomes one unknown token."""
        return Sentences.from_texts(self.tokenizer, texts, self.max_length, empty=self.settings["unknown"])

    def adapt(self, examples: Sentences, labels: npt.NDArray[np.bool_], names: Sequence[str] | None = None) -> Adapted:
        """Learn from examples, labels (n_examples, n_aspects) and the aspects' names, where they have any."""
        vectors = self.name_vectors(names or [""] * labels.shape[1])
        fitted = fit(self.parameters, self.read(examples), labels.astype(np.float32), self.background, vectors)
        return Adapted({name: np.asarray(value, dtype=np.float32) for name, value in fitted._asdict().items()})

    def probabilities(self, adapted: Adapted, sentences: Sentences) -> npt.NDArray[np.float64]:
        """How likely each sentence mentions each aspect. (n_sentences, n_aspects)"""
        evidence = features(self.parameters, adapted.fitted, self.read(sentences))
        return 1 / (1 + np.exp(-logits(self.parameters, evidence).astype(np.float64)))

    def weights(self, adapted: Adapted, sentences: Sentences) -> Floats:
        """How much of each aspect's attention each token has; a sentence's sum to 1. (n_tokens, n_aspects)"""
        found: Floats = attention(self.parameters, adapted.fitted, self.read(sentences))
        return found

    def name_vectors(self, names: Sequence[str]) -> Floats:
        """A unit vector for each name; zeros for a name that says nothing, such as a number. (n_names, dim)"""
        # "food#style_options" and "BatteryLife" are words, too.
        words = [re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", " ", name) for name in names]
        says = np.array([[any(map(str.isalpha, name))] for name in words], dtype=np.float32)
        return self.read(self.tokenize(words)).means * says

    def vectors(self, ids: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The unit vector of each token (n_tokens, dim), and how much it counts (n_tokens, 1)."""
        tokens = self.table[ids].astype(np.float32)
        tokens *= self.scale[ids]
        return tokens, self.loudness[ids]

    def read(self, sentences: Sentences) -> Line:
        """What the evidence is made from."""
        ids, places = np.unique(sentences.ids, return_inverse=True)
        return read_line(*self.vectors(ids), places, sentences.lengths)
