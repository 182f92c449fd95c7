"""`AspectDetector` and its parts: the tool people use on their own sentences. Nothing here needs episodes."""

from awatt.detector.detector import AspectDetector
from awatt.detector.results import Detection, Review, Word

__all__ = ["AspectDetector", "Detection", "Review", "Word"]
