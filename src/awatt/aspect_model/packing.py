"""Nested named tuples as flat named arrays and back: ``learned.evidence.names`` is the array "evidence.names"."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]
Kind = TypeVar("Kind")


def pack(value: Any, name: str = "") -> dict[str, npt.NDArray[Any]]:
    """Every array and number of a named tuple under its dotted name; None is left out."""
    if value is None:
        return {}
    if not hasattr(value, "_asdict"):
        return {name: np.asarray(value, order="C")}
    prefix = f"{name}." if name else ""
    return {key: array for field, part in value._asdict().items() for key, array in pack(part, prefix + field).items()}


def unpack(kind: type[Kind], arrays: Arrays, name: str = "") -> Kind:
    """The inverse of ``pack``; the type hints say what is nested. A missing array is a KeyError."""
    return _unpack(kind, arrays, name)


def _unpack(kind: Any, arrays: Arrays, name: str) -> Any:
    prefix = f"{name}." if name else ""
    if NoneType in get_args(kind):
        if not any(key == name or key.startswith(prefix) for key in arrays):
            return None
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        return kind(*(_unpack(hints[field], arrays, prefix + field) for field in kind._fields))
    return arrays[name].item() if kind in (int, float) else arrays[name]
