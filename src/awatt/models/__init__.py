"""Few-shot methods, one small file each, on a common base class."""

from awatt.models.base import DistanceModel, FewShotModel
from awatt.models.methods import MODELS

__all__ = ["MODELS", "DistanceModel", "FewShotModel"]
