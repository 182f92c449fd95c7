"""Uploads that become large, and the same files on the command line."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from awatt.errors import AwattError, DataError
from awatt.records.bounds import Bounds, Meter
from awatt.records.conversion import to_readable
from awatt.records.parquet import MAX_PIECE, MAX_REPEATED
from awatt.records.parquet_jsonl import parquet_to_jsonl
from awatt.records.reader import read_records
from awatt.server.limits import Limits
from awatt.server.reading import MAX_ERRORS, read_reviews

from .attack_uploads import UPLOADS, _one_list_often, _one_text_often, parquet
from .conftest import SMALL, make_client

RAW = {"content-type": "application/octet-stream"}
SIZE = 2_000_000
LIMITS = replace(SMALL, body=SIZE, file=Bounds(rows=5_000, bytes=SIZE // 4, seconds=60))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with make_client(tmp_path_factory.mktemp("uploads"), LIMITS) as client:
        yield client


@pytest.mark.parametrize("case", UPLOADS)
def test_a_small_file_becomes_gigabytes(case: str, server: Any) -> None:
    format, make = UPLOADS[case]
    content = make(SIZE)
    for path in ("/v1/project/columns", "/v1/project/reviews"):
        response = server.post(path, params={"format": format}, content=content, headers=RAW)
        assert response.status_code in (200, 413, 422)
        found = response.json()
        assert response.status_code == 200 or ("\n" not in found["error"] and "/tmp" not in found["error"])
    assert server.get("/v1/project").json()["n_sentences"] <= 1


@pytest.mark.parametrize(
    ("bound", "words"), [("rows", "more than 10 rows"), ("bytes", "more than 10 bytes"), ("seconds", "within 0 sec")]
)
def test_each_bound_is_named(bound: str, words: str) -> None:
    wide = Bounds(10**9, 10**9, 10**9)
    meter = Meter(replace(wide, **{bound: 0 if bound == "seconds" else 10}), ValueError)
    with pytest.raises(ValueError, match=words):
        meter.add(rows=11, size=11)


def test_one_text_in_every_row_is_kept_once(tmp_path: Path) -> None:
    """On the command line, too: 100 MB of text in a file of a few hundred bytes."""
    path = tmp_path / "bomb.parquet"
    path.write_bytes(_one_text_often(100_000_000))
    tracemalloc.start()
    rows = sum(len(batch) for batch in read_records(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (rows, peak < 20_000_000) == (100, True)


def test_a_batch_of_huge_rows_is_shorter(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    path.write_bytes(_one_list_often(200_000_000))
    sizes = [len(batch) for batch in read_records(path)]
    assert sum(sizes) == 200
    assert max(sizes) <= 68


def test_a_list_of_a_billion_nothings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setattr("awatt.records.parquet.MAX_REPEATED", 1000)
    (tmp_path / "bomb.parquet").write_bytes(parquet(pyarrow.table({"text": ["a"], "x": [[None] * 1001]})))
    with pytest.raises(DataError, match=r"'x\.list\.element' has 1,001 values"):
        list(read_records(tmp_path / "bomb.parquet"))
    assert MAX_REPEATED > 10**7


def test_parquet_reads_the_same_values_as_before(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    values: dict[str, Any] = {
        "text": ["a", "b", "a", ""],
        "none": [None, "x", None, "x"],
        "bytes": [b"a", b"b", None, b"a"],
        "list": [["a", None], [], None, ["b"]],
        "deep": [{"x": ["a"]}, {"x": None}, None, {"x": ["a"]}],
        "number": [1, None, 3, 4],
    }
    (tmp_path / "values.parquet").write_bytes(parquet(pyarrow.table(values)))
    records = list(chain.from_iterable(read_records(tmp_path / "values.parquet", batch_size=3)))
    assert [each.text for each in records] == values["text"]
    assert [dict(each.fields) for each in records] == [
        {name: column[row] for name, column in values.items() if name != "text"} for row in range(4)
    ]


def test_parquet_with_delta_encoded_text_is_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "delta.parquet"
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"):
        content = parquet(
            pyarrow.table({"text": ["Good food.", "Good fish."]}),
            use_dictionary=False,
            column_encoding={"text": encoding},
        )
        path.write_bytes(content)
        assert [each.text for each in chain.from_iterable(read_records(path))] == ["Good food.", "Good fish."]


def test_a_huge_row_of_parquet_is_left_out(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "huge.parquet"
    many = pyarrow.ListArray.from_arrays([0, 1, MAX_PIECE // 8, MAX_PIECE // 8], pyarrow.nulls(MAX_PIECE // 8))
    path.write_bytes(parquet(pyarrow.table({"text": ["a", "b", "c"], "items": many, "map": [{"x": "y"}] * 3})))
    errors: list[DataError] = []
    records = list(chain.from_iterable(read_records(path, on_error=errors.append)))
    assert [(each.text, each.line) for each in records] == [("a", 1), ("c", 3)]
    assert [(each.line, "larger than" in str(each)) for each in errors] == [(2, True)]


def test_uploaded_parquet_that_needs_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    meter = Meter(Bounds(10**6, 10**9, 60), ValueError)
    numbers = pyarrow.repeat(pyarrow.scalar(0.5), 2**24)
    many = pyarrow.ListArray.from_arrays([0, 2**24], numbers)
    content = parquet(pyarrow.table({"text": ["a"], "items": many}))
    monkeypatch.setattr("awatt.records.parquet_jsonl.MAX_MEMORY", 200 * 2**20)
    with pytest.raises((AwattError, ValueError), match="memory"):
        parquet_to_jsonl(content, False, meter)


def test_uploaded_parquet_has_the_values_of_the_file() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    values: dict[str, Any] = {
        "text": ["a\u2028b", None],
        "bytes": [b"abc", None],
        "number": [float("nan"), 0.5],
        "day": [date(2024, 5, 1), None],
        "list": [["a", None], []],
    }
    meter = Meter(Bounds(100, 10**6, 60), ValueError)
    content, format = to_readable(parquet(pyarrow.table(values)), "parquet", meter)
    assert format == "jsonl"
    assert [json.loads(line) for line in content.decode().split("\n") if line] == [
        {"text": "a\u2028b", "bytes": {"bytes": 3}, "number": None, "day": "2024-05-01", "list": ["a", None]},
        {"text": None, "bytes": None, "number": 0.5, "day": None, "list": []},
    ]


def test_every_error_of_a_file_is_kept_to_list_the_first() -> None:
    rows = b'{"text": "Good soup."}\n' + b"x\n" * 900
    reviews, left_out, errors = read_reviews(rows, "jsonl", "text", True, Limits())
    assert (len(reviews), left_out, len(errors)) == (1, 900, MAX_ERRORS)
    assert errors[0].startswith("the file, line 2: ")
