"""An episode: a few support sentences per aspect, and queries in which to detect the aspects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Episode:
    """One episode or, with a leading dimension, a batch. Sentences and aspects are indices into a corpus."""

    aspects: npt.NDArray[np.int64]  # (..., n_way) aspect numbers
    support: npt.NDArray[np.int64]  # (..., n_way, n_shot) sentence numbers
    query: npt.NDArray[np.int64]  # (..., n_query) sentence numbers
    targets: npt.NDArray[np.bool_]  # (..., n_query, n_way) whether the sentence mentions the aspect

    def __post_init__(self) -> None:
        lead = self.aspects.shape
        wanted = {"support": (*lead, self.support.shape[-1]), "targets": (*self.query.shape, lead[-1])}
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, needs {shape}")
        if self.query.shape[:-1] != lead[:-1]:
            raise ValueError(f"query has shape {self.query.shape}, but there are {lead[:-1]} episodes")

    def __len__(self) -> int:
        """The number of episodes in a batch."""
        return len(self.aspects)

    def __getitem__(self, rows: int | slice) -> Episode:
        """One episode of a batch, or a slice of the batch."""
        return Episode(self.aspects[rows], self.support[rows], self.query[rows], self.targets[rows])


class Prediction(NamedTuple):
    """What a model says of some sentences."""

    scores: npt.NDArray[np.float64]  # (n_sentences, n_aspects)
    accepted: npt.NDArray[np.bool_]  # (n_sentences, n_aspects) by the model's own threshold


class PredictedEpisodes(NamedTuple):
    """A batch of episodes with what a model says of their queries. (episodes, n_query, n_way) each"""

    ranking: npt.NDArray[np.floating]  # what AUC and argmax-F1 are measured on
    evidence: npt.NDArray[np.floating]  # what the decision is based on, comparable across queries
    selected: npt.NDArray[np.bool_]
    targets: npt.NDArray[np.bool_]
    probabilistic: bool  # whether the evidence is the probability that an aspect is mentioned
