"""A model or detector from a folder is tried on a few sentences before it is used.

What a folder holds may have the right names and types and still not fit together. Rather than describing every array
of every model, a small fit of the model itself shows what each array looks like, and a prediction shows that the
parts work together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from awatt.aspect_model.model import AspectModel
from awatt.detector.thresholds import AIMS
from awatt.errors import AwattError, DataError, plural

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector
    from awatt.detector.models import Model

Arrays = Mapping[str, npt.NDArray[Any]]

_TEXTS = ("the soup was cold", "a rude waiter", "we paid too much", "it was my birthday", "a table by the window")
_FEW, _MORE = 2, 3  # aspects of the two fits
_ADVICE = "Copy or save the folder again."
_OTHER_VERSION = (
    "If another version of awatt saved it, learn again from its examples.jsonl; otherwise copy the folder again."
)

_is_trial = ContextVar("_is_trial", default=False)  # of each thread: in others, detectors go on warning
#: Advice on thresholds is not meant for a trial.
logging.getLogger("awatt.research.run_model").addFilter(lambda record: not _is_trial.get())


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Report any failure caused by inconsistent arrays as one error about the folder."""
    before = _is_trial.set(True)
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            yield
    except (AwattError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"holds a model whose parts do not fit together ({error!r:.200}). {_ADVICE}", path) from None
    finally:
        _is_trial.reset(before)


def _fit(model: Model, n_aspects: int) -> Any:
    """Examples, examples per aspect and reviews differ by more than 1 between ``_FEW`` and ``_MORE`` aspects."""
    texts = [f"{text} {number}" for number in range(2 * n_aspects - 3) for text in _TEXTS]
    labels = np.zeros((len(texts), n_aspects), dtype=bool)
    for aspect in range(n_aspects):
        labels[aspect :: len(_TEXTS), aspect] = True
    reviews = model.tokenize([f"{text} and then {number}" for number in range(n_aspects) for text in _TEXTS])
    names = ["food", "waiter", "price"][:n_aspects]
    return model.fit(model.tokenize(texts), labels, names, reviews)


def try_model(model: Model, path: Path) -> None:
    """Raise if the model in ``path`` cannot learn and predict."""
    with _errors_of(path):
        fitted = _fit(model, _FEW)
        for mode in ("auto", "paper"):
            _check_predictions(model, fitted, _FEW, path, mode)


def check_state(model: Model, arrays: Arrays, n_aspects: int, path: Path) -> None:
    """Raise if arrays of a saved detector differ from what the model learns of ``n_aspects`` aspects.

    A size that is the same in both patterns is fixed, one that grows by 1 counts the aspects, any other is free.
    """
    few: Arrays = {}
    more: Arrays = {}
    with _errors_of(path), suppress(AwattError):  # a method may be limited to fewer aspects
        few, more = (model.pack(_fit(model, count)) for count in (_FEW, _MORE))
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise DataError(f"has NaN or infinity in '{name}'. {_ADVICE}", path)
        if name in few and name in more and not _is_alike(array, few[name], more[name], n_aspects):
            found = f"has {array.dtype} {list(array.shape)} for '{name}', which is not what its model learns"
            raise DataError(f"{found} of {plural(n_aspects, 'aspect')}. {_OTHER_VERSION}", path)


def _is_alike(array: npt.NDArray[Any], few: npt.NDArray[Any], more: npt.NDArray[Any], n_aspects: int) -> bool:
    if array.dtype != few.dtype or array.ndim != max(1, few.ndim):  # single numbers are saved as [1]
        return False
    if not few.ndim:
        return array.shape == (1,)
    for size, first, second in zip(array.shape, few.shape, more.shape, strict=True):
        if second - first <= 1 and size != first + (second - first) * (n_aspects - _FEW):
            return False
    return True


def try_detector(detector: AspectDetector, path: Path) -> None:
    """Raise if a detector that was loaded from ``path`` cannot detect."""
    model, fitted, n_aspects = detector.loaded_model, detector.fitted_, int(detector._known.sum())
    with _errors_of(path):
        if fitted is not None:
            _check_predictions(model, fitted, n_aspects, path, "paper")
            _check_predictions(model, fitted, n_aspects, path, "auto")
            for aim in AIMS if isinstance(model, AspectModel) else AIMS[:1]:
                _check_numbers(model.thresholds(fitted, "auto", aim), (n_aspects,), path)
        detector.detect_many(_TEXTS)
        if isinstance(model, AspectModel) and fitted is not None:
            model.expected_quality(fitted, model.thresholds(fitted))


def _check_predictions(model: Model, fitted: Any, n_aspects: int, path: Path, mode: str) -> None:
    found = model.predict(fitted, model.tokenize(_TEXTS), mode)
    _check_numbers(found.scores, (len(_TEXTS), n_aspects), path)
    if np.isnan(found.scores).any():
        raise DataError(f"holds a model whose scores are not numbers. {_ADVICE}", path)


def _check_numbers(values: npt.NDArray[Any], shape: tuple[int, ...], path: Path) -> None:
    """From 0 to 1, or NaN where a model decides per sentence; a threshold may be just above 1."""
    if values.shape != shape or (values < 0).any() or (values > 1.01).any():
        raise DataError(f"holds a model whose scores or thresholds are not from 0 to 1. {_ADVICE}", path)
