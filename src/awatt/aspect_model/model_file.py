"""The learned numbers as one small safetensors file, each under the name that the code calls it by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

from awatt.aspect_model.calibration import CalibrationPrior
from awatt.aspect_model.classifiers import Settings
from awatt.aspect_model.learner import AspectModel
from awatt.aspect_model.network import Layer, Network
from awatt.matcher import Matcher
from awatt.packed import Sentences

WEIGHTS = Path(__file__).parent / "weights" / "fast.safetensors"
Arrays = Mapping[str, npt.NDArray[Any]]


class Background(NamedTuple):
    """Ordinary sentences as token ids."""

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]


def load_model(vectors: Matcher, path: Path = WEIGHTS) -> AspectModel:
    """The model on these token vectors."""
    arrays = load_file(path)
    scalars = {name: float(arrays[f"settings.{name}"].item()) for name in Settings._fields if name != "centre"}
    layers = {name: _read(Layer, arrays, f"network.{name}.") for name in ("first", "second", "last")}
    others = [name for name in Network._fields if name not in layers]
    ordinary = _read(Background, arrays, "background.")
    return AspectModel(
        vectors,
        Settings(**scalars, centre=arrays["settings.centre"]),
        Network(**layers, **{name: _double(arrays[f"network.{name}"]) for name in others}),
        vectors.read(Sentences(ordinary.ids.astype(np.int64), ordinary.lengths.astype(np.int64))),
        CalibrationPrior(*arrays["prior"].tolist()),
    )


def save_model(
    path: Path,
    settings: Settings,
    network: Network,
    background: Sentences,
    prior: CalibrationPrior,
) -> None:
    """What ``load_model`` reads."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "prior": np.array(prior),
        "background.ids": background.ids.astype(np.int32),
        "background.lengths": background.lengths.astype(np.int32),
    }
    arrays |= {f"settings.{name}": np.asarray(value) for name, value in settings._asdict().items()}
    for name, value in network._asdict().items():
        parts = {f"{name}.{key}": part for key, part in value._asdict().items()} if name in _LAYERS else {name: value}
        arrays |= {f"network.{key}": np.asarray(part, dtype=np.float32) for key, part in parts.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)


_LAYERS = [name for name, kind in get_type_hints(Network).items() if kind is Layer]


def _read(kind: Any, arrays: Arrays, prefix: str) -> Any:
    convert = _double if kind is Layer else np.asarray
    return kind(*(convert(arrays[prefix + name]) for name in kind._fields))


def _double(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The network computes in double precision: a score does not depend on the sentences beside it."""
    return array.astype(np.float64)
