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
    """What was found, what is needed and what to do next: the line that the command would print.

    ``code`` never changes for the same kind of error; ``field`` names the part of the request or the column of the
    file, and ``line`` the line of the file, where there is one.
    """

    error: str
    code: str
    field: str | None = None
    line: int | None = None


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

    ``name`` is that of the project's file; ``model`` is fast, accurate or a folder. ``auto_threshold`` is the model's
    before anything was learned; those learned come with the scores. ``by_name`` has the ids of aspects without an
    example, which are guessed from their names; ``unlearned`` those of aspects without an example whose names the model
    cannot read: they are never found.
    """

    project: str
    name: str
    model: str
    auto_threshold: float
    by_name: list[int]
    unlearned: list[int]


@dataclass(frozen=True)
class ProjectList(Documented):
    """The projects of this server; ``many`` says whether others can be opened and created."""

    names: list[str]
    many: bool


@dataclass(frozen=True)
class OpenedProject(Documented):
    """A project: its name, and the id for the header x-awatt-project."""

    name: str
    project: str


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
    """How many reviews were loaded, how many rows were skipped, and the errors of the first of these.

    ``english`` is false if most sentences seem to be in another language, which the bundled models do not know.
    """

    reviews: int
    left_out: int
    faults: list[str]
    english: bool


@dataclass(frozen=True)
class Imported(Documented):
    """How many labelled sentences were imported."""

    examples: int


@dataclass(frozen=True)
class Review(Documented):
    """A whole review: the ids and texts of its sentences, and its other columns."""

    ids: list[int]
    texts: list[str]
    fields: dict[str, object]


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


#: For the document. A reference instead of the class: FastAPI would make a validator per route and status, 700 in all.
ERROR_REFERENCE = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": ERROR_REFERENCE}
    for status, text in {
        400: "Malformed header or body",
        401: "Missing or wrong token",
        403: "Request from another origin, or a change by a read-only sign-in",
        404: "No such id",
        408: "The body did not arrive in time",
        409: "Conflict with the current state of the project",
        413: "Too large",
        415: "Wrong content type",
        421: "Request for another host",
        422: "Invalid input",
        429: "Too many wrong tokens",
        500: "Internal error",
        503: "Busy, or the project's file cannot be used: try again after Retry-After seconds",
        507: "The disk is full",
    }.items()
}


def describe_error() -> dict[str, Any]:
    """The schema that the descriptions of errors refer to."""
    return TypeAdapter(Error).json_schema(mode="serialization")


def error_json(message: str, code: str, field: str | None = None, line: int | None = None) -> bytes:
    """An error as the body of a response."""
    message = message.encode("utf-8", "replace").decode()  # a quoted value may contain half a character
    return _ANY.dump_json(Error(message, code, field, line))


def to_json(value: object) -> bytes:
    """An instance of a class that the document describes, as JSON."""
    return _ANY.dump_json(value)


def json_response(value: object) -> Response:
    """The same as a response."""
    return Response(to_json(value), media_type="application/json")


def describe_json(shape: type) -> dict[int | str, dict[str, Any]]:
    """For the document: JSON of this shape."""
    return {200: {"model": shape, "description": " ".join((shape.__doc__ or "").split())}}


def describe_file(*media_types: str) -> dict[int | str, dict[str, Any]]:
    """For the document: the bytes of a file."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"description": "The bytes", "content": {kind.partition(";")[0]: binary for kind in media_types}}}
