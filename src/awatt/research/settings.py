"""Resolves a run's settings: defaults, then the TOML file, then the options, then ``--set``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from awatt.config import build, parse_overrides, read_toml
from awatt.data.sampler import EpisodeShape
from awatt.errors import AwattError
from awatt.research.runs import RunConfig, TrainingConfig
from awatt.research.system import SystemConfig

DEFAULTS = {"method": "proto-awatt", "encoder": "glove-cnn", "threshold": "static", "seed": 5}
SECTIONS = ("model", "encoder", "threshold", "training", "episode")
#: sections of the file whose plain names are taken by the encoder's and threshold's names
_RENAMED = {"encoder_settings": "encoder", "threshold_settings": "threshold"}


def resolve_run(
    file: Path | None = None,
    options: Mapping[str, Any] | None = None,
    episode: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
) -> RunConfig:
    """``options``: method, encoder, threshold, seed. ``episode``: fields of ``EpisodeShape``. None means not given."""
    given: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    chosen: dict[str, Any] = dict(DEFAULTS)
    if file is not None:
        _read_file(file, chosen, given)
    chosen |= {name: value for name, value in (options or {}).items() if value is not None}
    given["episode"] |= {name: value for name, value in (episode or {}).items() if value is not None}
    for section, values in parse_overrides(overrides).items():
        if section not in SECTIONS:
            raise AwattError(f"there is no section '{section}' for --set. Valid: {', '.join(sorted(SECTIONS))}.")
        given[section] |= values
    shape = build(EpisodeShape, given["episode"], "episode")
    system = SystemConfig.from_mapping({**chosen, "n_way": shape.n_way, "settings": given})
    return RunConfig(system, shape, build(TrainingConfig, given["training"], "training"), chosen["seed"])


def _read_file(file: Path, chosen: dict[str, Any], given: dict[str, dict[str, Any]]) -> None:
    for name, value in read_toml(file).items():
        section = _RENAMED.get(name, name)
        if isinstance(value, dict) and section in SECTIONS:
            given[section] |= value
        elif name in DEFAULTS:
            wanted = type(DEFAULTS[name])
            if type(value) is not wanted:
                raise AwattError(f"{file}: setting '{name}' is {value!r}, needs {wanted.__name__}.")
            chosen[name] = value
        else:
            valid = [*DEFAULTS, "[model]", "[encoder_settings]", "[threshold_settings]", "[training]", "[episode]"]
            raise AwattError(f"{file}: there is no setting '{name}'. Valid here: {', '.join(valid)}.")
