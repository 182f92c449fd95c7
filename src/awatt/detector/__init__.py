"""`AspectDetector` and its parts: the tool people use on their own sentences. Nothing here needs episodes."""

from typing import Any

_PUBLIC = {"AspectDetector": "detector", "Detection": "results", "Review": "results", "Word": "results"}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'awatt.detector' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"awatt.detector.{_PUBLIC[name]}"), name)
