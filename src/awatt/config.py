"""Settings: frozen dataclasses from TOML files and ``--set section.field=value``, with checked names and types."""

from __future__ import annotations

import dataclasses
import math
import sys
import tomllib
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from awatt.errors import AwattError, DataError

Settings = TypeVar("Settings")


def choose(kinds: Mapping[str, Any], name: str, what: str) -> Any:
    """The entry ``name`` of a registry; the error for an unknown name lists the valid ones."""
    if name not in kinds:
        raise AwattError(f"there is no {what} '{name}'. Choose one of: {', '.join(kinds)}.")
    return kinds[name]


def build(kind: type[Settings], values: Mapping[str, object], section: str) -> Settings:
    """A settings dataclass from plain values; the error for an unknown field or a wrong type says what is valid."""
    assert dataclasses.is_dataclass(kind)
    types = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    converted = {}
    for name, value in values.items():
        if name not in names:
            valid = ", ".join(f"{section}.{known}" for known in names) or "nothing"
            raise AwattError(f"there is no setting '{section}.{name}'. Valid here: {valid}.")
        converted[name] = _convert(types[name], value, f"{section}.{name}")
    return typing.cast(Settings, kind(**converted))


def _convert(wanted: Any, value: object, name: str) -> object:
    if typing.get_origin(wanted) is tuple and isinstance(value, list | tuple):
        inner = typing.get_args(wanted)[0]
        return tuple(_convert(inner, item, name) for item in value)
    if wanted is float and isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) > sys.float_info.max or math.isnan(value):
            raise AwattError(f"setting '{name}' is {str(value)[:40]}, needs a finite number.")
        return float(value)
    if isinstance(wanted, type) and type(value) is wanted:
        return value
    raise AwattError(f"setting '{name}' is {value!r}, needs {getattr(wanted, '__name__', wanted)}.")


def check_above(settings: object, section: str, lowest: float, *names: str) -> None:
    """Raise for a field that is not above ``lowest``; for use in ``__post_init__``."""
    for name in names:
        if not getattr(settings, name) > lowest:
            raise AwattError(f"{section}.{name} is {getattr(settings, name)}, needs a number above {lowest:g}.")


def check_at_least(settings: object, section: str, **lowest: float) -> None:
    """Raise for a field below its lowest value, such as ``hidden=1``; for use in ``__post_init__``."""
    for name, wanted in lowest.items():
        if not getattr(settings, name) >= wanted:
            raise AwattError(f"{section}.{name} is {getattr(settings, name)}, needs at least {wanted}.")


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise AwattError(f"{path} does not exist. Check the path after --config.") from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}). Check the path after --config.", path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not TOML: {error}", path) from None


def parse_overrides(items: Iterable[str]) -> dict[str, dict[str, object]]:
    """``["model.e_m=10"]`` -> ``{"model": {"e_m": 10}}``. Values are TOML, or else strings."""
    parsed: dict[str, dict[str, object]] = {}
    for item in items:
        key, equals, value = item.partition("=")
        section, dot, field = key.strip().partition(".")
        if not (equals and dot and section and field):
            raise AwattError(f"--set needs section.field=value, for example model.e_m=10; found {item!r}.")
        try:
            parsed.setdefault(section, {})[field] = tomllib.loads(f"value = {value}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            parsed.setdefault(section, {})[field] = value
    return parsed
