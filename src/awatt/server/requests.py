"""The bodies of requests, validated before anything else happens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _check_unicode(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"contains an unpaired surrogate at character {error.start}") from None
    return text


Text = Annotated[str, AfterValidator(_check_unicode)]
Key = Annotated[int, Field(ge=1, le=2**53)]
Threshold = Annotated[float, Field(ge=0, le=1)]
Aim = Literal["auto", "balanced", "precise", "thorough"]
Thresholds = Aim | Threshold | dict[Text, Aim | Threshold]


class Body(BaseModel):
    """Unknown fields are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid")


class DetectBody(Body):
    """Texts in which to detect aspects."""

    texts: list[Text] = Field(min_length=1, examples=[["The cheesecake is tasty."]])
    threshold: Thresholds | None = Field(
        None,
        description="Used instead of the project's thresholds: balanced (auto means it), precise, thorough or a "
        "number; one for all aspects, or one per aspect.",
        examples=[0.5],
    )
    words: bool = Field(True, description="Whether to include the words that decided.")


class AspectBody(Body):
    """A new aspect."""

    name: Text = Field(examples=["parking"])
    examples: list[Text] = Field([], examples=[["We never found a parking spot."]])


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


class LabelBody(Body):
    """The label of a sentence: all aspects that it mentions, by id; null removes the label."""

    aspects: list[Key] | None = Field(examples=[[1]])
    seen: list[Key] | None = Field(
        None,
        description="The label that the client last saw, null for none. If given and the label has changed since, "
        "the response is 409 and nothing changes.",
    )


class IdsBody(Body):
    """Sentences, by id."""

    ids: list[Key] = Field(max_length=500, examples=[[1, 2]])


class SettingsBody(Body):
    """The project's threshold; null means the model's own."""

    threshold: Threshold | None = Field(examples=[0.5])


class SampleBody(Body):
    """Which bundled sample."""

    domain: Literal["restaurant", "hotel", "laptop"] = "restaurant"
