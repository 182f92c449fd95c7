"""The bundled model on episodes of a corpus: its probabilities, and the rules that turn them into aspects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from awatt.aspect_model.model import Matcher
from awatt.data.corpus import Corpus
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.metrics import calibration_error, false_aspects, macro_f1, mean_ci95, none_auroc, roc_auc

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """Episodes that a matcher has scored."""

    probabilities: Floats  # (episodes, n_query, n_way)
    targets: Bools  # (episodes, n_query, n_way)


def judge(matcher: Matcher, corpus: Corpus, shape: EpisodeShape, episodes: int, seed: int) -> Judged:
    """Episodes 0 to ``episodes - 1`` of the corpus. The aspects' names are not used: the benchmark gives none.

    An example counts for every aspect of the episode that it mentions, and against the others.
    """
    sampler = EpisodeSampler(corpus, shape, seed)
    sentences = matcher.tokenize(corpus.sentences)
    probabilities, targets = [], []
    for batch in sampler.batches(0, episodes, 1):
        episode = batch[0]
        support = np.unique(episode.support)
        labels = corpus.mentions[support[:, None], episode.aspects]
        adapted = matcher.adapt(sentences.take(support), labels)
        probabilities.append(matcher.probabilities(adapted, sentences.take(episode.query)))
        targets.append(episode.targets)
    return Judged(np.stack(probabilities), np.stack(targets))


def measure(judged: Judged, threshold: float) -> dict[str, float]:
    """Means over the episodes, with half-widths of the 95 % intervals, and what is said of off-topic sentences."""
    chosen = judged.probabilities >= threshold
    columns = {"auc": roc_auc(judged.probabilities, judged.targets), "macro_f1": macro_f1(chosen, judged.targets)}
    found: dict[str, float] = {}
    for name, values in columns.items():
        interval = mean_ci95(values)
        found[name], found[f"{name}_ci95"] = interval.mean, interval.half_width
    if not judged.targets.any(-1).all():
        found["none_auroc"] = float(np.nanmean(none_auroc(judged.probabilities, judged.targets)))
        found["false_aspects_per_100"] = float(np.nanmean(false_aspects(chosen, judged.targets)))
    found["ece"] = calibration_error(judged.probabilities.reshape(-1), judged.targets.reshape(-1))
    return found


def reliability(judged: Judged, bins: int = 10) -> list[tuple[float, float, int]]:
    """For each tenth of the scale: mean probability, share that was right, how many."""
    probabilities, targets = judged.probabilities.reshape(-1), judged.targets.reshape(-1)
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    return [
        (
            float(probabilities[place == number].mean()),
            float(targets[place == number].mean()),
            int((place == number).sum()),
        )
        for number in range(bins)
        if (place == number).any()
    ]
