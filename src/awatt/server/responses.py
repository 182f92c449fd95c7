"""The responses of the routes.

The OpenAPI document is generated from these classes and the detector's own result classes, and the JSON is written from
their instances: a shape is described once. Nothing is validated while serving; a test checks the responses instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Response
from pydantic import ConfigDict, Field, TypeAdapter

from awatt.detector.results import Detection
from awatt.detector.suggest import Suggestion
from awatt.server.content import Aspect, Content, Version

_ANY: TypeAdapter[Any] = TypeAdapter(Any)  # writes what it is given, without validating it


class Documented:
    """In the OpenAPI document these objects, and those within them, have no other fields."""

    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Error(Documented):
    """What was found, what is needed and what to do next: the line that the command would print."""

    error: str


@dataclass(frozen=True)
class Detections(Documented):
    """One detection per text, in the same order."""

    detections: list[Detection]


@dataclass(frozen=True)
class SuggestedSentence(Documented, Suggestion):
    """A sentence worth labelling; ``id`` is null where the request contained the texts."""

    id: int | None


@dataclass(frozen=True)
class Suggestions(Documented):
    """The sentences to label next, the most useful first."""

    suggestions: list[SuggestedSentence]


@dataclass(frozen=True)
class AspectWithExamples(Documented, Aspect):
    """An aspect; where ``threshold`` is null, the project's threshold applies."""

    examples: list[str]


@dataclass(frozen=True)
class Aspects(Documented):
    """All aspects with their examples."""

    aspects: list[AspectWithExamples]


@dataclass(frozen=True)
class Project(Documented, Content):
    """Everything but the sentences. ``undo`` and ``redo`` name the action that would be undone or redone.

    ``auto_threshold`` is the model's before anything was learned; those learned come with the scores.
    """

    project: str
    auto_threshold: float


@dataclass(frozen=True)
class Counters(Documented, Version):
    """Counters that increase when the project changes, and the project's id."""

    project: str


@dataclass(frozen=True)
class Columns(Documented):
    """The columns of a file, and its first rows."""

    columns: list[str]
    rows: list[dict[str, str]]


@dataclass(frozen=True)
class Loaded(Documented):
    """How many reviews were loaded, how many rows were skipped, and the errors of the first of these."""

    reviews: int
    left_out: int
    faults: list[str]


@dataclass(frozen=True)
class Sentences(Documented):
    """The sentences as lists of equal length; ``reviews`` is the counter of that name."""

    reviews: int
    ids: list[int]
    review: list[int]
    texts: list[str]


@dataclass(frozen=True)
class Words(Documented):
    """Per sentence id and aspect: start, end and weight of each word."""

    words: dict[int, dict[str, list[Annotated[list[float], Field(min_length=3, max_length=3)]]]]


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": text}
    for status, text in {
        400: "Malformed header or body",
        401: "Missing or wrong token",
        403: "Request from another origin",
        404: "No such id",
        408: "The body did not arrive in time",
        409: "Conflict with the current state of the project",
        413: "Too large",
        421: "Request for another host",
        422: "Invalid input",
        500: "Internal error",
        503: "Busy: try again after Retry-After seconds",
    }.items()
}


def json_response(value: object, status: int = 200) -> Response:
    """An instance of a class that the document describes, as JSON."""
    return Response(_ANY.dump_json(value), status, media_type="application/json")


def describe_json(shape: type) -> dict[int | str, dict[str, Any]]:
    """For the document: JSON of this shape."""
    return {200: {"model": shape, "description": " ".join((shape.__doc__ or "").split())}}


def describe_file(*media_types: str) -> dict[int | str, dict[str, Any]]:
    """For the document: the bytes of a file."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"description": "The bytes", "content": {kind.partition(";")[0]: binary for kind in media_types}}}
