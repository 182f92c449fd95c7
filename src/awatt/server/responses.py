"""What the routes answer, for the OpenAPI document. Not checked while serving: it takes time, and a test does."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from awatt.server.content import Aspect, Example


class Answer(BaseModel):
    """No field that the document does not name."""

    model_config = ConfigDict(extra="forbid")


class Error(Answer):
    """What was found, what is needed and what to do next: the same line as on the command line."""

    error: str


class Word(Answer):
    """A word that decided: its characters in the text, and its share of the attention."""

    text: str
    start: int
    end: int
    weight: float


class Detected(Answer):
    """What a text mentions; every aspect has a score, and those found have words."""

    text: str
    aspects: list[str]
    scores: dict[str, float]
    words: dict[str, list[Word]]


class Detections(Answer):
    """One for each text, in the same order."""

    detections: list[Detected]


class Suggested(Answer):
    """A sentence worth labelling; ``id`` is null where the request brought the texts."""

    id: int | None
    text: str
    index: int
    aspect: str
    score: float


class Suggestions(Answer):
    """The most useful first."""

    suggestions: list[Suggested]


class AspectWithExamples(Answer):
    """An aspect; ``threshold`` is null where the project's counts."""

    id: int
    name: str
    threshold: float | None
    examples: list[str]


class Aspects(Answer):
    """All aspects."""

    aspects: list[AspectWithExamples]


class Project(Answer):
    """Everything but the sentences. ``undo`` and ``redo`` say what would be undone, or done again."""

    project: str
    revision: int
    learned: int
    reviews: int
    aspects: list[Aspect]
    examples: list[Example]
    threshold: float | None
    auto_threshold: float
    n_sentences: int
    n_reviews: int
    undo: str | None
    redo: str | None


class Counters(Answer):
    """What changed last: everything, what is learned from, the reviews; and of which project."""

    project: str
    revision: int
    learned: int
    reviews: int


class Columns(Answer):
    """The columns of a file, and its first rows."""

    columns: list[str]
    rows: list[dict[str, str]]


class Loaded(Answer):
    """How many reviews were loaded, how many rows were left out, and why the first of these."""

    reviews: int
    left_out: int
    faults: list[str]


class Sentences(Answer):
    """Lists of one length; ``reviews`` is the counter of loads."""

    reviews: int
    ids: list[int]
    review: list[int]
    texts: list[str]


class Words(Answer):
    """By sentence and aspect: start, end, weight."""

    words: dict[str, dict[str, list[Annotated[list[float], Field(min_length=3, max_length=3)]]]]


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": text}
    for status, text in {
        400: "A broken header or body",
        401: "No token",
        403: "Another origin",
        404: "No such id",
        408: "The body did not arrive in time",
        409: "It does not fit what is there",
        413: "Too large",
        421: "Another host",
        422: "Bad input",
        500: "A fault of ours",
        503: "Busy: try again after Retry-After seconds",
    }.items()
}


def gives(model: type) -> dict[int | str, dict[str, Any]]:
    """JSON of this shape."""
    return {200: {"model": model, "description": " ".join((model.__doc__ or "").split())}}


def gives_bytes(*media_types: str) -> dict[int | str, dict[str, Any]]:
    """A file."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"description": "The bytes", "content": {kind.partition(";")[0]: binary for kind in media_types}}}
