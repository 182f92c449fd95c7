"""Scores and measures over many episodes of a corpus, which is encoded once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from awatt.arrays import Sentences
from awatt.config import build, choose
from awatt.data.corpus import Corpus, load_corpus
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.errors import AwattError
from awatt.metrics import argmax_f1, calibration_error, false_aspects, macro_f1, mean_ci95, none_auroc, roc_auc
from awatt.research.system import System
from awatt.thresholds.base import Scored
from awatt.thresholds.kinds import THRESHOLDS

_SENTENCES = 2500  # of the episodes that are scored at once: enough to keep Python's share small, and memory too
_CALIBRATION = 600  # validation episodes, as in training


@torch.no_grad()
def score_episodes(
    system: System,
    corpus: Corpus,
    shape: EpisodeShape,
    episodes: int,
    seed: int,
    sentences: Sentences | None = None,
) -> Iterator[Scored]:
    """Episodes 0 to ``episodes - 1`` of the corpus, scored in batches. A sentence that is met is encoded once.

    ``sentences`` is the whole corpus tokenised, for those who score it more than once.
    """
    sampler = EpisodeSampler(corpus, shape, seed)
    each = shape.n_way * (shape.n_shot + shape.n_query) + shape.n_none
    step = max(1, _SENTENCES // each)
    batches = list(sampler.batches(0, episodes, step))
    met = np.unique(np.concatenate([part.reshape(-1) for batch in batches for part in (batch.support, batch.query)]))
    system.eval()
    if sentences is None:
        part = system.encoder.tokenize([corpus.sentences[number] for number in met])
    else:
        part = sentences.take(met)
    tokens = system.encode(part)
    lengths = np.zeros(len(corpus.sentences), dtype=np.int64)  # those that are not met stay empty
    lengths[met] = part.lengths
    for batch in batches:
        yield system.score(tokens, lengths, corpus, batch)


def measure(system: System, batches: Iterable[Scored]) -> dict[str, float]:
    """AUC, macro-F1 at the system's threshold and argmax-F1: means over the episodes, and half-widths of the 95 %
    intervals (``..._ci95``), as fractions.

    Where queries mention none of the aspects also how well they are told from the others, and the number of aspects
    that 100 of them are given; of a threshold that gives probabilities their calibration error, over all episodes.
    """
    columns: dict[str, list[npt.NDArray[np.float64]]] = defaultdict(list)
    said: list[npt.NDArray[np.float64]] = []  # of all pairs of query and aspect, with the truth
    truth: list[npt.NDArray[np.bool_]] = []
    for scored in batches:
        targets, probabilities = scored.targets.cpu().numpy(), scored.probabilities.cpu().numpy()
        selected = system.threshold.select(scored).cpu().numpy()
        columns["auc"].append(roc_auc(probabilities, targets))
        columns["macro_f1"].append(macro_f1(selected, targets))
        columns["argmax_f1"].append(argmax_f1(probabilities, targets))
        has_none = not targets.any(-1).all()
        if not has_none and not system.threshold.probabilistic:
            continue
        evidence = system.threshold.evidence(scored).detach().cpu().numpy()
        if has_none:
            columns["none_auroc"].append(none_auroc(evidence, targets))
            columns["false_aspects_per_100"].append(false_aspects(selected, targets))
        if system.threshold.probabilistic:
            said.append(evidence.reshape(-1))
            truth.append(targets.reshape(-1))
    found: dict[str, float] = {}
    for name, parts in columns.items():
        interval = mean_ci95(np.concatenate(parts))
        found[name], found[f"{name}_ci95"] = interval.mean, interval.half_width
    if said:
        found["ece"] = calibration_error(np.concatenate(said), np.concatenate(truth))
    return found


def replace_threshold(system: System, wanted: str, data: Path, shape: EpisodeShape, seed: int) -> None:
    """Give the system another threshold: a number, or a kind that needs no training, calibrated on the val split.

    The run's own kind may be named, too: if it is calibrated, that is done again for episodes of this shape.
    """
    name, settings = wanted, {}
    with suppress(ValueError):
        name, settings = "static", {"value": float(wanted)}
    kind = choose(THRESHOLDS, name, "threshold")
    if not kind.trained:
        system.threshold = kind(build(kind.config_type, settings, "threshold"), shape.n_way, system.encoder.dim)
        system.threshold.to(system.device)
    elif name != system.config.threshold:
        raise AwattError(f"the {name} threshold is trained with its model. Train a run with --threshold {name}.")
    if kind.calibrated:
        validation = list(score_episodes(system, load_corpus(data, "val"), shape, _CALIBRATION, seed))
        system.threshold.calibrate(validation)
