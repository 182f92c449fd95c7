"""The bodies of requests, checked before anything is done with them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _whole(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("half a character (a lone surrogate)") from None
    return text


Text = Annotated[str, AfterValidator(_whole)]
Key = Annotated[int, Field(ge=1, le=2**53)]
Share = Annotated[float, Field(ge=0, le=1)]
Limit = Literal["auto"] | Share | dict[Text, Share]


class Body(BaseModel):
    """Unknown fields are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid")


class DetectBody(Body):
    """Texts to detect in."""

    texts: list[Text] = Field(min_length=1, examples=[["The cheesecake is tasty."]])
    threshold: Limit | None = Field(None, description="Instead of the project's.", examples=[0.5])
    words: bool = Field(True, description="Also the words that decided.")


class AspectBody(Body):
    """A new aspect."""

    name: Text = Field(examples=["parking"])
    examples: list[Text] = Field([], examples=[["We never found a parking spot."]])


class AspectChange(Body):
    """What to change of an aspect; ``threshold`` null is the project's."""

    name: Text | None = Field(None, examples=["parking"])
    threshold: Share | None = Field(None, examples=[0.4])


class TextsBody(Body):
    """Sentences."""

    texts: list[Text] = Field(min_length=1, examples=[["Valet parking only."]])


class SuggestBody(Body):
    """Sentences among which to choose; those of the project without them."""

    texts: list[Text] | None = Field(None, examples=[["The widget is gone.", "Charging takes forever."]])
    k: int = Field(10, ge=1, le=100)


class MentionsBody(Body):
    """All aspects that a sentence mentions, by id; none if it is empty."""

    aspects: list[Key] = Field(examples=[[1]])


class SaidBody(Body):
    """What a person says of a sentence: all aspects that it mentions, by id; null takes back what was said."""

    aspects: list[Key] | None = Field(examples=[[1]])
    seen: list[Key] | None = Field(
        None,
        description="What had been said of it when the person looked, null for nothing. If given and not so any more, "
        "the answer is 409 and nothing is changed.",
    )


class IdsBody(Body):
    """Sentences by id."""

    ids: list[Key] = Field(max_length=500, examples=[[1, 2]])


class SettingsBody(Body):
    """The project's threshold; null is the model's own."""

    threshold: Share | None = Field(examples=[0.5])


class SampleBody(Body):
    """Which bundled sentences."""

    domain: Literal["restaurant", "hotel", "laptop"] = "restaurant"
