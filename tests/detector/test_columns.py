"""Batches of rows: the content that a resumed run compares, rows of several sentences, and reading ahead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from awatt.detector import reviews
from awatt.detector.columns import SECOND_LINE, SENTENCE_END, Batch, _count_several
from awatt.detector.reviews import ReadAhead, sample_texts
from awatt.errors import DataError

TEXTS = st.text(st.sampled_from("aB.!? \n\0\"'"), max_size=12)
ROWS = st.lists(st.tuples(TEXTS, st.dictionaries(st.sampled_from("ab"), TEXTS, max_size=1)), max_size=8)


def make(rows: list[tuple[str, dict[str, str]]]) -> Batch:
    return Batch([text for text, _ in rows], [dict(fields) for _, fields in rows])


@given(ROWS, st.integers(0, 8))
def test_the_content_of_parts_is_that_of_the_whole(rows: list[tuple[str, dict[str, str]]], place: int) -> None:
    batch = make(rows)
    assert batch.part(slice(place)).content() + batch.part(slice(place, None)).content() == batch.content()


@given(ROWS, ROWS)
def test_different_rows_have_different_content(
    rows: list[tuple[str, dict[str, str]]], others: list[tuple[str, dict[str, str]]]
) -> None:
    assert (make(rows).content() == make(others).content()) == (rows == others)


@given(st.lists(TEXTS))
def test_rows_of_several_sentences_are_counted(texts: list[str]) -> None:
    found = [
        bool(SENTENCE_END.search(text)) or ("\n" in text and bool(SECOND_LINE.search(text.strip()))) for text in texts
    ]
    assert _count_several(texts) == sum(found)


def read(*texts: str, error: DataError | None = None) -> Iterator[Batch]:
    """Batches of one row; then the error."""
    for text in texts:
        yield Batch([text], [{}])
    if error:
        raise error


@pytest.mark.parametrize("looked_at", [0, 1, 2, 3])
def test_rows_that_were_looked_at_come_again(looked_at: int) -> None:
    ahead = ReadAhead(read("a", "b", "c"))
    texts = ahead.texts()
    assert [next(texts) for _ in range(looked_at)] == ["a", "b", "c"][:looked_at]
    del texts  # a generator that is not used up
    assert [(batch.texts, content == batch.content()) for batch, content in ahead] == [
        (["a"], True),
        (["b"], True),
        (["c"], True),
    ]


def test_an_error_met_while_looking_ahead_is_raised_when_it_is_due() -> None:
    ahead = ReadAhead(read("a", "b", error=DataError("cut short", "x.csv")))
    assert sample_texts(ahead.texts(), split=False) == ["a", "b"]
    found: list[list[str]] = []
    with pytest.raises(DataError, match="cut short"):
        found.extend(batch.texts for batch, _ in ahead)
    assert found == [["a"], ["b"]]


def test_large_rows_are_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "FIRST_BYTES", 100)
    batches = iter([Batch([str(number)], [{"other": "x" * 60}]) for number in range(9)])
    assert list(ReadAhead(batches).texts()) == ["0", "1"]
    assert next(batches).texts == ["2"]
