"""Every method works with every encoder: scores, a gradient for whatever is trained, and a saved folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from awatt.data.corpus import Corpus
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.encoders import ENCODERS
from awatt.models import MODELS
from awatt.research.system import System, SystemConfig
from awatt.research.training import squared_error

WORDS = ("the", "food", "was", "good", "waiter", "friendly", "room", "clean", "unclean", ".")
SHAPE = EpisodeShape(3, 2, 2)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    chance = np.random.default_rng(0)
    rows = [(" ".join(chance.choice(WORDS, 1 + n % 6)) + " a" * n, (f"aspect{n % 4}",), ()) for n in range(24)]
    return Corpus.from_rows("train", rows)


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_method_with_encoder(
    method: str, encoder: str, corpus: Corpus, settings: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    values = {"method": method, "encoder": encoder, "threshold": "static", "n_way": 3}
    config = SystemConfig.from_mapping({**values, "settings": {"encoder": settings[encoder]}})
    system = System.create(config, corpus.sentences)
    episode = EpisodeSampler(corpus, SHAPE, 5).batch(0, 2)
    sentences = system.encoder.tokenize(corpus.sentences)

    scored = system.train().score_fresh(sentences, corpus, episode)
    assert scored.probabilities.shape == (2, 6, 3)
    if system.model.sums_to_one:
        torch.testing.assert_close(scored.probabilities.sum(-1), torch.ones(2, 6))
    squared_error(scored).backward()
    missing = [name for name, value in system.named_parameters() if value.requires_grad and value.grad is None]
    assert missing == []
    assert all(bool(value.grad.isfinite().all()) for value in dense_parameters(system))

    system.eval().save(tmp_path, "# A card\n")
    with torch.no_grad():
        one, other = (model.score_fresh(sentences, corpus, episode) for model in (system, System.load(tmp_path)))
    assert torch.equal(one.probabilities, other.probabilities)


def dense_parameters(system: System) -> list[Any]:
    return [value for value in system.parameters() if value.grad is not None and not value.grad.is_sparse]
