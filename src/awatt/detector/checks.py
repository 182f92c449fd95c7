"""Whether a model can learn from examples, and what a person should know of odd ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import compress, product
from pathlib import Path

from awatt.aspect_model.checks import check_examples, has_words
from awatt.aspect_model.model import AspectModel
from awatt.detector.examples import Examples, alike_names
from awatt.detector.finding import split_long
from awatt.detector.models import Model
from awatt.errors import AwattError, plural
from awatt.records.formats import short_repr

_log = logging.getLogger(__name__)


def check_teachable(model: Model, name: str | Path | None, examples: Examples) -> None:
    """Raise if nothing can be learned from the examples, with a line that says what to do; warn of odd ones.

    ``name`` is the model's, for messages.
    """
    reads_names = isinstance(model, AspectModel)
    if reads_names:
        check_examples(examples.texts, examples.labels, examples.aspects, model.knows_name)
    for aspect, count in zip(examples.aspects, examples.counts, strict=True):
        if not count and not model.knows_name(aspect):
            why, advice = f"{name} does not read names", "Give it at least one sentence, or leave it out."
            if reads_names:
                why, advice = "its name has no known word", "Give it an example sentence, or a name in words."
            raise AwattError(f"aspect '{aspect}' has no example, and {why}. {advice}")
    warn_about_odd(model, examples)


def warn_about_odd(model: Model, examples: Examples) -> None:
    """Of texts that are too long or have no words, and of names that are nearly the same."""
    if n_long := sum(len(parts) > 1 for parts in split_long(model, examples.texts)):
        found = f"{plural(n_long, 'example')} of more than {model.max_length} tokens"
        _log.warning("%s: only the beginning is learned from. Give single sentences.", found)
    taught = compress(examples.texts, examples.labels.sum(1))  # off-topic ones may well be emoji
    if wordless := [text for text in taught if not has_words(text)]:
        found = f"{plural(len(wordless), 'example')} without words, such as {short_repr(wordless[0])}"
        _log.warning("%s: hardly anything is learned from that. Give sentences with words.", found)
    warn_about_alike(alike_names(examples.aspects))


def warn_about_alike(pairs: Iterable[tuple[str, str]]) -> None:
    """Of each pair of names that differ only in case or white space."""
    for known, name in pairs:
        found = f"the aspects '{known}' and '{name}' differ only in case or white space, and compete with each other"
        _log.warning("%s. If they are the same, write them the same way.", found)


def warn_about_joined(aspects: Iterable[str]) -> None:
    """Of the first name that looks like several, as files write them."""
    for name, sign in product(aspects, "|;"):
        if sign in name:
            advice = f"If it is several, give lists: y.str.split('{sign}') with pandas."
            _log.warning("the label '%s' is one aspect, although files separate aspects so. %s", name, advice)
            return
