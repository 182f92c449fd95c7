"""Files in other encodings, with other delimiters, and JSON arrays."""

from __future__ import annotations

import pytest

from awatt.errors import AwattError
from awatt.records.bounds import Bounds, Meter
from awatt.records.conversion import sniff_delimiter, to_readable, to_utf8


def meter() -> Meter:
    return Meter(Bounds(rows=1000, bytes=10**6, seconds=60), AwattError)


TABLE = 'stars,review\n5,Très bon café\n1,"Cold, and dear"\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_text_in_any_usual_encoding_becomes_utf_8(encoding: str) -> None:
    content, format = to_readable(TABLE.encode(encoding), "csv", meter())
    assert (content.decode("utf-8-sig"), format) == (TABLE, "csv")


def test_a_broken_character_does_not_spoil_a_file_in_utf_8() -> None:
    content = "Très bon café, déjà vu\n".encode() + b"A\xff broken one\n"
    assert to_utf8(content) == content


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_a_table_with_another_delimiter_has_columns(delimiter: str) -> None:
    content = f'stars{delimiter}review\n5{delimiter}Good, really\n1{delimiter}"Cold{delimiter} and dear"\n'.encode()
    cell = f'"Cold{delimiter} and dear"' if delimiter == "," else f"Cold{delimiter} and dear"
    assert to_readable(content, "csv", meter())[0].decode() == f'stars,review\n5,"Good, really"\n1,{cell}\n'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("text\nGood; bad\nOne, two; three\n", ","),  # a single column
        ("a,b\n1,x; y\n2,z\n", ","),
        ("a;b, c;d\n1;x, y;2\n", ";"),
        ("", ","),
    ],
)
def test_the_delimiter_is_guessed_from_the_header_and_the_rows(text: str, wanted: str) -> None:
    assert sniff_delimiter(text, ",") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[{"text": "Good."}, {"text": "Bad.", "stars": 1}]', '{"text": "Good."}\n{"text": "Bad.", "stars": 1}\n'),
        ('["Good.", "Bad."]', '{"text": "Good."}\n{"text": "Bad."}\n'),
        ('{"page": 1, "reviews": [{"text": "Good."}]}', '{"text": "Good."}\n'),
    ],
)
def test_a_json_array_becomes_lines(text: str, wanted: str) -> None:
    assert to_readable(text.encode(), "json", meter()) == (wanted.encode(), "jsonl")


@pytest.mark.parametrize("text", ["{", "3", '{"a": [1], "b": [2]}', "[" * 100_000, '[{"text": "a", "text": "b"}]'])
def test_json_without_an_array_is_refused(text: str) -> None:
    with pytest.raises(AwattError, match="the file"):
        to_readable(text.encode(), "json", meter())
