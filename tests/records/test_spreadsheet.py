"""Cells for spreadsheets: no formula is left, and every text comes back as it was."""

from __future__ import annotations

from itertools import product

import pytest

from awatt.records.spreadsheet import escape_formula, unescape_formula


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("-nice", "'-nice"),
        ("'-nice", "''-nice"),
        ("''-nice", "'''-nice"),
        ("' =1", "'' =1"),
        ("Good;'=1", "Good;''=1"),
        ("'tis good - really", "'tis good - really"),
        ("Good; 'fine' = fine", "Good; 'fine' = fine"),
        ("", ""),
    ],
)
def test_a_text_that_begins_with_a_quote_and_a_sign_is_escaped_too(text: str, escaped: str) -> None:
    assert escape_formula(text) == escaped
    assert unescape_formula(escaped) == text


def test_every_short_text_comes_back_as_it_was() -> None:
    texts = ["".join(each) for length in range(7) for each in product("'-; \nx", repeat=length)]
    assert [text for text in texts if unescape_formula(str(escape_formula(text))) != text] == []
    assert len({escape_formula(text) for text in texts}) == len(texts)


def test_a_value_that_is_no_text_stays() -> None:
    assert escape_formula(-1.5) == -1.5
    assert escape_formula(None) is None
