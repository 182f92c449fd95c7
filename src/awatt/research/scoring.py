"""Scores a system on many episodes, encoding each sentence once; also replaces a system's threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from awatt.arrays import Sentences
from awatt.config import build, choose
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.episode import PredictedEpisodes
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.errors import AwattError
from awatt.research.evaluation import measure
from awatt.research.system import System
from awatt.thresholds.base import Scored
from awatt.thresholds.kinds import THRESHOLDS

_SENTENCES = 2500  # scored per batch: enough to make Python's overhead small, few enough to save memory
_CALIBRATION_EPISODES = 600  # of the val split, as in training


@torch.no_grad()
def score_episodes(
    system: System,
    corpus: Corpus,
    shape: EpisodeShape,
    episodes: int,
    seed: int,
    sentences: Sentences | None = None,
) -> Iterator[Scored]:
    """Score episodes 0 to ``episodes - 1`` of the corpus, in batches. Each sentence is encoded once.

    ``sentences`` is the tokenized corpus, for callers that score it more than once.
    """
    sampler = EpisodeSampler(corpus, shape, seed)
    per_episode = shape.n_way * (shape.n_shot + shape.n_query) + shape.n_none
    step = max(1, _SENTENCES // per_episode)
    batches = list(sampler.batches(0, episodes, step))
    used = np.unique(np.concatenate([part.reshape(-1) for batch in batches for part in (batch.support, batch.query)]))
    system.eval()
    if sentences is None:
        part = system.encoder.tokenize([corpus.sentences[number] for number in used])
    else:
        part = sentences.take(used)
    tokens = system.encode(part)
    lengths = np.zeros(len(corpus.sentences), dtype=np.int64)  # unused sentences stay empty
    lengths[used] = part.lengths
    for batch in batches:
        yield system.score(tokens, lengths, corpus, batch)


def predictions(system: System, batches: Iterable[Scored]) -> Iterator[PredictedEpisodes]:
    """Apply the system's threshold to scored episodes."""
    threshold = system.threshold
    for scored in batches:
        evidence = threshold.evidence(scored)
        yield PredictedEpisodes(
            ranking=scored.probabilities.cpu().numpy(),
            evidence=evidence.detach().cpu().numpy(),
            selected=threshold.accept(evidence).cpu().numpy(),
            targets=scored.targets.cpu().numpy(),
            probabilistic=threshold.probabilistic,
        )


def measure_system(system: System, batches: Iterable[Scored]) -> dict[str, float]:
    """The metrics of scored episodes with the system's threshold."""
    return measure(predictions(system, batches))


def replace_threshold(system: System, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> None:
    """Replace the threshold with a number, or with a kind that needs no training, calibrated on the val split.

    The run's own kind is allowed too: if it is calibrated, it is recalibrated for episodes of this shape.
    """
    name, settings = wanted, {}
    with suppress(ValueError):
        name, settings = "static", {"value": float(wanted)}
        if not 0 <= settings["value"] <= 1:
            raise AwattError(f"the threshold is {wanted}, needs a number from 0 to 1, or the name of a threshold.")
    kind = choose(THRESHOLDS, name, "threshold")
    if not kind.stage:
        system.threshold = kind(build(kind.config_type, settings, "threshold"), shape.n_way, system.encoder.dim)
        system.threshold.to(system.device)
    elif name != system.config.threshold:
        raise AwattError(f"the {name} threshold is trained with its model. Train a run with --threshold {name}.")
    if kind.calibrated:
        validation = list(score_episodes(system, load_corpus(data, "val"), shape, _CALIBRATION_EPISODES, seed))
        system.threshold.calibrate(validation)
