"""Few-shot methods, each a small file on the common base."""

from awatt.models.base import DistanceModel, FewShotModel
from awatt.models.methods import MODELS

__all__ = ["MODELS", "DistanceModel", "FewShotModel"]
