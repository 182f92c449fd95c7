"""Reading and writing records: every format, errors with their place, whole files, limited memory."""

from __future__ import annotations

import csv
import gc
import gzip
import io
import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from awatt.errors import AwattError, DataError
from awatt.records import formats, lines, parquet
from awatt.records import source as sources
from awatt.records.bounds import limited_memory
from awatt.records.reader import Record, read_records, read_rows
from awatt.records.writer import RecordWriter

TABLES = ["jsonl", "csv", "tsv", "parquet"]
ALL = [*TABLES, "txt"]
GZIP = ["", ".gz"]
LIMIT = csv.field_size_limit()


def read(path: Path | str, **options: Any) -> list[Record]:
    return [record for batch in read_records(path, **options) for record in batch]


def read_leniently(path: Path, **options: Any) -> tuple[list[Record], list[DataError]]:
    errors: list[DataError] = []
    return read(path, on_error=errors.append, **options), errors


def write(path: Path | str, *batches: Sequence[dict[str, Any]], **options: Any) -> None:
    with RecordWriter(path, **options) as writer:
        for rows in batches:
            writer.write(rows)


def error_of(path: Path | str, **options: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        read(path, **options)
    return caught.value


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def put_file(name: str, content: str | bytes) -> Path:
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return put_file


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    yield
    gc.collect(0)
    assert [str(each.exc_value) for each in complaints] == []
    assert csv.field_size_limit() == LIMIT


# ---- round trips ----


@pytest.mark.parametrize("gz", GZIP)
@pytest.mark.parametrize("kind", TABLES)
def test_round_trip(tmp_path: Path, kind: str, gz: str) -> None:
    path = tmp_path / f"reviews.{kind}{gz}"
    rows = [
        {"id": "1", "text": 'Good "food",\tbad\nservice', "aspects": ["food", "service"], "note": "naïve 😀"},
        {"id": "2", "text": "", "aspects": [], "note": "a\r\nb"},
        {"id": "3", "text": " spaces stay ", "aspects": ["a, b", "c|d;e", "[f]"], "note": "x"},
    ]
    write(path, rows)
    found = read(path, batch_size=2)
    assert [record.text for record in found] == [row["text"] for row in rows]
    assert [record.aspects for record in found] == [tuple(row["aspects"]) for row in rows]
    assert [dict(record.fields) for record in found] == [{"id": row["id"], "note": row["note"]} for row in rows]
    assert [list(record.fields) for record in found] == [["id", "note"]] * 3
    # the header is a line, and the first and second rows of a delimited file span two lines each
    assert [record.line for record in found] == ([2, 4, 6] if kind in ("csv", "tsv") else [1, 2, 3])


@pytest.mark.parametrize("gz", GZIP)
def test_round_trip_of_plain_text(tmp_path: Path, gz: str) -> None:
    path = tmp_path / f"reviews.txt{gz}"
    write(path, [{"sentence": "Good food."}, {"sentence": " naïve\u2028😀 "}])
    assert read(path) == [Record("Good food.", line=1), Record(" naïve\u2028😀 ", line=2)]


any_text = st.text(max_size=30) | st.text(alphabet='",;|\t\r\n[]\0\\ aé😀', max_size=20)
any_row = st.fixed_dictionaries({"text": any_text, "aspects": st.lists(any_text, max_size=4), "note": any_text})


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(rows=st.lists(any_row, min_size=1, max_size=5))
def test_any_text_survives_a_round_trip(tmp_path: Path, kind: str, rows: list[dict[str, Any]]) -> None:
    path = tmp_path / f"any.{kind}"
    write(path, rows, overwrite=True)
    found = read(path, batch_size=2)
    assert [(record.text, record.fields["note"]) for record in found] == [(row["text"], row["note"]) for row in rows]
    names = [dict.fromkeys(filter(None, map(str.strip, row["aspects"]))) for row in rows]
    assert [record.aspects for record in found] == [tuple(each) for each in names]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(texts=st.lists(any_text.filter(lambda text: text.strip() and not {"\r", "\n"} & set(text))))
def test_any_line_of_plain_text_survives_a_round_trip(tmp_path: Path, texts: list[str]) -> None:
    path = tmp_path / "any.txt"
    write(path, [{"text": text} for text in texts], overwrite=True)
    assert [record.text for record in read(path)] == [text.removeprefix("\ufeff") for text in texts[:1]] + texts[1:]


@pytest.mark.parametrize("kind", TABLES)
def test_columns_by_other_names(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    write(path, [{"review": "good", "labels": ["a"], "text": "other"}])
    [record] = read(path, text_column="review", aspects_column="labels")
    assert record == Record("good", ("a",), {"text": "other"}, record.line)


@pytest.mark.parametrize("kind", TABLES)
def test_a_file_without_aspects_is_unlabelled(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    write(path, [{"text": "good"}])
    assert [record.aspects for record in read(path)] == [()]


# ---- aspects ----


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("", ()),
        ("food", ("food",)),
        (" food | service;; food ", ("food", "service")),
        ("food, drinks|price", ("food, drinks", "price")),
        ('["food", " service ", "", "food"]', ("food", "service")),
        ("[]", ()),
        ("[food] quality", ("[food] quality",)),
    ],
)
def test_aspects_in_a_cell(put: Any, cell: str, names: tuple[str, ...]) -> None:
    quoted = cell.replace('"', '""')
    assert read(put("x.csv", f'text,aspects\ngood,"{quoted}"\n'))[0].aspects == names


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("null", ()),
        ("NaN", ()),
        ('[" a ", "", null, "b", "a"]', ("a", "b")),
        ('"a|b"', ("a", "b")),
    ],
)
def test_aspects_in_json(put: Any, value: str, names: tuple[str, ...]) -> None:
    assert read(put("x.jsonl", f'{{"text": "good", "aspects": {value}}}\n'))[0].aspects == names


def test_aspects_can_be_a_column_like_any_other(put: Any) -> None:
    path = put("x.tsv", "text\taspects\ngood\tservice, food\n")
    (record,) = read(path, aspects_column=None)
    assert (record.aspects, record.fields) == ((), {"aspects": "service, food"})


def test_aspects_of_parquet_strings_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = {"text": ["a", "b", "c"], "aspects": ["x;y", None, '["z"]']}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    assert [record.aspects for record in read(path)] == [("x", "y"), (), ("z",)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("5", "found 5, but a list of names is needed"),
        ('["a", 5]', "found 5 in the list, but each name must be text"),
        ("\"['a', 'b']\"", "which is not a JSON list. Write"),
        ('{"a": 1}', "found {'a': 1}, but a list"),
    ],
)
def test_invalid_aspects(put: Any, value: str, message: str) -> None:
    error = error_of(put("x.jsonl", f'{{"text": "b"}}\n{{"text": "b", "aspects": {value}}}\n'))
    assert message in str(error)
    assert (error.line, error.column) == (2, "aspects")


# ---- lines ----


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends(put: Any, end: str, last: bool) -> None:
    tail = end if last else ""
    assert read(put("x.txt", f"a{end}{end}b{tail}")) == [Record("a", line=1), Record("b", line=3)]
    path = put("x.jsonl", f'{{"text": "a"}}{end}  {end}{{"text": "b"}}{tail}')
    assert read(path) == [Record("a", line=1), Record("b", line=3)]
    assert read(put("x.csv", f"text{end}a{end}{end}b{tail}")) == [Record("a", line=2), Record("b", line=4)]


@pytest.mark.parametrize(
    ("name", "content"), [("x.txt", "é\n"), ("x.jsonl", '{"text": "é"}\n'), ("x.csv", '"text"\né\n')]
)
def test_a_byte_order_mark_is_not_text(put: Any, name: str, content: str) -> None:
    assert [record.text for record in read(put(name, b"\xef\xbb\xbf" + content.encode()))] == ["é"]


@pytest.mark.parametrize("name", ["x.txt", "x.jsonl", "x.txt.gz", "x.jsonl.gz"])
def test_empty_files_give_nothing(put: Any, name: str) -> None:
    assert read(put(name, "")) == []
    assert read(put(name, "\n \n")) == []


def test_a_header_alone_gives_nothing(put: Any) -> None:
    assert read(put("x.csv", "text,aspects\n")) == []


def test_long_cells_and_the_limit_of_csv(put: Any) -> None:
    long = "x" * 300_000
    path = put("x.csv", f"text\n{long}\nb\n")
    first = read_records(path, batch_size=1)
    second: Any = read_records(path, batch_size=1)
    assert next(first)[0].text == next(second)[0].text == long
    assert [len(batch) for batch in first] == [1]  # the first to end must not take the limit from the second
    assert csv.field_size_limit() > LIMIT
    second.close()
    assert csv.field_size_limit() == LIMIT


@pytest.mark.parametrize("kind", TABLES)
def test_aspects_with_a_comma_are_read_as_they_were_written(tmp_path: Path, kind: str) -> None:
    names = [["sound, comfort"], ["a;b", "c"], ["d|e"], ["f", "g"]]
    write(path := tmp_path / f"x.{kind}", [{"text": "t", "aspects": each} for each in names])
    assert [list(record.aspects) for record in read(path)] == names


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", b'text,n\na,1\n\n"b\nc",2\nd\n"e",3\n\xff,4\nf,5,6\n"g,7\nh,8\n'),
        ("x.jsonl", b'{"text": "a"}\n\n{"text": 1}\n{"text": "b"\n{"no": 2}\n{"text": "c", "n": 1}\n\xff\n["d"]\n'),
        ("x.txt", b"a\n \nb\r\n\xff\nc"),
    ],
)
def test_rows_and_errors_are_the_same_however_many_are_read_at_once(put: Any, name: str, content: bytes) -> None:
    path, seen = put(name, content), []
    for size in (1, 2, 1024):
        happened: list[object] = []
        for batch in read_records(path, batch_size=size, on_error=lambda error: happened.append(str(error))):  # noqa: B023
            happened += [(record.line, record.text, dict(record.fields)) for record in batch]
        seen.append(sorted(map(repr, happened)))
        rows = read_rows(path, batch_size=size, on_error=lambda error: None)
        assert [row["text"] for batch in rows for row in batch] == [each[1] for each in happened if len(each) == 3]  # type: ignore[arg-type,index]
    assert seen[0] == seen[1] == seen[2]


def test_nul_is_ordinary_text(put: Any) -> None:
    assert [record.text for record in read(put("x.txt", "a\0b\n"))] == ["a\0b"]
    assert [record.text for record in read(put("x.csv", "text\na\0b\n"))] == ["a\0b"]
    assert "Invalid control character" in str(error_of(put("x.jsonl", '{"text": "a\0b"}\n')))


def test_escapes_and_nan_in_json(put: Any) -> None:
    [record] = read(put("x.jsonl", '{"text": "\\ud83d\\ude00\\u0000", "score": NaN}\n'))
    assert record.text == "😀\0"


# ---- errors ----

ERRORS: dict[str, tuple[str, str | bytes, int | None, str | None, str]] = {
    "no text column": ("x.csv", "a,b\n1,2\n", 1, "text", r"columns are: 'a', 'b'\. .* --text-column"),
    "no text key": (
        "x.jsonl",
        '{"text": "a"}\n\n{"b": 1}\n',
        3,
        "text",
        "columns are: 'b'. .* --text-column",
    ),
    "null text": ("x.jsonl", '{"text": null}\n', 1, "text", "found null, but text is needed"),
    "number as text": ("x.jsonl", '{"text": 5.5}\n', 1, "text", "found 5.5, but text is needed"),
    "invalid JSON": (
        "x.jsonl",
        '{"text": "a"}\n{"text": \n',
        2,
        None,
        r"invalid JSON at character \d+ .*'{\"text\":'",
    ),
    "an array": (
        "x.jsonl",
        '[{"text": "a"}]\n',
        1,
        None,
        "not an object such as .* Each line must be one JSON",
    ),
    "deep JSON": ("x.jsonl", '{"text": ' + "[" * 200_000, 1, None, "recursion"),
    "long number": ("x.jsonl", '{"text": ' + "1" * 5000 + "}", 1, None, "digits"),
    "unpaired surrogate": (
        "x.jsonl",
        '{"text": "a", "b": "\\ud83d"}\n',
        1,
        None,
        r"unpaired surrogate \('\\ud83d'\): ",
    ),
    "few cells": (
        "x.csv",
        "text,b\n1,2\n3\n",
        3,
        None,
        r"found 1 cell, but the header names 2 columns: '3'. Add the missing cells, or remove the row.$",
    ),
    "many cells": (
        "x.tsv",
        "text\tb\n1\t2\t3\n",
        2,
        None,
        r"found 3 cells, .* 2 columns.* '\\t' in double quotes",
    ),
    "repeated key": ("x.jsonl", '{"text": "a", "text": "b"}\n', 1, None, "the key 'text' occurs more than once"),
    "repeated inner key": ("x.jsonl", '{"text": "a", "b": {"c": 1, "c": 2}}\n', 1, None, "'c' occurs more than once"),
    "infinity": ("x.jsonl", '{"text": "a", "b": -Infinity}\n', 1, None, "-Infinity is not a JSON value"),
    "too large a number": ("x.jsonl", '{"text": "a", "b": 1e400}\n', 1, None, "1e400 is too large: .* Correct it,"),
    "comma between aspects": (
        "x.csv",
        'text,aspects\ngood,"sound, comfort"\n',
        2,
        "aspects",
        r'with a comma. Write sound\|comfort if these are several aspects, or \["sound, comfort"\] if one',
    ),
    "open quote": ("x.csv", 'text,b\n1,2\n"3,4\n5,6\n', 3, None, "does not end where it should.* must end with"),
    "stray quote": ("x.csv", 'text,b\n"3"x,4\n', 2, None, "expected after .* written twice"),
    "same names": ("x.csv", "text,b,b\n1,2,3\n", 1, "b", "more than once"),
    "empty table": ("x.csv", "", 1, None, "empty, but its first line must name the columns"),
    "blank table": ("x.tsv.gz", "\n\n", 1, None, "empty, but its first line must name the columns"),
    "not UTF-8": ("x.txt", "naïve\nnaïve é".encode() + b" caf\xe9\n", 2, None, "byte 14 of the line is 0xe9"),
    "not UTF-8 JSON": ("x.jsonl", b'{"text": "\xff"}\n', 1, None, "byte 11 of the line is 0xff, .* as UTF-8"),
    "not UTF-8 cell": ("x.csv", b'text\n"a\nb\x80"\n', 3, None, "byte 2 of the line is 0x80"),
    "UTF-16": ("x.csv", "text\na\n".encode("utf-16"), 1, None, "not UTF-8. Save the file as UTF-8"),
    "not Parquet": ("x.parquet", "text\nhello hello hello\n", 1, None, "broken or not Parquet"),
    "empty Parquet": ("x.parquet", "", 1, None, "broken or not Parquet"),
    "not Parquet within gzip": ("x.parquet.gz", "text\nhello\n", 1, None, "broken or not Parquet"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_names_its_place(put: Any, case: str) -> None:
    name, content, line, column, message = ERRORS[case]
    path = put(name, content)
    error = error_of(path)
    assert (error.file, error.line, error.column) == (str(path), line, column)
    place = f"{path}, line {line}" + (f", column '{column}'" if column else "")
    assert str(error).startswith(f"{place}: ")
    with pytest.raises(DataError, match=message):
        raise error
    assert len(str(error)) < 400 + len(str(path))
    assert "\n" not in str(error)


LENIENT = {
    "x.jsonl": ('{"text": "a"}\n[]\n{"text": 1}\n{"b": 1}\n{\n\n{"text": "z"}\n', [2, 3, 4, 5], 7),
    "x.csv": ('text,b\na,1\nb\n"c"d,1\n"\n\n",1,2\nz,1\n', [3, 4, 5], 8),
    "x.txt": (b"a\n\xff\nz\n", [2], 3),
    "y.csv": (b'text,b\na,1\n"\xff\n",\xfe\n\xffx\nz,1\n', [3, 5], 6),
}


@pytest.mark.parametrize("name", LENIENT)
def test_bad_rows_are_reported_once_and_skipped(put: Any, name: str) -> None:
    content, bad, last = LENIENT[name]
    found, errors = read_leniently(put(name, content), batch_size=1)
    assert [error.line for error in errors] == bad
    assert [record.text for record in found] == ["a", "z"]
    assert found[-1].line == last


STRAY_QUOTES = {
    "never closed": "",
    "closed by a quoted cell": '7000,"Good, bad",x\n',
    "closed by an inch mark": '7000,A 5",x\n',
    "closed by a word in quotes": '7000,a "good" one,x\n',
    "closed at the end of a line": '7000,good,5"\n',
}


@pytest.mark.parametrize("case", STRAY_QUOTES)
def test_an_open_quote_costs_its_own_row_only(put: Any, case: str) -> None:
    rows = [f"{number},text {number},x\n" for number in range(9000)]
    rows[100] = '100,"text 100,x\n'
    rows[7000] = STRAY_QUOTES[case] or rows[7000]
    found, errors = read_leniently(put("x.csv", "id,text,more\n" + "".join(rows)))
    assert [error.line for error in errors] == [102]
    assert [record.fields["id"] for record in found] == [str(number) for number in range(9000) if number != 100]


def test_a_stray_quote_that_is_closed_soon_costs_its_own_row_only(put: Any) -> None:
    rows = [f"{number},text {number},x\n" for number in range(20)]
    rows[5], rows[9] = '5,"text,x\n', '9,A 5",x\n'
    found, errors = read_leniently(put("x.csv", "id,text,more\n" + "".join(rows)))
    assert ([error.line for error in errors], len(found)) == ([7], 19)


def test_an_open_quote_in_a_single_column(put: Any) -> None:
    found, errors = read_leniently(put("x.csv", 'text\na\n"b\nc\n'))
    assert ([record.text for record in found], [error.line for error in errors]) == (["a", "c"], [3])


def test_long_quoted_cells_stay_whole(put: Any) -> None:
    cell = "Dear all,\nit was good, I think.\n\nThe food, the staff, all fine.\n" * 30
    path = put("x.csv", f'id,text\n1,"{cell}"\n2,"{cell}, and more"\n')
    assert [record.text for record in read(path)] == [cell, f"{cell}, and more"]


@pytest.mark.parametrize("kind", ["jsonl", "txt", "csv"])
def test_a_line_that_is_too_long_is_left_out_and_the_rest_read(
    put: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    form = {"jsonl": '{{"text": "{}"}}\n', "txt": "{}\n", "csv": "{}\n"}[kind]
    header = "text\n" if kind == "csv" else ""
    texts = ["a", "é" * 350, "b", "x" * 99, "c"]
    found, errors = read_leniently(put(f"x.{kind}", header + "".join(form.format(text) for text in texts)))
    assert [record.text for record in found] == ["a", "b", "c"]
    assert [error.line for error in errors] == ([3, 5] if header else [2, 4])
    assert all("longer than 100 characters" in str(error) for error in errors)


@pytest.mark.parametrize(
    "bad",
    [
        ['{"text": "a", "x": [{"b": 1}', '{"c": 1}]}', '{"text": "b"},{"text": "c"}'],
        ['{"text": "a"', '"b": 1}', '{"text": "c"}, {"text": "d"}'],
        ['{"text": "a"},', '{"text": "b"}]', '[{"text": "c"}'],
    ],
)
def test_broken_json_lines_that_complete_each_other(tmp_path: Path, bad: list[str]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(['{"text": "first"}', *bad, '{"text": "last"}']))
    records, errors = read_leniently(path)
    assert [record.text for record in records] == ["first", "last"]
    assert [error.line for error in errors] == [2, 3, 4]


@pytest.mark.parametrize("name", ["no text column", "same names", "empty table", "UTF-16", "not Parquet"])
def test_errors_of_the_whole_file_raise_even_with_on_error(put: Any, name: str) -> None:
    path = put(*ERRORS[name][:2])
    with pytest.raises(DataError):
        read_leniently(path)


@pytest.mark.parametrize("header", [b"te\xff,b\n", b'"te"x,b\n'])
def test_the_row_after_a_bad_header_is_not_used_as_header(put: Any, header: bytes) -> None:
    with pytest.raises(DataError, match="line 1: "):
        read_leniently(put("x.csv", header + b"text,b\na,1\n"))


@pytest.mark.parametrize("kind", ALL)
def test_broken_gzip(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}.gz"
    write(path, [{"text": os.urandom(20).hex()} for _ in range(3000)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "gzip data is cut short or broken" in str(error_of(path))
    path.write_bytes(whole[:10] + b"\xff" + whole[11:])  # a kind of block that does not exist
    assert "gzip data is cut short or broken" in str(error_of(path))
    path.write_bytes(whole[:-8] + b"\xff" * 8)  # the wrong checksum
    assert "gzip data is cut short or broken" in str(error_of(path))
    path.write_text("text\nhello\n")
    assert "remove '.gz' from its name" in str(error_of(path))


def test_truncated_gzip_is_reported_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(b"a\nb\n")[:-8])  # all of the data, but not its checksum
    batches = read_records(path, batch_size=2)
    assert len(next(batches)) == 2
    with pytest.raises(DataError, match=r"x\.txt\.gz, line 3: the gzip data"):
        next(batches)


def test_paths_that_are_not_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"none\.csv: there is no such file"):
        read_records(tmp_path / "none.csv")  # at once, not at the first batch
    with pytest.raises(DataError, match="this is a folder"):
        read_records(tmp_path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "x.txt").write_text("a")
    monkeypatch.setattr(sources, "open", refuse, raising=False)
    assert "cannot be read (Permission denied)" in str(error_of(tmp_path / "x.txt"))


@pytest.mark.parametrize(
    ("name", "found", "hints"),
    [
        ("x.json", "the suffix '.json'", ("jq -c", "Write .jsonl: one object per line")),
        ("x.XLSX", "the suffix '.xlsx'", ("Save the sheet as CSV", "write a .csv file with --out-format excel")),
        (
            "x.gz",
            "the suffix ''",
            (
                ".jsonl, .csv, .tsv, .parquet, .txt, or one of these with .gz",
                ".jsonl, .csv, .tsv, .parquet, or one of these with .gz",  # plain text cannot hold aspects
            ),
        ),
        ("csv", "the suffix ''", [".jsonl, .csv"] * 2),
    ],
)
def test_unknown_suffix(put: Any, tmp_path: Path, name: str, found: str, hints: Sequence[str]) -> None:
    path = tmp_path / name
    path.write_text("")
    for use, hint in zip((read_records, RecordWriter), hints, strict=True):
        with pytest.raises(DataError) as caught:
            use(path)
        assert found in str(caught.value)
        assert hint in str(caught.value)


def test_format_takes_precedence_over_the_suffix(put: Any) -> None:
    assert read(put("X.CSV", "text\na\n"))[0].text == "a"
    assert read(put("x.dat", "text\na\n"), format="tsv")[0].text == "a"
    assert read(put("x.dat.gz", "text\na\n"), format="csv")[0].text == "a"
    with pytest.raises(DataError, match="the format 'xml' is not supported"):
        read_records(put("x.csv", ""), format="xml")


def test_batch_size_must_be_positive(put: Any) -> None:
    with pytest.raises(AwattError, match="batch size is 0"):
        read_records(put("x.txt", ""), batch_size=0)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pyarrow.array(["a", None]), "line 2, column 'text': found null"),
        (pyarrow.array([1, 2]), "line 1, column 'text': found 1"),
        (pyarrow.array([b"a", b"b"]), "line 1, column 'text': found b'a'"),
        (pyarrow.array([b"a", b"\xff"]).view(pyarrow.string()), "broken or not Parquet .*utf-8"),
    ],
)
def test_parquet_cells_that_are_not_text(tmp_path: Path, column: Any, message: str) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"text": column}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=message):
        read(tmp_path / "x.parquet")


def test_columns_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), path)
    assert "column 'text': no such column; the columns are: 'a'" in str(error_of(path))
    twice = pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 2, names=["text", "text"])
    pyarrow.parquet.write_table(twice, path)
    assert "column 'text': this column name occurs more than once" in str(error_of(path))
    coded = pyarrow.array(["a", "a"]).dictionary_encode()
    pyarrow.parquet.write_table(pyarrow.table({"text": coded, "n": [1, None]}), path)
    assert read(path) == [Record("a", (), {"n": 1}, 1), Record("a", (), {"n": None}, 2)]


# ---- limited memory ----


class Endless(io.RawIOBase):
    """A stream that never ends: a header once, then the same line again and again."""

    def __init__(self, header: bytes, line: bytes) -> None:
        self.block, self.header, self.given = line * 100, header, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = (self.header if self.given == 0 and self.header else self.block)[: len(buffer)]
        buffer[: len(block)] = block
        self.given += len(block)
        return len(block)


@pytest.mark.parametrize(
    ("kind", "header", "line"),
    [
        ("jsonl", b"", b'{"text": "abc", "aspects": ["x"]}\n'),
        ("csv", b"text,aspects\n", b"abc,x\n"),
        ("txt", b"", b"abc\n"),
    ],
)
def test_reading_does_not_go_far_ahead(monkeypatch: pytest.MonkeyPatch, kind: str, header: bytes, line: bytes) -> None:
    endless = Endless(header, line)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(endless)))
    batches = read_records("-", format=kind, batch_size=10)
    assert endless.given == 0
    assert len(next(batches)) == 10
    after_one = endless.given
    assert after_one < 50_000
    for _ in range(20):
        assert len(next(batches)) == 10
    assert endless.given < after_one + 50_000


@pytest.mark.parametrize(
    ("kind", "message"), [("txt", "longer than 1,000 characters"), ("csv", "does not end where it should")]
)
def test_an_endless_line_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch, kind: str, message: str) -> None:
    for module in (lines, formats):
        monkeypatch.setattr(module, "MAX_LINE", 1000)
    csv.field_size_limit(1000)
    endless = Endless(b"", b"xxx") if kind == "txt" else Endless(b'text\n"', b"xxx\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(endless)))
    try:
        with pytest.raises(DataError, match=rf"stdin, line \d: .*{message}"):
            next(read_records("-", format=kind))
    finally:
        csv.field_size_limit(LIMIT)
    assert endless.given < 50_000


def test_parquet_is_read_a_row_group_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pyarrow.table({"text": [os.urandom(500).hex() for _ in range(300)]})
    pyarrow.parquet.write_table(table, path, row_group_size=100)
    content = bytearray(path.read_bytes())
    middle = pyarrow.parquet.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content[middle : middle + 2000] = b"\xff" * 2000  # an error for whoever reads the second group
    path.write_bytes(content)
    batches = read_records(path, batch_size=100)
    assert len(next(batches)) == 100
    with pytest.raises(DataError, match="line 101: broken or not Parquet"):
        next(batches)


READ_WITH_LITTLE_MEMORY = """
import sys
from awatt.records import parquet
from awatt.records.bounds import limited_memory
from awatt.records.reader import read_rows

parquet.MAX_DECODING = 2**24
try:
    list(read_rows(sys.argv[1]))
except Exception as error:
    print(error)
bytearray(2**25)  # the limit ended with the reading
with limited_memory(2**24):
    try:
        bytearray(2**25)
    except MemoryError:
        print("limited")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can limit the memory of a process")
def test_a_few_bytes_of_parquet_that_decode_to_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["x" * 2**27]}), path, use_dictionary=False, compression="zstd")
    assert path.stat().st_size < 20_000
    done = subprocess.run([sys.executable, "-c", READ_WITH_LITTLE_MEMORY, str(path)], capture_output=True, text=True)
    refused, limited = done.stdout.splitlines()
    assert "line 1: reading it needs more than 16 MB of memory" in refused
    assert limited == "limited"


def test_long_rows_of_parquet_are_decoded_a_few_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pyarrow.table({"text": ["a" * 3_000_000] * 12})
    pyarrow.parquet.write_table(table, path, use_dictionary=False)
    assert [len(rows) for rows in read_records(path, batch_size=12)] == [12]
    metadata = pyarrow.parquet.ParquetFile(path).metadata
    assert parquet.rows_at_once(metadata, most=12) == 5
    assert parquet.rows_at_once(metadata, most=3) == 3


# ---- stdin and stdout ----


@pytest.mark.parametrize("gz", GZIP)
@pytest.mark.parametrize("kind", ALL)
def test_standard_streams(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], kind: str, gz: str
) -> None:
    rows = [{"text": "café"}, {"text": "b"}]
    write("-", rows, format=kind + gz)
    out = capfdbinary.readouterr().out
    reading, writing = os.pipe()  # a true pipe, which cannot seek
    os.write(writing, out)
    os.close(writing)
    with open(reading, "rb") as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        assert [record.text for record in read("-", format=kind + gz)] == ["café", "b"]
        assert not stream.closed


def test_stdin_is_jsonl_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"text": "a"}\n{"text": 1}\n')))
    with pytest.raises(DataError, match=r"^stdin, line 2, column 'text': found 1"):
        read("-")


@pytest.mark.parametrize(
    ("content", "kind"), [("text,id\nGood.,1\nBad.,2\nHi.,3\n", "csv"), ("text\tid\n", "tsv"), ("\n Nice.\n", "txt")]
)
def test_a_pipe_that_is_not_json_gives_one_error_with_the_format(
    monkeypatch: pytest.MonkeyPatch, content: str, kind: str
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content.encode())))
    errors: list[DataError] = []
    with pytest.raises(DataError, match=rf"^stdin: .* is not a JSON object. Add --format {kind} if that"):
        list(read_records("-", on_error=errors.append))
    assert errors == []


def test_a_pipe_that_begins_with_a_stray_line_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'Loading ...\n{"text": "a"}\n')))
    errors: list[DataError] = []
    assert [record.text for batch in read_records("-", on_error=errors.append) for record in batch] == ["a"]
    assert [error.line for error in errors] == [1]


def test_a_long_text_in_a_message_keeps_its_closing_quote() -> None:
    assert formats.short_repr("a" * 58) == f"'{'a' * 58}'"
    assert formats.short_repr("a" * 59) == f"'{'a' * 55}...'"
    assert formats.short_repr("it's " * 20).endswith('..."')
    assert formats.short_repr([0] * 50).endswith("...")
    assert max(len(formats.short_repr(value)) for value in ("a" * 99, b"a" * 99, [0] * 99)) == 60


def test_files_need_no_standard_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # as in a daemon; a notebook's have no bytes
    monkeypatch.setattr(sys, "stdout", None)
    write(tmp_path / "x.csv", [{"text": "a"}])
    assert read(tmp_path / "x.csv")[0].text == "a"


# ---- whole files ----


@pytest.mark.parametrize("kind", ALL)
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    write(path, [{"text": "old"}])
    before = path.read_bytes()

    def write_and_stop() -> None:
        with RecordWriter(path, overwrite=True) as writer:
            writer.write([{"text": "new"}] * 20_000)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_stop()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with RecordWriter(path) as writer:
        writer.write([{"text": "a"}])
        writer.write([])
        assert not path.exists()
    assert path.read_text() == '{"text": "a"}\n'
    assert list(tmp_path.iterdir()) == [path]
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode  # as open to others as any new file


def test_a_file_can_be_rewritten_from_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    write(path, [{"text": str(number)} for number in range(5000)])
    with RecordWriter(path, overwrite=True) as writer:
        for batch in read_records(path, batch_size=100):
            writer.write([{"text": record.text, "line": record.line} for record in batch])
    assert [record.fields["line"] for record in read(path)] == [str(line) for line in range(2, 5002)]


def test_no_overwrite_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("old")
    with pytest.raises(AwattError, match=r"x\.jsonl: the file already exists\. Use --overwrite"):
        RecordWriter(path)
    write(path, [{"text": "new"}], overwrite=True)
    assert read(path)[0].text == "new"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(AwattError, match=r"there is no folder '.*/none'\. Create it"):
        RecordWriter(tmp_path / "none" / "x.csv")
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(AwattError, match="not a regular file"):
        RecordWriter(tmp_path / "x.csv", overwrite=True)
    with pytest.raises(AwattError, match="not a regular file"):
        RecordWriter("/dev/null", overwrite=True, format="csv")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "x.txt"
    link.symlink_to(tmp_path / "folder" / "true.txt")
    write(link, [{"text": "a"}])
    assert link.is_symlink()
    assert (tmp_path / "folder" / "true.txt").read_text() == "a\n"


@pytest.mark.parametrize("gz", GZIP)
@pytest.mark.parametrize("kind", ALL)
def test_full_disk(tmp_path: Path, kind: str, gz: str) -> None:
    path = tmp_path / f"x.{kind}{gz}"
    rows = [{"text": os.urandom(50).hex()} for _ in range(20_000)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))  # a file cannot grow beyond: as on a full disk
    try:
        with pytest.raises(AwattError, match=r"cannot be written \(File too large\)\. Free some space"):
            write(path, rows)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_on_stdout_is_not_an_error_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb", buffering=0) as stream:
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=stream))
        with pytest.raises(BrokenPipeError):
            write("-", [{"text": "a"}])


@pytest.mark.parametrize("kind", ["jsonl.gz", "csv.gz", "parquet.gz", "parquet"])
def test_same_rows_same_bytes(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, now in (("a", 1e9), ("b", 2e9)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        write(tmp_path / f"{name}.{kind}", [{"text": "good", "aspects": ["x"]}])
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


# ---- what is written ----

MIXED = {
    "text": "a\rb",
    "aspects": ["x", "y"],
    "scores": {"x": 0.5, "y": float("nan")},
    "day": date(2020, 1, 2),
    "price": Decimal("1.50"),
    "none": None,
    "some": [1, 2],
}


def test_jsonl_as_written(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [MIXED, {"other": "é"}])
    assert (tmp_path / "x.jsonl").read_text() == (
        '{"text": "a\\rb", "aspects": ["x", "y"], "scores": {"x": 0.5, "y": null}, "day": "2020-01-02", '
        '"price": "1.50", "none": null, "some": [1, 2]}\n{"other": "é"}\n'
    )


def test_csv_as_written(tmp_path: Path) -> None:
    write(tmp_path / "x.csv", [MIXED, {"text": 'say "b"', "aspects": ["x|y", "z"]}])
    assert (tmp_path / "x.csv").read_bytes().decode() == (
        "text,aspects,scores,day,price,none,some\n"
        '"a\rb",x|y,"{""x"": 0.5, ""y"": null}",2020-01-02,1.50,,"[1, 2]"\n'
        '"say ""b""","[""x|y"", ""z""]",,,,,\n'
    )


@pytest.mark.parametrize("value", [math.nan, np.float64("nan")])
def test_nan_became_text_in_csv(tmp_path: Path, value: float) -> None:
    write(tmp_path / "x.csv", [{"text": "a", "price": value}, {"text": "nan", "price": 1.50}])
    assert (tmp_path / "x.csv").read_text() == "text,price\na,\nnan,1.5\n"


def test_parquet_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.records.format_writers.ROW_GROUP", 2)
    first: dict[str, Any] = {"text": "a", "aspects": [], "scores": {"x": 1.0}, "note": None}
    later = {"text": "b", "aspects": ["x"], "scores": {"x": 2}, "note": "late"}
    with RecordWriter(tmp_path / "x.parquet") as writer:
        for row in (first, first, later, {"text": "c"}, later):
            writer.write([row])
    file = pyarrow.parquet.ParquetFile(tmp_path / "x.parquet")
    assert file.num_row_groups == 3
    assert file.schema_arrow.field("aspects").type == pyarrow.list_(pyarrow.string())
    assert file.schema_arrow.field("note").type == pyarrow.string()
    rest = {"aspects": None, "scores": None, "note": None}
    assert file.read().to_pylist() == [first, first, later, {"text": "c", **rest}, later]


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ({"text": 5}, "column 'text' have different types"),
        ({"count": 0.5}, r"column 'count' have different types \(double after int64\)"),
        (
            {"scores": {"x": 1.0, "y": 1.0}},
            "column 'scores' have different .*y: double.* after struct<x: double>",
        ),
        ({"aspects": [1]}, "column 'aspects' have different types"),
        ({"extra": 1}, "found the column 'extra', but the first rows have 'text', .* Write .jsonl"),
    ],
)
def test_parquet_rows_that_differ_from_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr("awatt.records.format_writers.ROW_GROUP", 1)
    first = {"text": "a", "count": 1, "scores": {"x": 1.0}, "aspects": ["x"]}
    with pytest.raises(AwattError, match=message):
        write(tmp_path / "x.parquet", [first], [first | later])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "batches", "message"),
    [
        ("csv", [[{"text": "a"}], [{"text": "a", "extra": 1}]], "found the column 'extra'"),
        ("csv", [[{"text": b"a"}]], "found b'a', which this format cannot store"),
        ("jsonl", [[{"text": {"deep": b"a"}}]], "found b'a', which this format cannot store"),
        ("jsonl", [[{"text": "a\ud83d"}]], r"an unpaired surrogate, at the end of .*a\\ud83d'"),
        ("csv", [[{"text": "a\ud83d"}]], "an unpaired surrogate"),
        ("parquet", [[{"text": "a\ud83d"}]], "an unpaired surrogate"),
        ("parquet", [[{"text": "a", "empty": {}}]], "Parquet cannot store these rows"),
        ("parquet", [[{"text": "a"}, {"text": 1}]], "column 'text' have different types"),
        ("txt", [[{"text": "a", "b": "c"}]], "one column of text without line breaks"),
        ("txt", [[{"text": "a\nb"}]], "one column of text without line breaks"),
        ("txt", [[{"text": 1}]], "one column of text without line breaks"),
        ("txt", [[{}]], "one column of text without line breaks"),
    ],
)
def test_rows_that_the_format_cannot_store(tmp_path: Path, kind: str, batches: Any, message: str) -> None:
    path = tmp_path / f"x.{kind}"
    with pytest.raises(AwattError, match=message) as caught:
        write(path, *batches)
    assert str(caught.value).startswith(f"{path}: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ALL)
def test_no_rows_still_give_a_file(tmp_path: Path, kind: str) -> None:
    write(tmp_path / f"x.{kind}", [])
    assert (tmp_path / f"x.{kind}").exists()
    if kind == "parquet":
        assert pyarrow.parquet.read_table(tmp_path / "x.parquet").num_rows == 0


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_columns_of_parquet_survive_in_text_formats(tmp_path: Path, kind: str) -> None:
    table = {"text": ["a"], "at": [date(2020, 1, 2)], "score": [float("nan")], "tags": [["x", "y"]]}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "x.parquet")
    [record] = read(tmp_path / "x.parquet")
    write(tmp_path / f"y.{kind}", [{"text": record.text, **record.fields}])
    fields = read(tmp_path / f"y.{kind}")[0].fields
    assert fields["at"] == "2020-01-02"
    assert fields["tags"] == (["x", "y"] if kind == "jsonl" else "x|y")


def test_import_is_light() -> None:
    code = "import sys, json, awatt.records.reader; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyarrow", "numpy"} & set(json.loads(run.stdout))


def test_nanoseconds_of_parquet_need_no_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    path = tmp_path / "x.parquet"
    values = {"at": pyarrow.array([1_700_000_000_000_000_001], pyarrow.timestamp("ns", "UTC"))}
    values["took"] = pyarrow.array([1_500_000_001], pyarrow.duration("ns"))
    pyarrow.parquet.write_table(pyarrow.table({"text": ["good"], **values}), path)
    fields = read(path)[0].fields
    assert str(fields["at"]) == "2023-11-14 22:13:20+00:00"
    assert fields["took"] == timedelta(seconds=1.5)


def test_a_missing_column_is_reported_in_a_bounded_message(put: Any) -> None:
    with pytest.raises(DataError) as caught:
        read(put("x.csv", ",".join(f"c{number}{'x' * 100}" for number in range(2000)) + "\n"))
    assert "and 1,950 more" in str(caught.value)
    assert len(str(caught.value)) < 5000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can limit the memory of a process")
def test_memory_is_limited_by_one_thread_at_a_time() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)

    def limit() -> None:
        for _ in range(50):
            with limited_memory(2**30):
                pass

    threads = [Thread(target=limit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
