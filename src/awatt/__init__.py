"""Few-shot aspect category detection: name your aspects by example, find them in every sentence."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from awatt.detector import AspectDetector, Detection, Review, Word

__version__ = "0.1.0"
__all__ = ["AspectDetector", "Detection", "Review", "Word", "__version__"]

_HOMES = dict.fromkeys(("AspectDetector", "Detection", "Review", "Word"), "awatt.detector")


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import awatt`` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'awatt' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
