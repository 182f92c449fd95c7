"""The bodies of requests, validated before anything else happens."""

from __future__ import annotations

from types import EllipsisType
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError


def _check_unicode(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"contains an unpaired surrogate at character {error.start + 1}") from None
    return text


def _refuse_bool(value: object) -> object:
    """True would be read as 1."""
    if isinstance(value, bool):
        raise ValueError("a number is needed")
    return value


def _explain(needed: str) -> WrapValidator:
    """Say what is needed in these words, instead of one error for every kind of value that is allowed."""

    def validate(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError("needed", f"must be {needed}") from None

    return WrapValidator(validate)


Text = Annotated[str, AfterValidator(_check_unicode)]
Key = Annotated[int, Field(ge=1, le=2**53)]  # in bodies and in paths
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_refuse_bool)]
Threshold = Annotated[Share, _explain("a number from 0 to 1")]
Aim = Literal["auto", "balanced", "precise", "thorough"]
One = Aim | Share
Thresholds = Annotated[
    One | dict[Text, One],
    _explain("a number from 0 to 1, or balanced, precise or thorough: one for all aspects, or an object with one each"),
]


class Body(BaseModel):
    """Unknown fields are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid")


class DetectBody(Body):
    """Texts in which to detect aspects."""

    texts: list[Text] = Field(examples=[["The cheesecake is tasty."]])
    threshold: Thresholds | None = Field(
        None,
        description="Used instead of the project's thresholds: balanced (auto is the same), precise, thorough or a "
        "number; one for all aspects, or one per aspect.",
        examples=[0.5],
    )
    words: bool = Field(True, description="Whether to include the words that decided.")


class AspectBody(Body):
    """A new aspect."""

    name: Text = Field(examples=["parking"])
    examples: list[Text] = Field([], examples=[["We never found a parking spot."]])


class NamesBody(Body):
    """Names of new aspects."""

    names: list[Text] = Field(min_length=1, max_length=200, examples=[["battery", "screen", "price"]])


class AspectChange(Body):
    """What to change about an aspect; a ``threshold`` of null means the project's."""

    name: Text | None = Field(None, examples=["parking"])
    threshold: Threshold | None = Field(None, examples=[0.4])


class TextsBody(Body):
    """Sentences."""

    texts: list[Text] = Field(min_length=1, examples=[["Valet parking only."]])


class SuggestBody(Body):
    """Sentences to choose from; by default those of the project."""

    texts: list[Text] | None = Field(None, examples=[["The widget is gone.", "Charging takes forever."]])
    k: int = Field(10, ge=1, le=100)


class MentionsBody(Body):
    """All aspects that a sentence mentions, by id; an empty list means none."""

    aspects: list[Key] = Field(examples=[[1]])


class RevisionBody(Body):
    """What the client means to undo or redo."""

    revision: Key | None = Field(
        None,
        description="The project's revision that the client last saw. If given and the project has changed since, the "
        "response is 409 and nothing changes.",
    )


class SeenLabel(Body):
    """A new label, and the one that the client last saw."""

    aspects: list[Key] | None = Field(examples=[[1]])
    seen: list[Key] | None = Field(
        None,
        description="The label that the client last saw, null for none. If given and the label has changed since, "
        "the response is 409 and nothing changes.",
    )

    @property
    def seen_label(self) -> list[int] | EllipsisType | None:
        """The label that the client last saw; ``...`` if the request does not say."""
        return self.seen if "seen" in self.model_fields_set else ...


class LabelBody(SeenLabel):
    """The label of a sentence: all aspects that it mentions, by id; null removes the label."""

    person: Text = Field("", max_length=1000, description="Who says so; kept beside what others say.")


class SentenceLabel(SeenLabel):
    """The label of one of several sentences; null removes it."""

    id: Key


class LabelsBody(Body):
    """Labels of several sentences."""

    labels: list[SentenceLabel] = Field(min_length=1, max_length=2000)
    person: Text = Field("", max_length=1000)


class NoteBody(Body):
    """A note on a sentence."""

    note: Text = Field(examples=["Ask what they mean by 'the usual'."])


class GroupsBody(Body):
    """Suggested aspects, by the names under which they were suggested."""

    groups: list[Text] = Field(min_length=1, max_length=200, examples=[["desk"]])


class AcceptBody(Body):
    """A suggested aspect: its name, examples, and the suggestions that it consists of."""

    name: Text = Field(examples=["reception"])
    examples: list[Text] = Field([], examples=[["The front desk was closed."]])
    groups: list[Text] = Field([], max_length=200, examples=[["desk", "receptionist"]])


class IdsBody(Body):
    """Sentences, by id."""

    ids: list[Key] = Field(max_length=500, examples=[[1, 2]])


class SettingsBody(Body):
    """The project's threshold; null means the model's own."""

    threshold: Threshold | None = Field(examples=[0.5])


class LinkBody(Body):
    """Which link; ``view`` is what the page shows first, such as ``overview`` or ``sentences?aspect=food``."""

    read_only: bool = False
    view: Text = Field("", max_length=4000, examples=["overview"])


class SampleBody(Body):
    """Which bundled sample."""

    domain: Literal["restaurant", "hotel", "laptop"] = "restaurant"


class ProjectBody(Body):
    """Which project to open."""

    name: Text = Field(max_length=1000, examples=["hotels"])
