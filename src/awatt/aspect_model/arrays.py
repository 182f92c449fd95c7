"""What was learned as a flat dictionary of arrays, to be saved, and back: names are those of the fields, with dots."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

Kind = TypeVar("Kind")
Arrays = dict[str, npt.NDArray[Any]]


def to_arrays(learned: Any, prefix: str = "") -> Arrays:
    """Of a named tuple of arrays, numbers and such tuples; None has no array."""
    found: Arrays = {}
    for name, value in learned._asdict().items():
        if hasattr(value, "_fields"):
            found |= to_arrays(value, f"{prefix}{name}.")
        elif value is not None:
            found[prefix + name] = np.atleast_1d(np.asarray(value))
    return found


def from_arrays(kind: type[Kind], arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "") -> Kind:
    """What ``to_arrays`` was given."""
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        key = prefix + name
        if get_origin(hint) is UnionType:  # a tuple or None
            hint = next(part for part in get_args(hint) if part is not NoneType)
            if not any(other.startswith(f"{key}.") for other in arrays):
                fields[name] = None
                continue
        if hasattr(hint, "_fields"):
            fields[name] = from_arrays(hint, arrays, f"{key}.")
        else:
            fields[name] = arrays[key].item() if hint is float else arrays[key]
    return kind(**fields)
