"""Files in parts: together they hold each line once, wherever the file is split."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from awatt.errors import DataError
from awatt.records.reader import read_records
from awatt.records.writer import RecordWriter
from awatt.scale.parts import Lines, Part, open_part, split_file


def read_parts(path: Path, part_bytes: int) -> tuple[list[str], int]:
    """The texts of all parts in order, and the number of lines counted."""
    texts, lines = [], 0
    for part in split_file(str(path), path.stat().st_size, part_bytes):
        with open_part(part) as opened:
            texts += [record.text for batch in read_records(path, part=opened) for record in batch]
            lines += opened.stream.count if isinstance(opened.stream, Lines) else 0
    return texts, lines


@pytest.mark.parametrize("part_bytes", [1, 2, 3, 7, 10, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_line_is_read_once_wherever_the_file_is_split(tmp_path: Path, part_bytes: int, end: str) -> None:
    texts = ["one", "zwölf", "x" * 30, "😀", "last"]
    (path := tmp_path / "in.txt").write_bytes(("\ufeff" + end.join(texts)).encode())
    assert read_parts(path, part_bytes)[0] == texts


def test_lines_are_counted_as_the_reader_counts_them(tmp_path: Path) -> None:
    (path := tmp_path / "in.txt").write_bytes(b"a\rb\r\nc\n\nd\n")
    assert read_parts(path, 3) == (["a", "b", "c", "d"], 5)


def test_parquet_is_split_between_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.records.format_writers.ROW_GROUP", 10)
    path, texts = tmp_path / "in.parquet", [f"text {number}" for number in range(95)]
    with RecordWriter(path) as writer:
        for first in range(0, 95, 10):
            writer.write([{"text": text} for text in texts[first : first + 10]])
    parts = split_file(str(path), path.stat().st_size, 300)
    assert len(parts) > 3
    assert read_parts(path, 300)[0] == texts


def read_cells(path: Path, parts: list[Part]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Texts and errors of all parts, with their lines in the file."""
    texts, errors, before = [], [], 0
    for part in parts:
        with open_part(part) as opened:
            assert isinstance(opened.stream, Lines)
            before -= opened.stream.header
            found: list[DataError] = []
            for batch in read_records(path, part=opened, on_error=found.append):
                texts += [(record.line + before, record.text) for record in batch]
            errors += [((line := error.line or 0) + before, str(error).replace(f"line {line}", "")) for error in found]
            before += opened.stream.count
    return texts, errors


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@given(
    cells=st.lists(st.sampled_from([",", "\t", '"', '"', "\n", "\r\n", "\r", "a", "é", "😀", "\0", "\udcff"])),
    part_bytes=st.integers(1, 12),
    bom=st.booleans(),
)
def test_csv_is_split_where_a_row_begins(suffix: str, cells: list[str], part_bytes: int, bom: bool) -> None:
    header = '\n"te""xt",text\n'.replace(",", "," if suffix == "csv" else "\t")
    content = (bom * "\ufeff" + header + "".join(cells)).encode(errors="surrogateescape")
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / f"in.{suffix}").write_bytes(content)
        parts = split_file(str(path), len(content), part_bytes)
        assert all(part.last is not None and part.last - part.first >= part_bytes for part in parts[:-1])
        assert read_cells(path, parts) == read_cells(path, [Part(str(path), 0, len(content))])


def test_a_long_csv_is_split(tmp_path: Path) -> None:
    rows = [{"text": f'{number}, "said"\nhe'} for number in range(100)]
    with RecordWriter(tmp_path / "in.csv") as writer:
        writer.write(rows)
    assert len(split_file(str(tmp_path / "in.csv"), (tmp_path / "in.csv").stat().st_size, 100)) > 10
    assert read_parts(tmp_path / "in.csv", 100)[0] == [row["text"] for row in rows]


@pytest.mark.parametrize("name", ["in.csv.gz", "in.jsonl.gz", "in.parquet.gz"])
def test_a_gzipped_file_is_not_split(tmp_path: Path, name: str) -> None:
    assert split_file(str(tmp_path / name), 10**12, 10) == [Part(str(tmp_path / name))]
