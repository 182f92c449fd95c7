"""Tables for spreadsheets: what would be evaluated as a formula is quoted, and a mark says that the file is UTF-8."""

from __future__ import annotations

import re

SIGNS = "=+\\-@＝＋－＠"  # a spreadsheet treats a cell that starts with these as a formula, the full-width ones in Asia
#: at the start of a cell, or of a part of it that becomes a cell where the semicolon separates them
#: Quotes that are already there make no difference, so that each is distinguished from one that was added.
FORMULA = re.compile(rf"\A(?='*[\t\r\n]|['\s]*[{SIGNS}])|(?<=[;\t\r\n])(?=(?:'|[^\S\t\r\n])*[{SIGNS}])")
ESCAPED = re.compile(FORMULA.pattern.replace("(?=", "'(?="))
BOM = b"\xef\xbb\xbf"  # tells Excel that a file is UTF-8


def escape_formula(value: object) -> object:
    """The value; a text with a quote before everything that a spreadsheet would evaluate."""
    return FORMULA.sub("'", value) if isinstance(value, str) else value


def unescape_formula(text: str) -> str:
    """The text as it was before `escape_formula`."""
    return ESCAPED.sub("", text)
