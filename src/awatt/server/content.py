"""What a project holds, as it is read from its file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Aspect:
    """An aspect; ``threshold`` is None where the project's counts."""

    id: int
    name: str
    threshold: float | None


@dataclass(frozen=True)
class Example:
    """A sentence that a person has judged: the ids of all aspects that it mentions, maybe none."""

    id: int
    text: str
    aspects: tuple[int, ...]
    corrected: bool  # judged in the table, not typed in as an example


@dataclass(frozen=True)
class Version:
    """Counters of what changed last: everything, what is learned from, the reviews."""

    revision: int
    learned: int
    reviews: int


@dataclass(frozen=True)
class Content:
    """Everything but the reviews, at one moment."""

    version: Version
    aspects: list[Aspect]
    examples: list[Example]
    threshold: float | None  # of the project; None is the model's own
    n_sentences: int
    n_reviews: int
    undo: str | None
    redo: str | None
