"""The detector's own model: how likely a sentence mentions each aspect, from examples, names and reviews. No torch."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save
from tokenizers import Tokenizer

from awatt.arrays import Sentences
from awatt.aspect_model.calibration import CalibrationPrior
from awatt.aspect_model.classifiers import Settings, attention_shares, shown_attention, shown_weights
from awatt.aspect_model.context import Memory
from awatt.aspect_model.estimates import Quality, estimate_quality
from awatt.aspect_model.learner import (
    LearnedAspects,
    OnPart,
    TrainedParts,
    learn,
    left_out_probabilities,
    probabilities,
    tabulate_words,
)
from awatt.aspect_model.names import LabelledSentences
from awatt.aspect_model.network import Network
from awatt.aspect_model.packing import pack, unpack
from awatt.aspect_model.plain_network import PlainNetwork
from awatt.aspect_model.schema import check_sentences, check_tensors, check_tokens
from awatt.aspect_model.student.encoder import Student, StudentEncoder
from awatt.aspect_model.vectors import Table, TokenVectors, WordTable
from awatt.data.corpus import Corpus
from awatt.data.episode import PredictedEpisodes, Prediction
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.errors import AwattError, DataError, require
from awatt.folders import ASPECT_MODEL, BASE, TOKENIZER, WEIGHTS, Folder, open_folder, read_tokenizer, write_folder
from awatt.thresholds.default import default_threshold

if TYPE_CHECKING:
    from awatt.aspect_model.transformer import TransformerContext

#: The models of the package: static vectors alone, and with the student's beside them.
BUNDLED, ACCURATE = (Path(__file__).parent / "weights" / name for name in ("fast", "accurate"))
Floats = npt.NDArray[np.float32]
Probabilities = npt.NDArray[np.float64]
_HEAD = ("format", "kind", "awatt", "sha256")  # of config.json: written anew
_REPLACED = "parameter.weight_1"  # a tensor that only the model before this one had
_EXAMPLES = "examples.jsonl"
_ENCODER = "encoder"  # of config.json: what the encoder of ENCODER_WEIGHTS is
ENCODER_WEIGHTS = "encoder.safetensors"


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
    background: StoredSentences  # sentences of other kinds: news and tweets
    prior: CalibrationPrior
    student: Student | None = None  # predicts vectors in context


class AspectModel:
    """Token vectors, backgrounds of ordinary sentences, and the few numbers that were learned on top of them.

    With a student, or with another encoder, a second vector per token depends on the sentence.
    """

    kind: ClassVar[str] = ASPECT_MODEL
    #: scores are probabilities, each aspect judged on its own
    probabilistic: ClassVar[bool] = True
    decides_per_sentence: ClassVar[bool] = False
    learns_from_reviews: ClassVar[bool] = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        weights: Weights,
        settings: Mapping[str, Any],
        encoder: TransformerContext | None = None,
    ) -> None:
        self.tokenizer, self.weights, self.settings, self.encoder = tokenizer, weights, dict(settings), encoder
        self.fixed: float | None = None  # a threshold for all episodes, in place of its own
        context = encoder if weights.student is None else StudentEncoder(weights.student, weights.vectors)
        self.vectors = TokenVectors(
            tokenizer,
            weights.vectors,
            int(settings["max_length"]),
            int(settings["unknown"]),
            None if context is None else Memory(context),
        )
        self.parts = TrainedParts(
            vectors=self.vectors,
            settings=weights.settings,
            plain=weights.plain,
            reviews=weights.plain_background.sentences(),
            plain_background=self.vectors.embed(weights.plain_background.sentences()),
            network=weights.network,
            background=self.vectors.embed(weights.background.sentences()),
            prior=weights.prior,
            threshold=float(settings["threshold"]),
        )

        self._latest: tuple[LearnedAspects, WordTable | None] | None = None  # the detector used last

    # -- folders

    @classmethod
    def load(cls, path: Path | None = None) -> Self:
        """From a saved folder; the bundled one by default."""
        return cls.from_folder(open_folder(path or BUNDLED, ASPECT_MODEL))

    @classmethod
    def from_folder(cls, folder: Folder) -> Self:
        """From a folder that has been opened."""
        settings = {name: value for name, value in folder.config.items() if name not in _HEAD}
        folder.number("threshold", 0, 1, float)
        folder.number("max_length", 1, 2**20)
        try:
            tensors = load(folder.read(WEIGHTS))
            if _REPLACED in tensors:
                raise _replaced(folder)
            base = folder
            if described := settings.pop(BASE, None):
                base = open_folder(BUNDLED, ASPECT_MODEL)
                shared = {name: array for name, array in load(base.read(WEIGHTS)).items() if _is_vectors(name)}
                if described != _describe_base(shared):
                    raise _other_base(folder)
                tensors |= shared
            check_tensors(folder, tensors, (BUNDLED, ACCURATE))
            tokenizer = read_tokenizer(base)
            weights = unpack(Weights, tensors)
            check_tokens(folder, tokenizer, weights.vectors)
            n_tokens = len(weights.vectors.table)
            folder.number("unknown", 0, n_tokens - 1)
            for background in (weights.plain_background, weights.background):
                check_sentences(folder, WEIGHTS, *background, n_tokens)
            encoder = _read_encoder(folder, tokenizer) if settings.pop(_ENCODER, None) else None
            return cls(tokenizer, weights, settings, encoder)
        except DataError:
            raise
        except KeyError as error:
            raise DataError(f"lacks the tensor {error}. Copy the folder again.", folder.path / WEIGHTS) from None
        except (SafetensorError, IndexError, TypeError, ValueError) as error:
            raise DataError(f"cannot be read as a model ({error}). Copy the folder again.", folder.path) from None

    def save(self, path: Path, slim: bool = False) -> None:
        """Write the folder; ``slim`` leaves out what the bundled model "fast" has: token vectors and tokenizer."""
        files, config = self.files(), self.config()
        if slim:
            base, tensors = AspectModel.load(), pack(self.weights)
            shared = {name: array for name, array in tensors.items() if _is_vectors(name)}
            described, tokenizer = _describe_base(shared), files.pop(TOKENIZER)
            if described != _describe_base(pack(base.weights)) or tokenizer != base.files()[TOKENIZER]:
                advice = "Leave out --slim."
                raise AwattError(f"this model's static vectors are not those of the package's fast model. {advice}")
            own = {name: array for name, array in tensors.items() if name not in shared}
            files[WEIGHTS], config = save(own), {BASE: described, **config}
        write_folder(path, self.kind, config, files)

    def files(self) -> dict[str, bytes]:
        """The model's files, for a folder."""
        found = {WEIGHTS: save(pack(self.weights)), TOKENIZER: self.tokenizer.to_str().encode()}
        return found if self.encoder is None else {**found, ENCODER_WEIGHTS: self.encoder.tensors()}

    def config(self) -> dict[str, Any]:
        """What ``from_folder`` needs besides the files."""
        return self.settings if self.encoder is None else {**self.settings, _ENCODER: self.encoder.details()}

    # -- what every model of a detector offers

    @property
    def max_length(self) -> int:
        """The number of tokens of a text that it reads."""
        return self.vectors.max_length

    def knows_name(self, name: str) -> bool:
        """Whether an aspect of this name can be detected without examples."""
        return bool(self.vectors.read_names([name])[0])

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
        on_part: OnPart = lambda done, total: None,
    ) -> Probabilities:
        """What ``predict`` would say of each example, had it been fitted without it. (n_examples, n_aspects)"""
        return left_out_probabilities(self.parts, fitted, LabelledSentences(examples, labels), names, reviews, on_part)

    def expected_quality(self, fitted: LearnedAspects, thresholds: Probabilities) -> Quality | None:
        """Expected precision, recall and F1 at these thresholds; None where nothing can be known."""
        return estimate_quality(fitted, thresholds)

    def word_weights(self, fitted: LearnedAspects, sentences: Sentences) -> Floats:
        """The share of each token in each aspect's attention; a sentence's sum to 1. (n_tokens, n_aspects)"""
        table = self._table(fitted)
        if table is None or not len(sentences.lengths):
            return shown_attention(self.parts.settings, fitted.evidence.classifiers, self.vectors.read(sentences))
        columns = shown_weights(len(fitted.evidence.names))
        return attention_shares(table.rows(sentences.ids, columns), sentences.lengths)

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
                selected=(found.accepted if self.fixed is None else found.scores >= self.fixed)[None],
                targets=batch.targets,
                probabilistic=True,
            )

    @property
    def threshold(self) -> float:
        """Of a detector without a file, names, and enough labels to know better."""
        return self.parts.threshold

    def with_threshold(self, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> Self:
        """A copy that decides in episodes with another threshold, a number from 0 to 1."""
        number = math.nan
        with suppress(ValueError):
            number = float(wanted)
        if not 0 <= number <= 1:
            raise AwattError(f"the threshold is '{wanted}', but this model needs a number from 0 to 1.")
        made = copy(self)
        made.fixed = number
        return made

    @property
    def threshold_name(self) -> str:
        """For results."""
        return str(self.threshold if self.fixed is None else self.fixed)

    @property
    def trained_with(self) -> tuple[EpisodeShape, int]:
        """The episodes and the seed that an evaluation takes by default."""
        return EpisodeShape(), 5

    def probabilities(self, fitted: LearnedAspects, sentences: Sentences) -> Probabilities:
        """How likely each sentence mentions each aspect. (n_sentences, n_aspects)"""
        return probabilities(self.parts, fitted, sentences, self._table(fitted))

    def _table(self, fitted: LearnedAspects) -> WordTable | None:
        """What words say to this detector: kept for the one used last."""
        latest = self._latest
        if latest is None or latest[0] is not fitted:
            latest = self._latest = fitted, tabulate_words(self.parts, fitted)
        return latest[1]


def _is_vectors(name: str) -> bool:
    return name.startswith("vectors.")


def _read_encoder(folder: Folder, tokenizer: Tokenizer) -> TransformerContext:
    for package in ("torch", "transformers"):
        require(package, "transformers")
    from awatt.aspect_model.transformer import TransformerContext

    details = folder.setting(_ENCODER, dict)
    try:
        return TransformerContext.restore(details, folder.read(ENCODER_WEIGHTS), tokenizer)
    except (KeyError, RuntimeError) as error:
        raise folder.error(f"does not fit {ENCODER_WEIGHTS} ({error!r})") from None


def _describe_base(tensors: Mapping[str, npt.NDArray[Any]]) -> dict[str, str]:
    """Where a slim folder takes its token vectors from: the name of the model, and a digest of the vectors."""
    digest = hashlib.sha256()
    for name in filter(_is_vectors, sorted(tensors)):
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return {"model": BUNDLED.name, "sha256": digest.hexdigest()}


def _other_base(folder: Folder) -> DataError:
    problem = f"takes its token vectors from the package's model '{BUNDLED.name}', but from another version of it"
    return DataError(f"{problem}. Train it again with 'awatt train-detector'.", folder.path)


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
