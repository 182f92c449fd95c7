"""Few-shot methods, each a small file on the common base."""

from awatt.models.base import DistanceModel, FewShotModel
from awatt.models.proto_awatt import ProtoAwatt

MODELS: dict[str, type[FewShotModel]] = {"proto-awatt": ProtoAwatt}

__all__ = ["MODELS", "DistanceModel", "FewShotModel"]
