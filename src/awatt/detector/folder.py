"""Saved detectors: config.json, model.safetensors, tokenizer.json, the aspects, the examples and a model card.

The folder includes the model, so it loads anywhere and offline. No file in it can run code.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from awatt import __version__
from awatt.arrays import Sentences
from awatt.aspect_model.schema import check_sentences
from awatt.detector.examples import MAX_ASPECTS, Examples
from awatt.detector.models import NAMES
from awatt.detector.thresholds import Threshold
from awatt.detector.trial import check_state, try_detector
from awatt.errors import AwattError, DataError
from awatt.files import file_advice, interrupts_blocked
from awatt.folders import CARD, CONFIG, DETECTOR, Folder, kind_of, open_folder, write_folder
from awatt.records.formats import reason, to_json
from awatt.records.reader import read_records
from awatt.records.source import OpenPart

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

ASPECTS = "aspects.safetensors"
EXAMPLES = "examples.jsonl"
REVIEWS = "reviews.safetensors"  # token ids of the sample of the file: text, so it is saved with the examples only

Kind = TypeVar("Kind", bound="AspectDetector")


def save(detector: AspectDetector, folder: Path, examples: bool, overwrite: bool) -> Path:
    """Write the folder whole or not at all. Of a folder that is replaced, other people's files stay.

    A kill in the moment of replacing can leave the old one beside it, as a hidden folder that ends in ``.old``.
    """
    if folder.exists() and folder.samefile("."):
        raise AwattError(f"{folder}: this is the current folder. Name a new one.")
    is_saved = kind_of(folder) == DETECTOR
    if folder.exists() and not (overwrite and (folder.is_dir() and (is_saved or not any(folder.iterdir())))):
        advice = "Use --overwrite (in Python: overwrite=True) to replace it" if is_saved else "Choose another folder"
        raise AwattError(f"{folder}: already exists. {advice}.")
    if examples and detector.examples_ is None:
        found = "this detector was saved without its examples, so it has none to save"
        raise AwattError(f"{found}. Add --without-examples (in Python: examples=False).")
    if not folder.absolute().parent.is_dir():
        raise AwattError(f"{folder}: there is no folder '{folder.absolute().parent}'. Create it first.")
    replaced = {CONFIG, CARD, *open_folder(folder).digests} if is_saved else set()
    temporary = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}.tmp")
    try:
        temporary.mkdir()
        _write(detector, temporary, examples)
        if folder.exists():
            with interrupts_blocked():
                _replace(folder, temporary, replaced)
        else:
            os.rename(temporary, folder)
    except OSError as error:
        raise AwattError(
            f"{folder}: cannot be written ({reason(error)}). {file_advice(error)}, or choose another place."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _replace(folder: Path, new: Path, replaced: set[str]) -> None:
    """Put the folder ``new`` in the place of another one. Of that, only the files ``replaced`` are deleted."""
    kept = [path.name for path in folder.iterdir() if path.name not in replaced]
    for name in kept:
        if (new / name).exists():
            raise AwattError(f"{folder / name}: this file is not the detector's, which needs its name. Move it away.")
    old = new.with_suffix(".old")
    os.rename(folder, old)
    try:
        os.rename(new, folder)
    except OSError:
        os.rename(old, folder)
        raise
    for name in kept:
        os.rename(old / name, folder / name)
    for path in old.iterdir():
        path.unlink()
    old.rmdir()


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
        "threshold": _plain(detector.threshold),
        "mode": detector.mode,
    }
    write_folder(folder, DETECTOR, config, files)


def _plain(threshold: Threshold) -> str | float | dict[str, str | float]:
    """As JSON can hold it: any mapping as a dict, a number of numpy as Python's."""
    if isinstance(threshold, Mapping):
        return {name: _plain_number(value) for name, value in threshold.items()}
    return _plain_number(threshold)


def _plain_number(value: str | float) -> str | float:
    return value if isinstance(value, str | int | float) else float(value)


def _card(detector: AspectDetector, examples: bool) -> str:
    kept = f"its examples are in `{EXAMPLES}`" if examples else "its examples were left out"
    rows = [f"| {aspect} | {count} |" for aspect, count in zip(detector.aspects, detector.counts_, strict=True)]
    return "\n".join(
        [
            "# Aspect detector",
            "",
            f"Made with awatt {__version__}; mode `{detector.mode}`, threshold `{_plain(detector.threshold)}`; {kept}.",
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
    """Load a folder, after checking every file against its digest, every setting, and that all of it fits together."""
    if str(path) in NAMES and not path.exists():
        advice = f"Fit one: AspectDetector.from_examples(examples, model='{path}')"
        raise AwattError(f"'{path}' is a model of the package, not a saved detector. {advice}.")
    folder = open_folder(path, DETECTOR)
    aspects, counts = folder.setting("aspects", list), folder.setting("examples", list)
    classes, indicators = folder.setting("classes", list), folder.setting("indicators", bool)
    threshold, mode = folder.setting("threshold", (str, int, float, dict)), folder.setting("mode", str)
    _check_names(folder, aspects, counts, classes)
    files = {name: folder.read(name) for name in folder.digests}  # checks every file before any is used
    if ASPECTS not in files:
        raise folder.error(f"has no sha256 for {ASPECTS}")
    detector = kind(threshold=threshold, mode=mode, model=path)
    model = detector.loaded_model
    examples = _read_examples(folder, files[EXAMPLES], aspects, counts) if EXAMPLES in files else None
    if REVIEWS in files:
        sample = _read_arrays(folder, REVIEWS, files)
        if sample.keys() != {"ids", "lengths"}:
            raise DataError("does not hold sentences. Copy or save the folder again.", path / REVIEWS)
        check_sentences(folder, REVIEWS, sample["ids"], sample["lengths"], model.tokenizer.get_vocab_size())
        detector.reviews_ = Sentences(sample["ids"].astype(np.int64), sample["lengths"].astype(np.int64))
    arrays, fitted = _read_arrays(folder, ASPECTS, files), None
    if arrays:
        known = detector._can_know(aspects, counts)
        check_state(model, arrays, int(known.sum()), path / ASPECTS)
        try:
            fitted = model.unpack(arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise folder.error(f"does not fit {ASPECTS} ({error!r})") from None
    detector._set_state(aspects, counts, fitted, examples, classes, indicators)
    try:
        detector.thresholds()
    except AwattError as error:
        raise folder.error(f"has a threshold or mode that is not valid ({error})") from None
    try_detector(detector, path)
    return detector


def _check_names(folder: Folder, aspects: list[Any], counts: list[Any], classes: list[Any]) -> None:
    if not all(isinstance(name, str) and name.strip() for name in aspects) or len(set(aspects)) != len(aspects):
        raise folder.error("has 'aspects' that are not different names")
    if not 1 <= len(aspects) <= MAX_ASPECTS:
        raise folder.error(f"has {len(aspects)} 'aspects', but needs 1 to {MAX_ASPECTS}")
    if len(counts) != len(aspects) or not all(type(count) is int and 0 <= count < 2**31 for count in counts):
        raise folder.error("has 'examples' that are not one count per aspect")
    scalar = all(isinstance(each, str | int | float) for each in classes)
    if len(classes) != len(aspects) or not scalar or len(set(classes)) != len(classes):
        raise folder.error("has 'classes' that are not one name or number per aspect")


def _read_arrays(folder: Folder, name: str, files: Mapping[str, bytes]) -> dict[str, npt.NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_arrays

    try:
        return load_arrays(files[name])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"is not a safetensors file: {error}", folder.path / name) from None


def _read_examples(folder: Folder, content: bytes, aspects: list[str], counts: list[int]) -> Examples:
    path = folder.path / EXAMPLES
    batches = read_records(path, part=OpenPart(BytesIO(content)))
    try:
        examples = Examples.from_pairs(((each.text, each.aspects) for batch in batches for each in batch), aspects)
    except DataError:
        raise
    except AwattError as error:
        raise DataError(str(error), path) from None
    if list(examples.aspects) != aspects or examples.counts.tolist() != counts:
        raise DataError("has other examples than config.json says. Copy or save the folder again.", path)
    return examples
