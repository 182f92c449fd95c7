"""Files in parts: together they hold each line once, wherever the borders fall."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from awatt.errors import AwattError, DataError
from awatt.records.reader import read_records
from awatt.records.writer import RecordWriter
from awatt.scale.parts import Lines, Part, open_part, split_file
from awatt.scale.storage import find_files, list_folder, read_bytes, remove_files, write_bytes


def read_parts(path: Path, most: int) -> tuple[list[str], int]:
    """The texts of all parts in turn, and the number of lines counted."""
    texts, lines = [], 0
    for part in split_file(str(path), path.stat().st_size, most):
        with open_part(part) as opened:
            texts += [record.text for batch in read_records(path, part=opened) for record in batch]
            lines += opened.stream.count if isinstance(opened.stream, Lines) else 0
    return texts, lines


@pytest.mark.parametrize("most", [1, 2, 3, 7, 10, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_line_comes_once_wherever_the_borders_fall(tmp_path: Path, most: int, end: str) -> None:
    texts = ["one", "zwölf", "x" * 30, "😀", "last"]
    (path := tmp_path / "in.txt").write_bytes(("\ufeff" + end.join(texts)).encode())
    assert read_parts(path, most)[0] == texts


def test_lines_are_counted_as_the_reader_counts_them(tmp_path: Path) -> None:
    (path := tmp_path / "in.txt").write_bytes(b"a\rb\r\nc\n\nd\n")
    assert read_parts(path, 3) == (["a", "b", "c", "d"], 5)


def test_parquet_is_cut_between_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.records.writer.ROW_GROUP", 10)
    path, texts = tmp_path / "in.parquet", [f"text {number}" for number in range(95)]
    with RecordWriter(path) as writer:
        for first in range(0, 95, 10):
            writer.write([{"text": text} for text in texts[first : first + 10]])
    parts = split_file(str(path), path.stat().st_size, 300)
    assert len(parts) > 3
    assert read_parts(path, 300)[0] == texts


def read_cells(path: Path, parts: list[Part]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Texts and faults of all parts with their lines in the file."""
    texts, faults, before = [], [], 0
    for part in parts:
        with open_part(part) as opened:
            assert isinstance(opened.stream, Lines)
            before -= opened.stream.header
            found: list[DataError] = []
            for batch in read_records(path, part=opened, on_error=found.append):
                texts += [(record.line + before, record.text) for record in batch]
            faults += [((line := fault.line or 0) + before, str(fault).replace(f"line {line}", "")) for fault in found]
            before += opened.stream.count
    return texts, faults


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@given(
    cells=st.lists(st.sampled_from([",", "\t", '"', '"', "\n", "\r\n", "\r", "a", "é", "😀", "\0", "\udcff"])),
    most=st.integers(1, 12),
    bom=st.booleans(),
)
def test_cells_are_cut_where_a_row_begins(suffix: str, cells: list[str], most: int, bom: bool) -> None:
    header = '\n"te""xt",text\n'.replace(",", "," if suffix == "csv" else "\t")
    content = (bom * "\ufeff" + header + "".join(cells)).encode(errors="surrogateescape")
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / f"in.{suffix}").write_bytes(content)
        parts = split_file(str(path), len(content), most)
        assert all(part.last is not None and part.last - part.first >= most for part in parts[:-1])
        assert read_cells(path, parts) == read_cells(path, [Part(str(path), 0, len(content))])


def test_a_long_file_of_cells_is_cut(tmp_path: Path) -> None:
    rows = [{"text": f'{number}, "said"\nhe'} for number in range(100)]
    with RecordWriter(tmp_path / "in.csv") as writer:
        writer.write(rows)
    assert len(split_file(str(tmp_path / "in.csv"), (tmp_path / "in.csv").stat().st_size, 100)) > 10
    assert read_parts(tmp_path / "in.csv", 100)[0] == [row["text"] for row in rows]


@pytest.mark.parametrize("name", ["in.csv.gz", "in.jsonl.gz", "in.parquet.gz"])
def test_what_cannot_be_cut_stays_whole(tmp_path: Path, name: str) -> None:
    assert split_file(str(tmp_path / name), 10**12, 10) == [Part(str(tmp_path / name))]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_are_found_by_a_pattern_by_path_and_by_address(tmp_path: Path, scheme: str) -> None:
    for name in ("a1.csv", "a2.csv", "b.csv", "deep/a3.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\n")

    def names(pattern: str) -> list[str]:
        return [path.removeprefix(f"{scheme}{tmp_path}/") for path, _ in find_files(f"{scheme}{tmp_path}/{pattern}")]

    assert names("a*.csv") == ["a1.csv", "a2.csv"]
    assert names("b.csv") == ["b.csv"]
    assert names("*/a?.csv") == ["deep/a3.csv"]
    with pytest.raises(AwattError, match="no file matches"):
        names("*.parquet")


def test_a_store_that_does_not_answer_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for name, value in {**settings, "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AwattError, match=r"s3://bucket/\*\.csv: cannot be listed .* Check the address, the network"):
        find_files("s3://bucket/*.csv")


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_are_written_read_and_removed(tmp_path: Path, scheme: str) -> None:
    folder = f"{scheme}{tmp_path}"
    assert read_bytes(f"{folder}/a") is None
    write_bytes(f"{folder}/a", b"1")
    assert read_bytes(f"{folder}/a") == b"1"
    assert list_folder(folder) == ["a"]
    remove_files(folder, ["a", "b"])
    assert list_folder(folder) == []
    assert list_folder(f"{folder}/none") == []
