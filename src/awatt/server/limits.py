"""What the server takes, so that no request can hold it up or fill its memory."""

from __future__ import annotations

from dataclasses import dataclass

from awatt.errors import AwattError


class NotFoundError(AwattError):
    """An id that the project does not have."""


class ConflictError(AwattError):
    """A change that does not fit what is there."""


class BusyError(AwattError):
    """More work is waiting than is useful to wait for."""


@dataclass(frozen=True)
class Limits:
    """Each with its reason."""

    body: int = 64 * 2**20  # bytes: a file of some 100,000 reviews
    body_seconds: float = 60.0  # for a whole body to arrive: slower ones hold a connection
    json_body: int = 8 * 2**20  # bytes of a JSON request: parsed as a whole
    texts: int = 2_000  # of one request: about a second's work
    characters: int = 20_000  # of one text: a very long review
    name: int = 100  # characters of an aspect's name
    aspects: int = 200  # of a project: more do not fit on a page
    examples: int = 5_000  # of a project: learning takes milliseconds for hundreds
    sentences: int = 100_000  # of a project: all of them are scored again after a correction
    waiting: int = 8_000  # texts in the queue: a few seconds' work; more is answered with 503
    jobs: int = 16  # other computations at a time, running or waiting


def check_length(text: str, most: int, what: str) -> str:
    """The text, if it is not too long."""
    if len(text) > most:
        raise AwattError(f"{what} has {len(text):,} characters, but at most {most:,} are taken. Shorten or split it.")
    return text


def check_count(count: int, most: int, what: str) -> None:
    """Raise if there are too many."""
    if count > most:
        raise AwattError(f"{count:,} {what}, but at most {most:,} are taken. Give fewer.")
