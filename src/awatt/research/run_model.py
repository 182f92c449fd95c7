"""A trained system as a model for the detector: any number of aspects, with unequal numbers of examples."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from awatt.arrays import Sentences
from awatt.config import build
from awatt.data.corpus import Corpus
from awatt.data.episode import PredictedEpisodes, Prediction
from awatt.data.sampler import EpisodeShape
from awatt.encoders import Encoded
from awatt.errors import AwattError
from awatt.folders import RUN, Folder, open_folder
from awatt.models import DistanceModel
from awatt.research.scoring import predictions, replace_threshold, score_episodes
from awatt.research.system import System
from awatt.thresholds.base import Scored, Threshold
from awatt.thresholds.default import default_threshold
from awatt.thresholds.static import Static, StaticConfig

_log = logging.getLogger(__name__)


class Support(NamedTuple):
    """What a method keeps of the examples. An example with two aspects is in the support of both."""

    summaries: tuple[Tensor, ...]  # (1, ...) per aspect
    targets: Tensor  # (n_support, n_aspects) the aspects each example mentions
    scores: Tensor  # (n_support, n_aspects) the examples' own scores, if the threshold needs them; otherwise empty
    means: Tensor  # (n_support, dim) their mean vectors, if the threshold needs them; otherwise empty


class RunModel:
    """A run of ``awatt train`` with the interface of a detector's model (``detector.models.Model``)."""

    kind: ClassVar[str] = RUN
    learns_from_reviews: ClassVar[bool] = False

    def __init__(self, system: System, path: Path) -> None:
        self.system, self.path = system.eval(), path
        self.threshold_name = system.config.threshold  # for results
        self.tokenizer: Tokenizer = system.encoder.tokenizer

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """From the folder of a run."""
        return cls.from_folder(open_folder(Path(path), RUN))

    @classmethod
    def from_folder(cls, folder: Folder) -> Self:
        """Load from an opened folder."""
        return cls(System.from_folder(folder), folder.path)

    @property
    def probabilistic(self) -> bool:
        """Whether scores are probabilities (the acceptance threshold) or the paper's ranking (any other)."""
        return self.system.threshold.probabilistic

    @property
    def decides_per_sentence(self) -> bool:
        """Whether its threshold is another one for each sentence (policy), rather than a number."""
        return self.system.threshold.constant(self.trained_with[0].n_way) is None

    def files(self) -> dict[str, bytes]:
        """The files of its folder: name -> content."""
        return self.system.files()

    def config(self) -> dict[str, Any]:
        """The settings for ``config.json``."""
        return self.system.to_config()

    # -- the detector's interface

    @property
    def max_length(self) -> int:
        """The number of tokens of a text that it reads."""
        return self.system.encoder.max_length

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """Token ids of the texts, by the encoder's tokenizer."""
        return self.system.encoder.tokenize(texts)

    def knows_name(self, name: str) -> bool:
        """The paper's methods do not look at names."""
        return False

    @torch.no_grad()
    def fit(
        self,
        examples: Sentences,
        labels: npt.NDArray[np.bool_],
        names: Sequence[str] | None = None,
        reviews: Sentences | None = None,
    ) -> Support:
        """Learn from examples and labels (n_examples, n_aspects); the paper's methods use neither names nor reviews."""
        threshold = self._threshold(labels.shape[1], warn=True)
        tokens, lengths = self.system.encode(examples), examples.lengths
        members = [np.flatnonzero(column) for column in labels.T]
        summaries = self.system.model.summarise_each(
            [Encoded.pick(tokens, lengths, numbers[None]) for numbers in members]
        )
        order = np.concatenate(members)
        support = Encoded.pick(tokens, lengths, order)
        empty = tokens.new_zeros(0)
        return Support(
            tuple(summaries),
            torch.from_numpy(labels[order]).to(tokens.device),
            self.system.model.scores_each(support, summaries) if "examples" in threshold.sees else empty,
            support.mean() if "sentences" in threshold.sees else empty,
        )

    @torch.no_grad()
    def predict(self, fitted: Support, sentences: Sentences, mode: str = "auto") -> Prediction:
        """Scores (the ranking, or probabilities with the acceptance threshold) and the threshold's decisions.

        Mode "paper" always uses the ranking and the paper's static threshold, whatever the run was trained with.
        """
        threshold = self._threshold(len(fitted.summaries))
        if mode == "paper":
            threshold = self._static(len(fitted.summaries))
        scored = self._score(fitted, sentences)
        evidence = threshold.evidence(scored)
        scores, accepted = evidence if threshold.probabilistic else scored.probabilities, threshold.accept(evidence)
        return Prediction(scores[0].cpu().numpy().astype(np.float64), accepted[0].cpu().numpy())

    def _score(self, fitted: Support, sentences: Sentences) -> Scored:
        """Score the sentences as the queries of one episode."""
        model, query = self.system.model, Encoded(self.system.encode(sentences), sentences.lengths)
        differences = model.differences_each(query, fitted.summaries) if isinstance(model, DistanceModel) else None
        scores = model.scores_each(query, fitted.summaries) if differences is None else -differences.sum(-1)
        return Scored(
            probabilities=model.normalise(scores)[None],
            scores=scores[None],
            differences=None if differences is None else differences[None],
            support_targets=fitted.targets[None],
            targets=torch.zeros_like(scores, dtype=torch.bool)[None],  # unknown; only training uses them
            query=query.mean()[None] if len(fitted.means) else None,
            support=fitted.means[None] if len(fitted.means) else None,
            support_scores=fitted.scores[None] if len(fitted.scores) else None,
        )

    def _threshold(self, n_aspects: int, warn: bool = False) -> Threshold:
        """The run's threshold, or the paper's static one if it does not support this number of aspects."""
        objection = self.system.threshold.objection(n_aspects)
        if objection is None:
            return self.system.threshold
        if warn:
            _log.warning(
                "%s: %s. Using the paper's static threshold for %d aspects (%.2f) instead.",
                *(self.path, objection, n_aspects, default_threshold(n_aspects)),
            )
        return self._static(n_aspects)

    def _static(self, n_aspects: int) -> Threshold:
        return Static(StaticConfig(), n_aspects, self.system.encoder.dim)

    def thresholds(self, fitted: Support, mode: str = "auto", aim: str = "balanced") -> npt.NDArray[np.float64]:
        """The score from which each aspect counts as found; NaN if decided for each sentence anew. (n_aspects,)"""
        if aim != "balanced":
            advice = "Give a number, or use the bundled model."
            raise AwattError(f"the threshold is '{aim}', but {self.path} is a run, which has one aim only. {advice}")
        n_aspects = len(fitted.summaries)
        number = (self._static(n_aspects) if mode == "paper" else self._threshold(n_aspects)).constant(n_aspects)
        return np.full(n_aspects, np.nan if number is None else number)

    def default_threshold(self, n_aspects: int) -> float:
        """The run's number; the paper's static one if it decides for each sentence anew."""
        number = self._threshold(n_aspects).constant(n_aspects)
        return default_threshold(n_aspects) if number is None else number

    @torch.no_grad()
    def word_weights(self, fitted: Support, sentences: Sentences) -> npt.NDArray[np.floating] | None:
        """The method's attention (n_tokens, n_aspects), which sums to 1 over a sentence; None without attention."""
        query = Encoded(self.system.encode(sentences), sentences.lengths)
        found = [self.system.model.word_weights(query, summary) for summary in fitted.summaries]
        weights = [each for each in found if each is not None]
        return torch.cat(weights, -1).cpu().numpy() if weights else None

    @torch.no_grad()
    def mean_vectors(self, sentences: Sentences) -> npt.NDArray[np.float32]:
        """One unit vector per sentence; similar sentences have similar vectors. (n_sentences, dim)"""
        means = Encoded(self.system.encode(sentences), sentences.lengths).mean()
        return np.asarray(F.normalize(means, dim=-1).cpu().numpy())

    def pack(self, fitted: Support) -> dict[str, npt.NDArray[Any]]:
        """The result of ``fit`` as named arrays."""
        arrays = {f"summary.{number}": summary for number, summary in enumerate(fitted.summaries)}
        arrays |= {"targets": fitted.targets, "scores": fitted.scores, "means": fitted.means}
        return {name: value.detach().cpu().contiguous().numpy() for name, value in arrays.items()}

    def unpack(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Support:
        """The inverse of ``pack``."""
        tensors = {name: torch.from_numpy(np.array(value)).to(self.system.device) for name, value in arrays.items()}
        count = sum(name.startswith("summary.") for name in tensors)
        summaries = tuple(tensors[f"summary.{number}"] for number in range(count))
        return Support(summaries, tensors["targets"], tensors["scores"], tensors["means"])

    # -- evaluation

    @property
    def trained_with(self) -> tuple[EpisodeShape, int]:
        """The episode shape and the seed of the training."""
        found = self.system.trained_with
        try:
            return build(EpisodeShape, found["episode"], "episode"), int(found["seed"])
        except (KeyError, TypeError, ValueError, AttributeError):
            said = f"{self.path} does not say which episodes it was trained with"
            raise AwattError(f"{said}: its config.json is damaged, or an early one. Train it again.") from None

    def with_threshold(self, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> Self:
        """A copy with another threshold, a number or a kind that needs no training."""
        made = type(self)(deepcopy(self.system), self.path)
        replace_threshold(made.system, wanted, data, shape, seed)
        made.threshold_name = wanted
        return made

    def predict_episodes(
        self, corpus: Corpus, shape: EpisodeShape, episodes: int, seed: int
    ) -> Iterator[PredictedEpisodes]:
        """Predict episodes 0 to ``episodes - 1`` of the corpus, in batches."""
        threshold = self.system.threshold
        if threshold.calibrated and (objection := threshold.objection(shape.n_way)):
            advice = f"Add --threshold {self.threshold_name} to calibrate it again, or use --threshold static."
            raise AwattError(f"{self.path}: {objection}, the episodes have {shape.n_way}. {advice}")
        return predictions(self.system, score_episodes(self.system, corpus, shape, episodes, seed))
