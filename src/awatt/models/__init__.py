"""Few-shot methods, each a small file on the common base.

They are imported when they are first asked for: they need torch, but ``awatt.models.ops``, which the detector shares
with them, does not.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from awatt.models.base import DistanceModel, FewShotModel
    from awatt.models.methods import MODELS

__all__ = ["MODELS", "DistanceModel", "FewShotModel"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'awatt.models' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("awatt.models.methods" if name == "MODELS" else "awatt.models.base"), name)
