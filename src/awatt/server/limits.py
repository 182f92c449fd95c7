"""Limits on what the server accepts, so that no request can block it or fill its memory."""

from __future__ import annotations

from dataclasses import dataclass

from awatt.errors import AwattError


class NotFoundError(AwattError):
    """The project has nothing with this id."""


class ConflictError(AwattError):
    """The change conflicts with the current state of the project."""


class BusyError(AwattError):
    """Too much work is waiting already."""


@dataclass(frozen=True)
class Limits:
    """The limits, each with its reason."""

    body: int = 64 * 2**20  # bytes: a file of some 100,000 reviews
    body_seconds: float = 60.0  # for a whole body to arrive: slower clients occupy a connection
    json_body: int = 8 * 2**20  # bytes of a JSON request: parsed as a whole
    texts: int = 2_000  # per request: about a second's work
    characters: int = 20_000  # per text: a very long review
    name: int = 100  # characters of an aspect's name
    aspects: int = 200  # per project: more do not fit on a page
    examples: int = 5_000  # per project: learning takes milliseconds for hundreds
    sentences: int = 100_000  # per project: all of them are scored again after each label
    waiting: int = 8_000  # texts in the queue: a few seconds' work; beyond that the response is 503
    jobs: int = 16  # other computations at a time, running or waiting


def check_length(text: str, limit: int, what: str) -> str:
    """The text, if it is not too long."""
    if len(text) > limit:
        raise AwattError(
            f"{what} has {len(text):,} characters, but at most {limit:,} are allowed. Shorten or split it."
        )
    return text


def check_count(count: int, limit: int, what: str) -> None:
    """Raise if there are too many."""
    if count > limit:
        raise AwattError(f"{count:,} {what}, but at most {limit:,} are allowed. Use fewer.")
