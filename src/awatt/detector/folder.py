"""Saved detectors: config.json, model.safetensors, tokenizer.json, the aspects, the examples and a model card.

The folder includes the model, so it loads anywhere and offline. No file in it can run code.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from awatt import __version__
from awatt.arrays import Sentences
from awatt.detector.examples import Examples
from awatt.errors import AwattError
from awatt.folders import CARD, DETECTOR, kind_of, open_folder, write_folder
from awatt.records.formats import reason, to_json

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

ASPECTS = "aspects.safetensors"
EXAMPLES = "examples.jsonl"
REVIEWS = "reviews.safetensors"  # token ids of the sample of the file: text, so it is saved with the examples only

Kind = TypeVar("Kind", bound="AspectDetector")


def save(detector: AspectDetector, folder: Path, examples: bool, overwrite: bool) -> Path:
    """Write the folder atomically: whole or not at all."""
    is_saved = kind_of(folder) == DETECTOR
    if folder.exists() and not (overwrite and (folder.is_dir() and (is_saved or not any(folder.iterdir())))):
        advice = "Give overwrite=True to replace a saved detector" if is_saved else "Choose another folder"
        raise AwattError(f"{folder}: already exists. {advice}.")
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
    from safetensors.numpy import save

    model, fitted = detector.loaded_model, detector.fitted_
    arrays = {} if fitted is None else model.pack(fitted)
    files = model.files()
    files[ASPECTS] = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    if examples:
        rows = ({"text": text, "aspects": list(names)} for text, names in detector.examples.pairs())
        files[EXAMPLES] = "".join(f"{to_json(row)}\n" for row in rows).encode()
        if detector.reviews is not None:
            files[REVIEWS] = save({"ids": detector.reviews.ids, "lengths": detector.reviews.lengths})
    files[CARD] = _card(detector, examples).encode()
    config = {
        "model": {"kind": model.kind, **model.config()},
        "aspects": list(detector.aspects),
        "classes": detector.classes_.tolist(),
        "indicators": detector.indicators_,
        "examples": detector.counts_.tolist(),
        "threshold": detector.threshold,
        "mode": detector.mode,
    }
    write_folder(folder, DETECTOR, config, files)


def _card(detector: AspectDetector, examples: bool) -> str:
    kept = f"its examples are in `{EXAMPLES}`" if examples else "its examples were left out"
    rows = [f"| {aspect} | {count} |" for aspect, count in zip(detector.aspects, detector.counts_, strict=True)]
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
            _meaning(detector),
            "Aspects with few examples are less reliable.",
            "",
        ]
    )


def _meaning(detector: AspectDetector) -> str:
    if detector.loaded_model.probabilistic and detector.mode != "paper":
        return "A score is the model's estimate of the probability that the sentence mentions the aspect."
    return "Scores are the paper's ranking: a softmax over the aspects, not probabilities."


def load(kind: type[Kind], path: Path) -> Kind:
    """Load a folder, after checking every file against its digest."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_arrays

    folder = open_folder(path, DETECTOR)
    aspects, counts = folder.setting("aspects", list), folder.setting("examples", list)
    threshold, mode = folder.setting("threshold", (str, int, float, dict)), folder.setting("mode", str)
    classes, indicators = folder.setting("classes", list), folder.setting("indicators", bool)
    for name in folder.digests:
        folder.read(name)  # checks every file before any is used
    detector = kind(threshold=threshold, mode=mode, model=path)
    try:
        examples = None
        if EXAMPLES in folder:
            examples = Examples.from_pairs(Examples.read(path / EXAMPLES).pairs(), aspects)
        if REVIEWS in folder:
            sample = load_arrays(folder.read(REVIEWS))
            detector.reviews_ = Sentences(sample["ids"], sample["lengths"])
        arrays = load_arrays(folder.read(ASPECTS))
        fitted = detector.loaded_model.unpack(arrays) if arrays else None
        detector._set_state(aspects, counts, fitted, examples, classes, indicators)
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        raise folder.error(f"does not fit {ASPECTS} ({error!r})") from None
    return detector
