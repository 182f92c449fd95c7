"""The content of a project, as read from its file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Aspect:
    """An aspect; where ``threshold`` is None, the project's threshold applies."""

    id: int
    name: str
    threshold: float | None


@dataclass(frozen=True)
class Example:
    """A labelled sentence: the ids of all aspects that it mentions, possibly none."""

    id: int
    text: str
    aspects: tuple[int, ...]
    corrected: bool  # labelled in the table rather than typed in as an example
    made: int | None  # when it was labelled first, in seconds since 1970; files of earlier formats do not say
    votes: dict[str, list[int]]  # what each person said: the aspects by the person's name, "" where none was given


@dataclass(frozen=True)
class Version:
    """Counters: of all changes, of changes to what the detector learns from, and of changes of the reviews."""

    revision: int
    learned: int
    reviews: int


@dataclass(frozen=True)
class Content(Version):
    """Everything but the reviews, at one moment."""

    aspects: list[Aspect]
    examples: list[Example]
    threshold: float | None  # of the project; None means the model's own
    n_sentences: int
    n_reviews: int
    file: str | None  # the name of the file that was loaded
    notes: dict[str, str]  # by the text of the sentence
    undo: str | None  # the action that undo would reverse
    redo: str | None

    @property
    def version(self) -> Version:
        """The counters alone."""
        return Version(self.revision, self.learned, self.reviews)
