"""Few-shot aspect category detection: name your aspects by example, find them in every sentence."""

__version__ = "0.1.0"
