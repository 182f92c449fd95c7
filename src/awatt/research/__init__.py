"""The paper's systems: assembled from their parts, trained, evaluated and saved. Its names for research."""

import importlib

_MODULES = {
    "Corpus": "awatt.data.corpus",
    "load_corpus": "awatt.data.corpus",
    "load_sample": "awatt.data.corpus",
    "Episode": "awatt.data.episode",
    "EpisodeSampler": "awatt.data.sampler",
    "EpisodeShape": "awatt.data.sampler",
    "ENCODERS": "awatt.encoders",
    "Encoder": "awatt.encoders",
    "MODELS": "awatt.models",
    "DistanceModel": "awatt.models",
    "FewShotModel": "awatt.models",
    "THRESHOLDS": "awatt.thresholds.kinds",
    "Threshold": "awatt.thresholds.base",
    "RunModel": "awatt.research.run_model",
    "System": "awatt.research.system",
    "evaluate": "awatt.research.evaluation",
    "resolve_run": "awatt.research.settings",
    "train": "awatt.research.training",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Import a name when it is first used: most need torch, an evaluation of the bundled model does not."""
    if name not in _MODULES:
        raise AttributeError(f"module 'awatt.research' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
