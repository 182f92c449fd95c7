"""Metrics over many episodes, for a run of ``awatt train`` and the detector's own model alike. Needs no torch."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from awatt.data.corpus import Corpus, load_corpus
from awatt.data.episode import PredictedEpisodes
from awatt.data.sampler import EpisodeShape
from awatt.metrics import argmax_f1, calibration_error, false_aspects, macro_f1, mean_ci95, none_auroc, roc_auc


class EpisodeModel(Protocol):
    """The interface that an evaluation needs."""

    @property
    def trained_with(self) -> tuple[EpisodeShape, int]:
        """The default episode shape and seed."""

    @property
    def threshold_name(self) -> str:
        """The name of its threshold, for results."""

    def with_threshold(self, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> Self:
        """A copy that decides with another threshold."""

    def predict_episodes(
        self, corpus: Corpus, shape: EpisodeShape, episodes: int, seed: int
    ) -> Iterator[PredictedEpisodes]:
        """Predict episodes 0 to ``episodes - 1`` of the corpus, in batches."""


def measure(batches: Iterable[PredictedEpisodes]) -> dict[str, float]:
    """AUC, macro-F1 and argmax-F1: means over the episodes, and half-widths of their 95 % intervals (``..._ci95``).

    With off-topic queries also the AUROC of off-topic against other queries, and the false aspects per 100 off-topic
    queries; for probabilistic models also the expected calibration error over all episodes.
    """
    columns: dict[str, list[npt.NDArray[np.float64]]] = defaultdict(list)
    probabilities: list[npt.NDArray[np.floating]] = []  # of all (query, aspect) pairs
    truth: list[npt.NDArray[np.bool_]] = []
    for batch in batches:
        columns["auc"].append(roc_auc(batch.ranking, batch.targets))
        columns["macro_f1"].append(macro_f1(batch.selected, batch.targets))
        columns["argmax_f1"].append(argmax_f1(batch.ranking, batch.targets))
        if not batch.targets.any(-1).all():
            columns["none_auroc"].append(none_auroc(batch.evidence, batch.targets))
            columns["false_aspects_per_100"].append(false_aspects(batch.selected, batch.targets))
        if batch.probabilistic:
            probabilities.append(batch.evidence.reshape(-1))
            truth.append(batch.targets.reshape(-1))
    found: dict[str, float] = {}
    for name, parts in columns.items():
        interval = mean_ci95(np.concatenate(parts))
        found[name], found[f"{name}_ci95"] = interval.mean, interval.half_width
    if probabilities:
        found["ece"] = calibration_error(np.concatenate(probabilities), np.concatenate(truth))
    return found


def evaluate(
    model: EpisodeModel,
    data: Path,
    split: str = "test",
    episodes: int = 600,
    threshold: str | None = None,
    seed: int | None = None,
    **shape: Any,
) -> dict[str, Any]:
    """Evaluate a model on episodes of a split. The result has the metrics and every setting they depend on.

    ``threshold`` replaces the model's own. ``shape`` overrides fields of the model's default ``EpisodeShape``.
    """
    start = time.perf_counter()
    default_shape, default_seed = model.trained_with
    used_shape = replace(default_shape, **shape)
    seed = default_seed if seed is None else seed
    if threshold is not None:
        model = model.with_threshold(threshold, data, used_shape, seed)
    found = measure(model.predict_episodes(load_corpus(data, split), used_shape, episodes, seed))
    return {
        # A single episode has no interval, and JSON has no NaN.
        **{metric: None if math.isnan(value) else value for metric, value in found.items()},
        "episodes": episodes,
        "threshold": model.threshold_name,
        "split": split,
        "seed": seed,
        **asdict(used_shape),
        "seconds": round(time.perf_counter() - start, 3),
    }
