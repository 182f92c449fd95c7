"""Model folders: ``config.json``, ``model.safetensors``, ``tokenizer.json`` and files that depend on the kind.

``kind`` in ``config.json`` says what the folder holds. Only this module reads, checks and writes the format. A folder
may come from anyone: no file in it can run code, each is checked against its sha256 in ``config.json``, none lies
outside the folder, and every value is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from awatt import __version__
from awatt.errors import AwattError, DataError
from awatt.files import parse_json, write_text, write_whole

FORMAT = 2
CONFIG, WEIGHTS, TOKENIZER, CARD = "config.json", "model.safetensors", "tokenizer.json", "README.md"
BASE = "base"  # in the config: the model of the package that has the files which are not here
RUN, ASPECT_MODEL, DETECTOR = "run", "aspect-model", "detector"
MAX_DEPTH = 20  # of values within values in config.json; ours have 4

#: kind -> (description, how to use it), for messages
KINDS = {
    RUN: ("a run of 'awatt train'", "Use it with --model, AspectDetector(model=...) or 'awatt evaluate'."),
    ASPECT_MODEL: ("a model of 'awatt train-detector'", "Use it with AspectDetector(model=...) or 'awatt evaluate'."),
    DETECTOR: ("a saved detector", "Use it with --model or AspectDetector.from_pretrained(...)."),
}


@dataclass(frozen=True)
class Folder:
    """A model folder with its parsed and checked ``config.json``."""

    path: Path
    kind: str
    config: Mapping[str, Any]
    digests: Mapping[str, str]  # file name -> sha256

    def read(self, name: str) -> bytes:
        """Read a file and check it against its digest in ``config.json``."""
        path = self.path / name
        if name not in self.digests and self.config["format"] > 1:
            raise self.error(f"has no sha256 for {name}")
        try:
            content = _read_inside(self.path, name)
        except OSError:
            raise DataError("is missing or cannot be read. Copy or save the folder again.", path) from None
        if name in self.digests and hashlib.sha256(content).hexdigest() != self.digests[name]:
            advice = "Copy or save the folder again; finish an interrupted run with --resume."
            raise DataError(f"does not match its sha256 in config.json. {advice}", path)
        return content

    def setting(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """A value from ``config.json`` with its type checked."""
        if name not in self.config:
            raise self.error(f"has no '{name}'")
        value = self.config[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(f"has {str(value)[:60]!r} for '{name}'")
        return value

    def number(self, name: str, lowest: float, highest: float, kind: type[int] | type[float] = int) -> Any:
        """A number from ``config.json`` with its range checked."""
        value = self.setting(name, int if kind is int else (int, float))
        if not lowest <= value <= highest:
            raise self.error(f"has {value} for '{name}', but needs a number from {lowest:g} to {highest:g}")
        return value

    def check_arrays(self, file: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Raise if a number in one of the arrays of ``file`` is not finite."""
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise DataError(f"has NaN or infinity in '{name}'. Copy or save the folder again.", self.path / file)

    def error(self, problem: str) -> DataError:
        """An error about ``config.json``."""
        advice = "Copy or save the folder again."
        return DataError(f"{problem}, so it does not describe {KINDS[self.kind][0]}. {advice}", self.path / CONFIG)

    def model(self) -> Folder:
        """The model inside a saved detector; for any other kind, the folder itself."""
        if self.kind != DETECTOR:
            return self
        inner = self.setting("model", dict)
        if inner.get("kind") not in (RUN, ASPECT_MODEL):
            raise self.error(f"has a model of kind {inner.get('kind')!r}")
        return Folder(self.path, inner["kind"], {"format": self.config["format"], **inner}, self.digests)


def open_folder(path: Path, *wanted: str) -> Folder:
    """Read and check ``config.json``. ``wanted`` are the accepted kinds; none given means any."""
    folder = _read(path)
    if wanted and folder.kind not in wanted:
        needed = " or ".join(KINDS[kind][0] for kind in wanted)
        found, advice = KINDS[folder.kind]
        raise AwattError(f"{path} is {found}, but {needed} is needed. {advice}")
    return folder


def kind_of(path: Path) -> str | None:
    """The kind of a model folder; None for anything else."""
    try:
        return _read(path).kind
    except AwattError:
        return None


def _read(path: Path) -> Folder:
    file = path / CONFIG
    try:
        content = parse_json(_read_inside(path, CONFIG))
    except (FileNotFoundError, NotADirectoryError):
        raise AwattError(f"{file} does not exist. {_advice(path)}") from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}). Check its permissions.", file) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not valid JSON: {error}", file) from None
    if (problem := _find_problem(content)) is not None:
        raise DataError(f"{problem}. Copy or save the folder again.", file)
    if not isinstance(content, dict):
        raise DataError("is not a JSON object, so this is not a model folder. Check the path.", file)
    if "format" not in content and "detector" not in content:
        raise DataError("has no 'format', so this is not an awatt model folder. Check the path.", file)
    version = content.get("format", 1)
    if type(version) is not int or not 1 <= version <= FORMAT:
        readable = f"but this version of awatt ({__version__}) reads formats 1 to {FORMAT}"
        advice = "Run: pip install --upgrade awatt" if type(version) is int and version > FORMAT else "Check the file."
        raise DataError(f"has format {version!r}, {readable}. {advice}", file)
    if version == 1:
        content = _from_format_1(content)
    kind, digests = content.get("kind"), content.get("sha256")
    if not isinstance(kind, str) or kind not in KINDS:
        raise DataError(f"has kind {kind!r}, but needs one of: {', '.join(KINDS)}.", file)
    if not isinstance(digests, dict) or not all(_is_digest(*item) for item in digests.items()):
        raise DataError("has no valid 'sha256' with each file's digest. Copy or save the folder again.", file)
    # A model of the package may take the rest from another one.
    for name in (WEIGHTS,) if version == 1 or BASE in content else (WEIGHTS, TOKENIZER):
        if name not in digests:
            raise DataError(f"has no sha256 for {name}. Copy or save the folder again.", file)
    return Folder(path, kind, content, digests)


def _is_digest(name: str, digest: object) -> bool:
    """Whether the name is a plain one, which stays in its folder, and the digest is one."""
    plain = re.fullmatch(r"[\w-][\w.-]*", name, re.ASCII)
    return plain is not None and isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None


def _read_inside(folder: Path, name: str) -> bytes:
    """The content of a regular file; an error for a pipe or a device, and for a link that leaves the folder."""
    path = folder / name
    if os.path.dirname(os.path.realpath(path)) != os.path.realpath(folder):
        raise DataError("is a link to another folder. Copy the file itself into the folder.", path)
    # Without waiting: to open a pipe would otherwise wait for somebody to write to it.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise DataError("is not a regular file. Copy or save the folder again.", path)
        return stream.read()


def _find_problem(content: object) -> str | None:
    """What is wrong with any value of ``config.json``: it is nested too deeply, not a number, or not text."""
    waiting = [(content, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            return f"has values nested more than {MAX_DEPTH} deep"
        if isinstance(value, float) and math.isnan(value):
            return "has NaN, which is not a number"
        if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            return f"has an unpaired surrogate in {value[:60]!a}"
        if isinstance(value, dict):
            waiting += [(each, depth + 1) for pair in value.items() for each in pair]
        elif isinstance(value, list):
            waiting += [(each, depth + 1) for each in value]
    return None


def read_tokenizer(folder: Folder) -> Tokenizer:
    """The folder's tokenizer."""
    content = folder.read(TOKENIZER)
    try:
        return Tokenizer.from_str(content.decode("utf-8"))
    except Exception as error:  # tokenizers raises bare Exception
        raise DataError(f"is not a tokenizer: {error}", folder.path / TOKENIZER) from None


def _advice(path: Path) -> str:
    if (path / "run.json").is_file():
        return "The run has not finished its first epoch. Continue it: awatt train ... --resume."
    return f"A model is a folder with {CONFIG}, {WEIGHTS} and {TOKENIZER}, or one of the package: fast or accurate."


def _from_format_1(content: dict[str, Any]) -> dict[str, Any]:
    """Convert format 1, which had no ``kind``: three layouts that differ in their keys."""
    if "detector" in content:
        saved = content["detector"] if isinstance(content["detector"], dict) else {}
        inner = {name: value for name, value in content.items() if name != "detector"}
        return {**saved, "format": 1, "kind": DETECTOR, "model": {**inner, "kind": ASPECT_MODEL}}
    kind = RUN if "method" in content else ASPECT_MODEL
    return {**content, "kind": kind, "sha256": {WEIGHTS: content.get("sha256")}}


def write_folder(path: Path, kind: str, config: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write each file atomically, then ``config.json`` with their digests.

    The weights are written last but one: between them and ``config.json`` the folder cannot be loaded.
    """
    path.mkdir(parents=True, exist_ok=True)
    ordered = {name: files[name] for name in sorted(files, key=lambda name: name == WEIGHTS)}
    for name, content in ordered.items():
        write_whole(path / name, content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in ordered.items() if name != CARD}
    head = {"format": FORMAT, "kind": kind, "awatt": __version__, "sha256": digests}
    write_text(path / CONFIG, json.dumps({**head, **config}, indent=1, ensure_ascii=False, default=float) + "\n")
