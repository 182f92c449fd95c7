"""Measures over many episodes, the same for every model: a run of ``awatt train`` or the detector's own. No torch."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from awatt.data.corpus import Corpus, load_corpus
from awatt.data.episode import PredictedEpisodes
from awatt.data.sampler import EpisodeShape
from awatt.metrics import argmax_f1, calibration_error, false_aspects, macro_f1, mean_ci95, none_auroc, roc_auc


class EpisodeModel(Protocol):
    """What an evaluation needs of a model."""

    @property
    def trained_with(self) -> tuple[EpisodeShape, int]:
        """The episodes and the seed to take by default."""

    @property
    def threshold_name(self) -> str:
        """What it decides with."""

    def use_threshold(self, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> str:
        """Decide with another threshold; gives its name."""

    def predict_episodes(
        self, corpus: Corpus, shape: EpisodeShape, episodes: int, seed: int
    ) -> Iterator[PredictedEpisodes]:
        """Episodes 0 to ``episodes - 1`` of the corpus, in batches."""


def measure(batches: Iterable[PredictedEpisodes]) -> dict[str, float]:
    """AUC, macro-F1 and argmax-F1: means over the episodes, and half-widths of the 95 % intervals (``..._ci95``).

    Where queries mention none of the aspects also how well they are told from the others, and the number of aspects
    that 100 of them are given; where the evidence is a probability its calibration error, over all episodes.
    """
    columns: dict[str, list[npt.NDArray[np.float64]]] = defaultdict(list)
    probabilities: list[npt.NDArray[np.floating]] = []  # of all pairs of query and aspect, with the truth
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
    """The measures of a model on episodes of a split, and what they depend on.

    ``threshold``: another one than the model's. ``shape``: fields of ``EpisodeShape``, by default the training's.
    """
    start = time.perf_counter()
    default_shape, default_seed = model.trained_with
    asked = replace(default_shape, **shape)
    seed = default_seed if seed is None else seed
    name = model.threshold_name if threshold is None else model.use_threshold(threshold, data, asked, seed)
    found = measure(model.predict_episodes(load_corpus(data, split), asked, episodes, seed))
    return {
        # One episode has no interval, and JSON no NaN.
        **{measured: None if math.isnan(value) else value for measured, value in found.items()},
        "episodes": episodes,
        "threshold": name,
        "split": split,
        "seed": seed,
        **asdict(asked),
        "seconds": round(time.perf_counter() - start, 3),
    }
