"""Few-shot aspect category detection: name your aspects by example, find them in every sentence."""

TYPE_CHECKING = False  # not from typing: Ctrl-C while that is imported would show a traceback
if TYPE_CHECKING:
    from awatt.detector import AspectDetector, Detection, Review, Word
    from awatt.detector.new_aspects import suggest_aspects

__version__ = "0.1.0"
__all__ = ["AspectDetector", "Detection", "Review", "Word", "__version__", "suggest_aspects"]

_MODULES = dict.fromkeys(("AspectDetector", "Detection", "Review", "Word"), "awatt.detector")
_MODULES["suggest_aspects"] = "awatt.detector.new_aspects"


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that ``import awatt`` stays fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'awatt' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
