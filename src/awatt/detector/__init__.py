"""The tool: `AspectDetector`, and what it is made of. People call it with their sentences; it knows no episodes."""

from awatt.detector.detector import AspectDetector
from awatt.detector.results import Detection, Review, Word

__all__ = ["AspectDetector", "Detection", "Review", "Word"]
