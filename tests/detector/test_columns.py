"""Batches of rows: the content that a resumed run compares, and rows of several sentences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from awatt.detector.columns import SECOND_LINE, SENTENCE_END, Batch, _count_several

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
