"""Limits on what the server accepts, so that no request can block it or fill its memory."""

from __future__ import annotations

from dataclasses import dataclass

from awatt.records.bounds import Bounds
from awatt.server.errors import ServiceError

FILE = Bounds(rows=1_000_000, bytes=256 * 2**20, seconds=60)


@dataclass(frozen=True)
class Limits:
    """The limits, each with its reason."""

    body: int = 64 * 2**20  # bytes: a file of some 100,000 reviews
    body_seconds: float = 60.0  # for a whole body to arrive: slower clients occupy a connection
    json_body: int = 8 * 2**20  # bytes of a JSON request: parsed as a whole
    texts: int = 2_000  # per request: about a second's work
    characters: int = 20_000  # per text: a very long review
    name: int = 100  # characters of the name of an aspect or a person
    file_name: int = 200  # characters that are kept of it
    note: int = 2_000  # characters: a remark, not a text
    notes: int = 5_000  # per project: sent with every change
    people: int = 40  # per project, who label: each two of them are compared
    votes: int = 200_000  # labels by people, per project: 40 people label 5,000 sentences
    aspects: int = 200  # per project: more do not fit on a page
    examples: int = 5_000  # per project: learning takes milliseconds for hundreds
    sentences: int = 100_000  # per project: all of them are scored again after each label
    columns: int = 1_000  # of a file
    file: Bounds = FILE  # what is read of an upload, after decompression
    waiting: int = 8_000  # texts in the queue: a few seconds' work; beyond that the response is 503
    waiting_characters: int = 2_000_000  # in the queue: the same, for long texts
    jobs: int = 16  # other computations at a time, running or waiting
    actions: int = 128  # small reads and changes at a time, running or waiting: milliseconds each
    requests: int = 256  # at a time, whatever they do


def check_length(text: str, limit: int, what: str, field: str | None = None) -> str:
    """The text, if it is not too long."""
    if len(text) > limit:
        raise ServiceError(
            f"{what} has {len(text):,} characters, but at most {limit:,} are allowed. Shorten or split it.", field
        )
    return text


def check_count(count: int, limit: int, what: str, field: str | None = None) -> None:
    """Raise if there are too many."""
    if count > limit:
        raise ServiceError(f"{count:,} {what}, but at most {limit:,} are allowed. Use fewer.", field)
