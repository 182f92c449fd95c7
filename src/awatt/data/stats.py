"""What a dataset holds, and what its episodes look like (the paper's table of datasets and its footnotes)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from awatt.data.corpus import Corpus, find_split, load_corpus
from awatt.data.fewasp import SPLITS, read_json
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.errors import AwattError

_BATCH = 500


def dataset_stats(folder: Path, episodes: int, shape: EpisodeShape, seed: int) -> dict[str, object]:
    """Counts of each split that the folder has, and where they come from."""
    path = folder / "provenance.json"
    provenance = read_json(path) if path.is_file() else None
    found: dict[str, object] = {}
    for split in SPLITS:
        try:
            find_split(folder, split)
        except AwattError:
            continue
        corpus = load_corpus(folder, split)
        sampled = episode_stats(corpus, episodes, shape, seed)  # first: it refuses a corpus without any aspect
        found[split] = corpus_stats(corpus) | sampled | _build_shares(provenance, split)
    if not found:
        find_split(folder, SPLITS[0])  # says what a dataset's folder needs
    return {"splits": found, "provenance": provenance}


def _build_shares(provenance: Any, split: str) -> dict[str, float]:
    """What only the build could know of a split's rows: see ``mixture.shares``."""
    known = (provenance or {}).get("splits", {}).get(split, {})
    names = ("single_aspect_share", "in_single_file_share")
    return {name: known[name] for name in names if known.get(name) is not None}


def corpus_stats(corpus: Corpus) -> dict[str, float]:
    """Classes, rows (a sentence counts for each aspect it is listed under), lengths, multi-aspect sentences."""
    words = np.array([text.count(" ") + 1 for text in corpus.sentences])
    listed = np.concatenate(corpus.members)
    lengths = words[listed]
    several = corpus.mentions.sum(1)[listed] > 1
    return {
        "classes": len(corpus.aspects),
        "instances": len(listed),
        "instances_a_class_min": min(map(len, corpus.members)),
        "instances_a_class_max": max(map(len, corpus.members)),
        "sentences": len(corpus.sentences),
        "one_aspect_rows": int((~several).sum()),
        "multi_aspect_share": float(several.mean()),
        "words_mean": float(lengths.mean()),
        "words_median": float(np.median(lengths)),
        "words_p95": float(np.percentile(lengths, 95)),
        "words_max": int(lengths.max()),
    }


def episode_stats(corpus: Corpus, episodes: int, shape: EpisodeShape, seed: int) -> dict[str, float]:
    """The paper's footnotes: queries with more than one label, classes whose examples share a second aspect."""
    sampler = EpisodeSampler(corpus, shape, seed)
    several = second = 0.0
    for first in range(0, episodes, _BATCH):
        batch = sampler.batch(first, min(_BATCH, episodes - first))
        several += float((batch.targets.sum(-1) > 1).mean(-1).sum())
        shared = corpus.mentions[batch.support].all(2).sum(-1)  # (episodes, n_way) aspects that all examples mention
        second += float((shared > 1).mean(-1).sum())
    return {
        "episodes": episodes,
        "n_way": shape.n_way,
        "n_shot": shape.n_shot,
        "multi_label_query_share": several / episodes,
        "second_common_aspect_share": second / episodes,
    }
