"""The detector's own model: how likely a sentence mentions each aspect, from a few examples. Needs no torch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save
from tokenizers import Tokenizer

from awatt.arrays import Sentences
from awatt.aspect_model.features import (
    EmbeddedSentences,
    Fitted,
    Parameters,
    attention,
    embed,
    features,
    fit,
    logits,
)
from awatt.data.corpus import Corpus
from awatt.data.episode import PredictedEpisodes, Prediction
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.errors import AwattError, DataError
from awatt.folders import ASPECT_MODEL, CARD, TOKENIZER, WEIGHTS, Folder, open_folder, write_folder
from awatt.thresholds.default import default_threshold

BUNDLED = Path(__file__).parent / "weights"
Floats = npt.NDArray[np.float32]
Probabilities = npt.NDArray[np.float64]
_HEAD = ("format", "kind", "awatt", "sha256")  # of config.json: written anew


class AspectModel:
    """Token vectors, a background of ordinary sentences, and the few numbers that were learned on top of them."""

    kind: ClassVar[str] = ASPECT_MODEL
    #: scores are probabilities, each aspect judged on its own
    probabilistic: ClassVar[bool] = True

    def __init__(self, tokenizer: Tokenizer, tensors: Mapping[str, npt.NDArray[Any]], settings: dict[str, Any]) -> None:
        self.tokenizer, self.settings = tokenizer, settings
        self.tensors = dict(tensors)
        self.threshold, self.max_length = float(settings["threshold"]), int(settings["max_length"])
        # int8 (n_words, dim), and two numbers per word: the factor to length 1, and its norm in a mean vector
        self.table, self.scale, self.norm = (tensors[name] for name in ("table", "scale", "loudness"))
        self.parameters = Parameters.from_tensors(tensors)
        ordinary = Sentences(tensors["background_ids"].astype(np.int64), tensors["background_lengths"].astype(np.int64))
        self.background = self.embed(ordinary)

    # -- folders

    @classmethod
    def load(cls, path: Path | None = None) -> Self:
        """From a saved folder; the bundled one by default."""
        return cls.from_folder(open_folder(path or BUNDLED, ASPECT_MODEL))

    @classmethod
    def from_folder(cls, folder: Folder) -> Self:
        """From a folder that has been opened."""
        settings = {name: value for name, value in folder.config.items() if name not in _HEAD}
        folder.setting("threshold", (int, float))
        folder.setting("max_length", int)
        folder.setting("unknown", int)
        try:
            tensors = load(folder.read(WEIGHTS))
            tokenizer = Tokenizer.from_str(folder.read(TOKENIZER).decode("utf-8"))
            return cls(tokenizer, tensors, settings)
        except DataError:
            raise
        except KeyError as error:
            raise DataError(f"lacks the tensor {error}. Copy the folder again.", folder.path / WEIGHTS) from None
        except (SafetensorError, TypeError, ValueError) as error:
            raise DataError(f"cannot be read as a model ({error}). Copy the folder again.", folder.path) from None

    def save(self, path: Path) -> None:
        """Write the folder."""
        kept = {CARD: (path / CARD).read_bytes()} if (path / CARD).is_file() else {}
        write_folder(path, self.kind, self.settings, {**self.files(), **kept})

    def files(self) -> dict[str, bytes]:
        """The model's files, for a folder."""
        return {WEIGHTS: save(self.tensors), TOKENIZER: self.tokenizer.to_str().encode()}

    def config(self) -> dict[str, Any]:
        """What ``from_folder`` needs besides the files."""
        return self.settings

    # -- what every model of a detector offers

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """The texts as token ids; a text without any token becomes one unknown token."""
        return Sentences.from_texts(self.tokenizer, texts, self.max_length, empty=self.settings["unknown"])

    def fit(self, examples: Sentences, labels: npt.NDArray[np.bool_], names: Sequence[str] | None = None) -> Fitted:
        """Learn from examples, labels (n_examples, n_aspects) and the aspects' names, where they have any."""
        vectors = self.name_vectors(names or [""] * labels.shape[1])
        fitted = fit(self.parameters, self.embed(examples), labels.astype(np.float32), self.background, vectors)
        return Fitted.from_arrays(fitted.to_arrays())

    def predict(self, fitted: Fitted, sentences: Sentences, mode: str = "auto") -> Prediction:
        """Scores and decisions. With mode "paper" the scores are a softmax over the aspects, cut as in the paper."""
        scores = self.probabilities(fitted, sentences)
        if mode == "paper":
            scores = shares(scores)
        return Prediction(scores, scores >= self.auto_threshold(scores.shape[1], mode))

    def auto_threshold(self, n_aspects: int, mode: str = "auto") -> float:
        """The score from which an aspect counts as found, unless somebody says otherwise."""
        return default_threshold(n_aspects) if mode == "paper" else self.threshold

    def word_weights(self, fitted: Fitted, sentences: Sentences) -> Floats:
        """The share of each token in each aspect's attention; a sentence's sum to 1. (n_tokens, n_aspects)"""
        found: Floats = attention(self.parameters, fitted, self.embed(sentences))
        return found

    def mean_vectors(self, sentences: Sentences) -> Floats:
        """A unit vector per sentence: similar sentences have similar ones. (n_sentences, dim)"""
        means: Floats = self.embed(sentences).means
        return means

    def pack(self, fitted: Fitted) -> dict[str, npt.NDArray[Any]]:
        """What was learned, as named arrays."""
        return fitted.to_arrays()

    def unpack(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Fitted:
        """The inverse of ``pack``."""
        return Fitted.from_arrays(arrays)

    # -- evaluation

    def predict_episodes(
        self, corpus: Corpus, shape: EpisodeShape, episodes: int, seed: int
    ) -> Iterator[PredictedEpisodes]:
        """Episodes 0 to ``episodes - 1`` of the corpus, one at a time. The aspects' names are not used.

        An example counts for every aspect of the episode that it mentions, and against the others.
        """
        sentences = self.tokenize(corpus.sentences)
        for batch in EpisodeSampler(corpus, shape, seed).batches(0, episodes, 1):
            episode = batch[0]
            support = np.unique(episode.support)
            fitted = self.fit(sentences.take(support), corpus.mentions[support[:, None], episode.aspects])
            found = self.predict(fitted, sentences.take(episode.query))
            yield PredictedEpisodes(
                ranking=found.scores[None],
                evidence=found.scores[None],
                selected=found.accepted[None],
                targets=batch.targets,
                probabilistic=True,
            )

    def use_threshold(self, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> str:
        """Decide with another threshold, a number from 0 to 1; gives its name."""
        number = math.nan
        with suppress(ValueError):
            number = float(wanted)
        if not 0 <= number <= 1:
            raise AwattError(f"the threshold is '{wanted}', but this model needs a number from 0 to 1.")
        self.threshold = number
        return str(number)

    @property
    def threshold_name(self) -> str:
        """For results."""
        return str(self.threshold)

    @property
    def trained_with(self) -> tuple[EpisodeShape, int]:
        """The episodes and the seed that an evaluation takes by default."""
        return EpisodeShape(), 5

    # -- vectors

    def probabilities(self, fitted: Fitted, sentences: Sentences) -> Probabilities:
        """How likely each sentence mentions each aspect. (n_sentences, n_aspects)"""
        evidence = features(self.parameters, fitted, self.embed(sentences))
        return 1 / (1 + np.exp(-logits(self.parameters, evidence).astype(np.float64)))

    def name_vectors(self, names: Sequence[str]) -> Floats:
        """A unit vector per name; zeros for a name without letters, such as a number. (n_names, dim)"""
        # "food#style_options" and "BatteryLife" are words, too.
        words = [re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", " ", name) for name in names]
        has_letters = np.array([[any(map(str.isalpha, name))] for name in words], dtype=np.float32)
        return self.mean_vectors(self.tokenize(words)) * has_letters

    def token_vectors(self, ids: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The unit vector of each token (n_tokens, dim), and its weight in a mean vector (n_tokens, 1)."""
        tokens = self.table[ids].astype(np.float32)
        tokens *= self.scale[ids]
        return tokens, self.norm[ids]

    def embed(self, sentences: Sentences) -> EmbeddedSentences:
        """What the features are made from."""
        ids, rows = np.unique(sentences.ids, return_inverse=True)
        return embed(*self.token_vectors(ids), rows, sentences.lengths)


def shares(probabilities: Probabilities) -> Probabilities:
    """The paper's scores: a softmax over the aspects of the log-odds, so that a sentence's sum to 1. Same shape."""
    sure = np.clip(probabilities, 1e-12, 1 - 1e-12)
    odds = sure / (1 - sure)  # softmax(log(odds)) is each one's share of the odds
    return odds / odds.sum(-1, keepdims=True)
