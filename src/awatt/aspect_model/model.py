"""The detector's own model: how likely a sentence mentions each aspect, from examples, names and reviews. No torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save
from tokenizers import Tokenizer

from awatt.arrays import Sentences
from awatt.aspect_model.calibration import CalibrationPrior
from awatt.aspect_model.classifiers import Settings, shown_attention
from awatt.aspect_model.estimates import Quality, estimate_quality
from awatt.aspect_model.learner import LearnedAspects, TrainedParts, learn, left_out_probabilities, probabilities
from awatt.aspect_model.names import LabelledSentences, name_words
from awatt.aspect_model.network import Network
from awatt.aspect_model.packing import pack, unpack
from awatt.aspect_model.plain_network import PlainNetwork
from awatt.aspect_model.vectors import Table, TokenVectors
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
_REPLACED = "parameter.weight_1"  # a tensor that only the model before this one had
_EXAMPLES = "examples.jsonl"


class StoredSentences(NamedTuple):
    """Token ids of sentences, as they are saved."""

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    @classmethod
    def of(cls, sentences: Sentences) -> StoredSentences:
        """For saving."""
        return cls(sentences.ids.astype(np.int32), sentences.lengths.astype(np.int32))

    def sentences(self) -> Sentences:
        """As everything else takes them."""
        return Sentences(self.ids.astype(np.int64), self.lengths.astype(np.int64))


class Weights(NamedTuple):
    """Everything in ``model.safetensors``, under its dotted name."""

    vectors: Table
    settings: Settings
    plain: PlainNetwork
    plain_background: StoredSentences  # reviews
    network: Network
    background: StoredSentences  # half of them reviews, half sentences of other kinds
    prior: CalibrationPrior


class AspectModel:
    """Token vectors, backgrounds of ordinary sentences, and the few numbers that were learned on top of them."""

    kind: ClassVar[str] = ASPECT_MODEL
    #: scores are probabilities, each aspect judged on its own
    probabilistic: ClassVar[bool] = True
    decides_per_sentence: ClassVar[bool] = False
    learns_from_reviews: ClassVar[bool] = True

    def __init__(self, tokenizer: Tokenizer, weights: Weights, settings: Mapping[str, Any]) -> None:
        self.tokenizer, self.weights, self.settings = tokenizer, weights, dict(settings)
        self.vectors = TokenVectors(tokenizer, weights.vectors, int(settings["max_length"]), int(settings["unknown"]))
        self.parts = TrainedParts(
            vectors=self.vectors,
            settings=weights.settings,
            plain=weights.plain,
            plain_background=self.vectors.embed(weights.plain_background.sentences()),
            network=weights.network,
            background=self.vectors.embed(weights.background.sentences()),
            prior=weights.prior,
            threshold=float(settings["threshold"]),
        )

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
            if _REPLACED in tensors:
                raise _replaced(folder)
            tokenizer = Tokenizer.from_str(folder.read(TOKENIZER).decode("utf-8"))
            return cls(tokenizer, unpack(Weights, tensors), settings)
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
        return {WEIGHTS: save(pack(self.weights)), TOKENIZER: self.tokenizer.to_str().encode()}

    def config(self) -> dict[str, Any]:
        """What ``from_folder`` needs besides the files."""
        return self.settings

    # -- what every model of a detector offers

    def knows_name(self, name: str) -> bool:
        """Whether an aspect of this name can be detected without examples."""
        return bool(name_words(name))

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """The texts as token ids; a text without any token becomes one unknown token."""
        return self.vectors.tokenize(texts)

    def fit(
        self,
        examples: Sentences,
        labels: npt.NDArray[np.bool_],
        names: Sequence[str] | None = None,
        reviews: Sentences | None = None,
    ) -> LearnedAspects:
        """Learn from examples, labels (n_examples, n_aspects), the aspects' names and unlabelled sentences of a file.

        Every aspect has an example, or a name that says something.
        """
        given = LabelledSentences(examples, labels)
        return learn(self.parts, given, names or [""] * labels.shape[1], reviews)

    def predict(self, fitted: LearnedAspects, sentences: Sentences, mode: str = "auto") -> Prediction:
        """Scores and decisions. With mode "paper" the scores are a softmax over the aspects, cut as in the paper."""
        scores = self.probabilities(fitted, sentences)
        if mode == "paper":
            scores = shares(scores)
        return Prediction(scores, scores >= self.thresholds(fitted, mode))

    def thresholds(self, fitted: LearnedAspects, mode: str = "auto", aim: str = "balanced") -> Probabilities:
        """The score from which each aspect counts as found: "balanced", "precise" or "thorough". (n_aspects,)"""
        if mode == "paper":
            n_aspects = len(fitted.calibration.shift)
            return np.full(n_aspects, default_threshold(n_aspects))
        found: Probabilities = getattr(fitted.thresholds, aim)
        return found

    def default_threshold(self, n_aspects: int) -> float:
        """The threshold before anything was learned."""
        return self.threshold

    def left_out_scores(
        self,
        fitted: LearnedAspects,
        examples: Sentences,
        labels: npt.NDArray[np.bool_],
        names: Sequence[str],
        reviews: Sentences | None = None,
    ) -> Probabilities:
        """What ``predict`` would say of each example, had it been fitted without it. (n_examples, n_aspects)"""
        return left_out_probabilities(self.parts, fitted, LabelledSentences(examples, labels), names, reviews)

    def expected_quality(self, fitted: LearnedAspects, thresholds: Probabilities) -> Quality | None:
        """Expected precision, recall and F1 at these thresholds; None where nothing can be known."""
        return estimate_quality(fitted, thresholds)

    def word_weights(self, fitted: LearnedAspects, sentences: Sentences) -> Floats:
        """The share of each token in each aspect's attention; a sentence's sum to 1. (n_tokens, n_aspects)"""
        return shown_attention(self.parts.settings, fitted.evidence.classifiers, self.vectors.embed(sentences))

    def mean_vectors(self, sentences: Sentences) -> Floats:
        """A unit vector per sentence: similar sentences have similar ones. (n_sentences, dim)"""
        return self.vectors.mean_vectors(sentences)

    def pack(self, fitted: LearnedAspects) -> dict[str, npt.NDArray[Any]]:
        """What was learned, as named arrays."""
        return pack(fitted)

    def unpack(self, arrays: Mapping[str, npt.NDArray[Any]]) -> LearnedAspects:
        """The inverse of ``pack``."""
        return unpack(LearnedAspects, arrays)

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

    @property
    def threshold(self) -> float:
        """Of a detector without a file and without enough labels to know better."""
        return self.parts.threshold

    def use_threshold(self, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> str:
        """Decide with another threshold, a number from 0 to 1; gives its name."""
        number = math.nan
        with suppress(ValueError):
            number = float(wanted)
        if not 0 <= number <= 1:
            raise AwattError(f"the threshold is '{wanted}', but this model needs a number from 0 to 1.")
        self.parts = replace(self.parts, threshold=number)
        return str(number)

    @property
    def threshold_name(self) -> str:
        """For results."""
        return str(self.threshold)

    @property
    def trained_with(self) -> tuple[EpisodeShape, int]:
        """The episodes and the seed that an evaluation takes by default."""
        return EpisodeShape(), 5

    def probabilities(self, fitted: LearnedAspects, sentences: Sentences) -> Probabilities:
        """How likely each sentence mentions each aspect. (n_sentences, n_aspects)"""
        return probabilities(self.parts, fitted, sentences)


def _replaced(folder: Folder) -> DataError:
    problem = "was made by an older version of awatt, whose model this version replaces"
    if folder.path.joinpath(_EXAMPLES).is_file():
        examples = folder.path / _EXAMPLES
        advice = f"Fit it again from its examples: --examples {examples}, or AspectDetector.from_examples('{examples}')"
    elif folder.path.joinpath("aspects.safetensors").is_file():
        advice = "It was saved without its examples: fit it again with AspectDetector.from_examples(...)"
    else:
        advice = "Train it again with 'awatt train-detector'"
    return DataError(f"{problem}. {advice}.", folder.path)


def shares(probabilities: Probabilities) -> Probabilities:
    """The paper's scores: a softmax over the aspects of the log-odds, so that a sentence's sum to 1. Same shape."""
    sure = np.clip(probabilities, 1e-12, 1 - 1e-12)
    odds = sure / (1 - sure)  # softmax(log(odds)) is each one's share of the odds
    return odds / odds.sum(-1, keepdims=True)
