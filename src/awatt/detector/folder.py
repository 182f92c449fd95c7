"""A detector as a folder: config.json, model.safetensors, tokenizer.json, the aspects, the examples and a card.

It holds the model too, so that it loads anywhere and offline. No file of it can run code.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from awatt import __version__
from awatt.aspect_model.model import BUNDLED, Adapted
from awatt.detector.examples import Examples
from awatt.detector.learned import Learned
from awatt.errors import AwattError
from awatt.records.formats import reason
from awatt.records.writer import RecordWriter

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

FORMAT = 1
MODEL_FILES = ("model.safetensors", "tokenizer.json")
ASPECTS = "aspects.safetensors"
EXAMPLES = "examples.jsonl"

Kind = TypeVar("Kind", bound="AspectDetector")


def save(detector: AspectDetector, folder: Path, examples: bool, overwrite: bool) -> Path:
    """Write the folder whole or not at all."""
    if folder.exists() and not (overwrite and (folder.is_dir() and (is_saved(folder) or not any(folder.iterdir())))):
        advice = "Give overwrite=True to replace a saved detector" if is_saved(folder) else "Choose another folder"
        raise AwattError(f"{folder}: there is something already. {advice}.")
    if not folder.absolute().parent.is_dir():
        raise AwattError(f"{folder}: there is no folder '{folder.absolute().parent}'. Create it first.")
    temporary = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}.tmp")
    try:
        temporary.mkdir()
        _write(detector, temporary, examples)
        if folder.exists():
            old = temporary.with_suffix(".old")
            os.rename(folder, old)
            os.rename(temporary, folder)
            shutil.rmtree(old)
        else:
            os.rename(temporary, folder)
    except OSError as error:
        raise AwattError(
            f"{folder}: cannot be written ({reason(error)}). Free some space, or choose another place."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _write(detector: AspectDetector, folder: Path, examples: bool) -> None:
    from safetensors.numpy import save_file

    learned = detector.learned
    model = Path(detector.model) if detector.model is not None else BUNDLED
    for name in MODEL_FILES:
        shutil.copyfile(model / name, folder / name)
    arrays = {} if learned.adapted is None else learned.adapted.arrays
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / ASPECTS)
    if examples:
        with RecordWriter(folder / EXAMPLES) as writer:
            writer.write([{"text": text, "aspects": list(names)} for text, names in detector._examples().pairs()])
    (folder / "README.md").write_text(_card(detector, examples), "utf-8")
    config = json.loads((model / "config.json").read_text("utf-8"))
    config["detector"] = {
        "format_version": FORMAT,
        "awatt_version": __version__,
        "aspects": list(learned.aspects),
        "classes": detector.classes_.tolist(),
        "indicators": detector.indicators_,
        "examples": learned.counts.tolist(),
        "threshold": detector.threshold,
        "mode": detector.mode,
        "sha256": {path.name: _sha256(path) for path in sorted(folder.iterdir())},
    }
    text = json.dumps(config, indent=1, ensure_ascii=False, default=float)
    (folder / "config.json").write_text(text + "\n", "utf-8")


def _card(detector: AspectDetector, examples: bool) -> str:
    learned = detector.learned
    kept = f"its examples are in `{EXAMPLES}`" if examples else "its examples were left out"
    rows = [f"| {aspect} | {count} |" for aspect, count in zip(learned.aspects, learned.counts, strict=True)]
    return "\n".join(
        [
            "# Aspect detector",
            "",
            f"Made with awatt {__version__}; mode `{detector.mode}`, threshold `{detector.threshold}`; {kept}.",
            "",
            "```python",
            "from awatt import AspectDetector",
            "",
            'detector = AspectDetector.from_pretrained("this-folder")',
            'print(detector.detect("The cheesecake is tasty."))',
            "```",
            "",
            "| aspect | examples |",
            "|---|---|",
            *rows,
            "",
            "A score is the model's estimate that the sentence mentions the aspect.",
            "An aspect with few examples is weak.",
            "",
        ]
    )


def is_saved(folder: Path) -> bool:
    """Whether the folder holds a detector."""
    try:
        return isinstance(json.loads((folder / "config.json").read_text("utf-8"))["detector"], dict)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def load(kind: type[Kind], folder: Path) -> Kind:
    """Read a folder, and check that each file is what was saved."""
    if not is_saved(folder):
        raise AwattError(f"{folder}: no detector is saved here. Name a folder that save_pretrained wrote.")
    saved: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))["detector"]
    try:
        if saved["format_version"] > FORMAT:
            raise AwattError(f"{folder}: saved in a newer format. Run: pip install --upgrade awatt")
        return _read(kind, folder, saved)
    except (KeyError, TypeError, ValueError) as error:
        fault = f"config.json is not what save_pretrained writes ({error!r})"
        raise AwattError(f"{folder}: {fault}. Save or copy the folder again.") from None


def _read(kind: type[Kind], folder: Path, saved: dict[str, Any]) -> Kind:
    from safetensors.numpy import load_file

    for name, digest in saved["sha256"].items():
        if name != "README.md" and (not (folder / name).is_file() or _sha256(folder / name) != digest):
            raise AwattError(f"{folder / name}: missing or not what was saved (sha256). Save or copy the folder again.")
    detector = kind(threshold=saved["threshold"], mode=saved["mode"], model=folder)
    path = folder / EXAMPLES
    examples = None
    if EXAMPLES in saved["sha256"]:
        stored = Examples.read(path)
        examples = Examples.from_pairs(stored.pairs(), saved["aspects"])
    arrays = load_file(folder / ASPECTS)
    counts = np.array(saved["examples"], dtype=np.int64)
    learned = Learned(tuple(saved["aspects"]), counts, Adapted(arrays) if arrays else None)
    detector._set_state(learned, examples, saved["classes"], saved["indicators"])
    return detector


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
