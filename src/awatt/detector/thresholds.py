"""A detector's thresholds: given by the user, the model's own, or tuned on labelled sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from awatt.arrays import Bools
from awatt.errors import AwattError
from awatt.records.formats import short_repr
from awatt.thresholds.default import default_threshold

Floats: TypeAlias = npt.NDArray[np.float64]
Threshold: TypeAlias = str | float | Mapping[str, str | float]

BALANCED = "balanced"
AUTO = "auto"  # means balanced
AIMS = (BALANCED, "precise", "thorough")
CHOICES = "balanced, precise, thorough, auto (balanced) or a number from 0 to 1"
MODES = ("auto", "acceptance", "paper")
MIN_TO_TUNE = 5  # labelled sentences an aspect needs for its own threshold; fewer would overfit


def resolve(threshold: Threshold, aspects: Sequence[str], aimed: Callable[[str], Floats]) -> Floats:
    """One number per aspect. ``aimed`` gives the model's own for an aim. (n_aspects,)"""
    if isinstance(threshold, Mapping):
        for name in threshold:
            if name not in aspects:
                known = ", ".join(f"'{aspect}'" for aspect in aspects)
                raise AwattError(
                    f"there is a threshold for '{name}', which is not an aspect. The aspects are: {known}."
                )
        wanted = [threshold.get(aspect, AUTO) for aspect in aspects]
    else:
        wanted = [threshold] * len(aspects)
    given = [_check(value) for value in wanted]
    own = {aim: aimed(aim) for aim in AIMS if aim in given}
    return np.array([own[value][column] if isinstance(value, str) else value for column, value in enumerate(given)])


def _check(threshold: object) -> str | float:
    """An aim, or a number."""
    if isinstance(threshold, str) and threshold in (AUTO, *AIMS):
        return BALANCED if threshold == AUTO else threshold
    number = np.nan
    if not isinstance(threshold, str | bool):
        with suppress(TypeError, ValueError, OverflowError):
            number = float(threshold)  # type: ignore[arg-type]
    if not 0 <= number <= 1:
        raise AwattError(f"the threshold is {short_repr(threshold)}, but one of these is needed: {CHOICES}.")
    return number


def without_nan(thresholds: Floats) -> Floats:
    """Replace NaN, where the model decides per sentence, with the paper's static threshold. Same shape."""
    return np.where(np.isnan(thresholds), default_threshold(len(thresholds)), thresholds)


def parse_thresholds(items: Sequence[str]) -> Threshold:
    """``["0.5"]`` -> 0.5, ``["precise"]`` -> "precise", ``["food=0.6", "price=precise"]`` -> a dict."""
    if len(items) == 1 and "=" not in items[0]:
        return _parse(items[0], items[0], f"one of these is needed: {CHOICES}, or ASPECT=ONE OF THESE")
    named: dict[str, str | float] = {}
    for item in items:
        aspect, equals, value = item.rpartition("=")
        if not equals:
            needed = "so each needs the form ASPECT=X, such as food=0.6 or food=precise"
            raise AwattError(f"--threshold is given {len(items)} times, {needed}; found {item!r}.")
        if len(parts := re.findall(rf"([^,]+=(?:{'|'.join((AUTO, *AIMS))}|[\d.]+))(?:,|$)", item)) > 1:
            advice = f"Repeat the option: {' '.join(f'--threshold {part.strip()}' for part in parts)}"
            raise AwattError(f"--threshold is {item!r}, but each option is for one aspect. {advice}.")
        if aspect in named:
            raise AwattError(f"--threshold is given more than once for '{aspect}'. Leave out all but one.")
        needed = f"after '=' one of these is needed: {CHOICES}; aspects that are not named stay as they are"
        named[aspect] = _parse(value, item, needed)
    return named


def change_thresholds(own: Threshold, wanted: Threshold, aspects: Sequence[str]) -> Threshold:
    """The wanted ones; aspects that they do not name keep their own."""
    if not isinstance(wanted, Mapping):
        return wanted
    return {**(own if isinstance(own, Mapping) else dict.fromkeys(aspects, own)), **wanted}


def _parse(text: str, given: str, needed: str) -> str | float:
    if text in (AUTO, *AIMS):
        return text
    try:
        return float(text)
    except ValueError:
        raise AwattError(f"--threshold is {given!r}, but {needed}.") from None


def f1(truth: Bools, found: Bools) -> float:
    """Micro-F1, over all (sentence, aspect) pairs; 1 if there is nothing to find and nothing is found."""
    wrong, right = int((truth != found).sum()), int((truth & found).sum())
    return 2 * right / (2 * right + wrong) if right + wrong else 1.0


def best_threshold(truth: Bools, scores: Floats, otherwise: float) -> float:
    """The threshold with the best F1 over all pairs, half-way between two scores.

    Ties go to the threshold nearest to ``otherwise``.
    """
    order = np.argsort(-scores, axis=None)
    ranked, hits = scores.ravel()[order], truth.ravel()[order]
    last = np.append(ranked[1:] < ranked[:-1], True)  # equal scores cannot be separated
    right = np.cumsum(hits)
    quality = np.where(last, 2 * right / (np.arange(1, len(hits) + 1) + hits.sum()), -1.0)
    cuts = (ranked + np.append(ranked[1:], 0.0)) / 2
    best = np.flatnonzero(quality >= quality.max() - 1e-12)
    return float(cuts[best[np.argmin(np.abs(cuts[best] - otherwise))]])


def tune(truth: Bools, scores: Floats, aspects: Sequence[str], otherwise: float) -> dict[str, float]:
    """One threshold per aspect: its own if it has enough labelled sentences, otherwise the best common one."""
    common = best_threshold(truth, scores, otherwise)
    return {
        aspect: best_threshold(truth[:, [column]], scores[:, [column]], common)
        if truth[:, column].sum() >= MIN_TO_TUNE
        else common
        for column, aspect in enumerate(aspects)
    }
