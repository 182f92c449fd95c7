"""Files by path and by address: a pattern finds the same files everywhere, and every error is one line."""

from __future__ import annotations

import glob
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from awatt.errors import AwattError
from awatt.scale.storage import (
    find_files,
    list_folder,
    make_folder,
    open_file,
    read_bytes,
    remove_files,
    writable_path,
    write_bytes,
)

FILES = ["a1.csv", "a2.csv", "b.csv", "a[1].csv", "what?.csv", "x/a3.csv", "x/y/a4.csv", "x/y/z/a5.tsv", "z/a6.csv"]
HIDDEN = [".a0.csv", "x/.a0.csv", ".hidden/a0.csv", "x/y/.hidden/a0.csv"]


@pytest.fixture(params=["", "file://", "memory://"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder by path, by local address, and in a store."""
    return f"memory://{secrets.token_hex(8)}" if request.param == "memory://" else f"{request.param}{tmp_path}"


@pytest.fixture
def names(root: str) -> Callable[[str], list[str]]:
    """The files of the folder that match a pattern."""
    for number, name in enumerate(FILES + HIDDEN):
        make_folder(f"{root}/{name}".rpartition("/")[0])
        write_bytes(f"{root}/{name}", b"x" * number)

    def find(pattern: str) -> list[str]:
        found = find_files(f"{root}/{pattern}")
        assert found == sorted(found)
        place = root.removeprefix("memory://").removeprefix("file://")
        names = [path.partition(f"{place}/")[2] for path, _ in found]
        assert [size for _, size in found] == [(FILES + HIDDEN).index(name) for name in names]
        assert [read_bytes(path) for path, _ in found] == [b"x" * size for _, size in found]
        return names

    return find


PATTERNS = {
    "b.csv": ["b.csv"],
    "*.csv": ["a1.csv", "a2.csv", "a[1].csv", "b.csv", "what?.csv"],
    "a?.csv": ["a1.csv", "a2.csv"],
    "a[13-9].csv": ["a1.csv"],
    "a[!1].csv": ["a2.csv"],
    "*/a?.csv": ["x/a3.csv", "z/a6.csv"],
    "*/*/*.csv": ["x/y/a4.csv"],
    "x/**/*.csv": ["x/a3.csv", "x/y/a4.csv"],
    "**/a?.csv": ["a1.csv", "a2.csv", "x/a3.csv", "x/y/a4.csv", "z/a6.csv"],
    "**/y/**/*.?sv": ["x/y/a4.csv", "x/y/z/a5.tsv"],
    "x/**": ["x/a3.csv", "x/y/a4.csv", "x/y/z/a5.tsv"],
    "[xz]/*": ["x/a3.csv", "z/a6.csv"],
    ".*.csv": [".a0.csv"],
    "*/.a*.csv": ["x/.a0.csv"],
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_finds_the_same_files_by_path_and_by_address(
    names: Callable[[str], list[str]], root: str, pattern: str
) -> None:
    assert names(pattern) == PATTERNS[pattern]
    if "://" not in root:
        matches = glob.glob(pattern, root_dir=root, recursive=True)
        assert sorted(name for name in matches if os.path.isfile(f"{root}/{name}")) == PATTERNS[pattern]


@pytest.mark.parametrize("name", ["a[1].csv", "what?.csv"])
def test_a_file_whose_name_looks_like_a_pattern_is_found(names: Callable[[str], list[str]], name: str) -> None:
    assert names(name) == [name]


@pytest.mark.parametrize("pattern", ["*.parquet", "none/*.csv", "none.csv", "x"])
def test_a_pattern_without_files_is_refused(names: Callable[[str], list[str]], pattern: str) -> None:
    with pytest.raises(AwattError, match="no file matches"):
        names(pattern)


def test_double_stars_within_a_name_are_refused(names: Callable[[str], list[str]]) -> None:
    with pytest.raises(AwattError, match=r"'\*\*' must be all of a folder's name"):
        names("a**.csv")


def test_a_relative_pattern_finds_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("text\n")
    monkeypatch.chdir(tmp_path / "in")
    for pattern in ("*.csv", "../**/a.csv", "a.csv"):
        assert find_files(pattern) == [(str(tmp_path / "in" / "a.csv"), 5)]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_and_folders_behind_links_are_found(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "else" / "deep").mkdir(parents=True)
    (tmp_path / "else" / "deep" / "a.csv").write_text("text\n")
    (folder := tmp_path / "in").mkdir()
    (folder / "linked").symlink_to(tmp_path / "else")
    (folder / "b.csv").symlink_to(tmp_path / "else" / "deep" / "a.csv")
    (folder / "broken.csv").symlink_to(tmp_path / "none")
    assert find_files(f"{scheme}{folder}/**/*.csv") == [
        (f"{folder}/b.csv", 5),
        (f"{folder}/linked/deep/a.csv", 5),
    ]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_that_cannot_be_listed_is_not_skipped(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "a.csv").write_text("text\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    with pytest.raises(AwattError, match=r"loop: cannot be listed \(Too many levels of symbolic links\)"):
        find_files(f"{scheme}{tmp_path}/**/*.csv")


def test_files_are_written_read_and_removed(root: str) -> None:
    assert list_folder(root) == []
    make_folder(root)
    make_folder(root)
    assert read_bytes(f"{root}/a") is None
    write_bytes(f"{root}/a", b"12")
    write_bytes(f"{root}/a", b"1")
    with writable_path(f"{root}/b") as path:
        Path(path).write_bytes(b"234")
    assert read_bytes(f"{root}/a") == b"1"
    with open_file(f"{root}/b") as stream:
        stream.seek(1)
        assert stream.read() == b"34"
    assert list_folder(root) == ["a", "b"]
    remove_files(root, ["a", "none"])
    assert list_folder(root) == ["b"]


def test_a_folder_whose_name_looks_like_a_pattern(root: str) -> None:
    folder = f"{root}/a[1]*?"
    make_folder(folder)
    write_bytes(f"{folder}/b[2]", b"1")
    with writable_path(f"{folder}/c*") as path:
        Path(path).write_bytes(b"2")
    assert list_folder(folder) == ["b[2]", "c*"]
    assert [read_bytes(f"{folder}/{name}") for name in ("b[2]", "c*")] == [b"1", b"2"]
    remove_files(folder, ["c*"])
    assert list_folder(folder) == ["b[2]"]
    assert [size for _, size in find_files(f"{root}/a[[]1]*/b*")] == [1]


def test_a_file_that_is_not_finished_is_not_uploaded() -> None:
    root = f"memory://{secrets.token_hex(8)}"
    with pytest.raises(FileNotFoundError), writable_path(f"{root}/a") as path:
        (Path(path).parent / "none").rename(path)
    assert list_folder(root) == []


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_local_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(AwattError, match=r"/a: cannot be written \(disk full\)"):
        write_bytes(f"{scheme}{tmp_path}/a", b"1")
    assert list(tmp_path.iterdir()) == []


class ClosedStore(MemoryFileSystem):
    """A store that lets nobody in."""

    protocol = "closed"

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        raise PermissionError("no\ncredentials")

    info = _open = pipe_file = cat_file = put_file = rm_file = ls


@pytest.mark.parametrize(
    ("action", "word"),
    [
        (lambda: find_files("closed://bucket/*.csv"), r"\*.csv: cannot be listed"),
        (lambda: find_files("closed://bucket/**/*.csv"), r"\*.csv: cannot be listed"),
        (lambda: list_folder("closed://bucket"), "bucket: cannot be listed"),
        (lambda: read_bytes("closed://bucket/a"), "a: cannot be read"),
        (lambda: open_file("closed://bucket/a").__enter__(), "a: cannot be read"),
        (lambda: write_bytes("closed://bucket/a", b""), "a: cannot be written"),
        (lambda: remove_files("closed://bucket", ["a"]), "bucket: cannot be written"),
    ],
)
def test_a_store_that_refuses_is_one_line(action: Callable[[], object], word: str) -> None:
    fsspec.register_implementation("closed", ClosedStore, clobber=True)
    advice = "Check the address, the network and the credentials"
    with pytest.raises(AwattError, match=rf"^closed://.*{word} \(no credentials\)\. {advice}\.$"):
        action()


def test_a_missing_driver_is_named_with_its_pip_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(AwattError, match=r"^s3://bucket/\*\.csv: the driver .* Run: pip install s3fs$"):
        find_files("s3://bucket/*.csv")


def test_an_unknown_address_is_one_line() -> None:
    with pytest.raises(AwattError, match=r"^nowhere://a: this kind of address is not supported \(.*nowhere.*\)\.$"):
        find_files("nowhere://a")


def test_fsspec_itself_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "fsspec"]:
        monkeypatch.delitem(sys.modules, name)

    class Missing:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name.partition(".")[0] == "fsspec":
                raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(sys, "meta_path", [Missing, *sys.meta_path])
    with pytest.raises(AwattError, match=r"pip install 'awatt\[ray\]'"):
        find_files(str(tmp_path / "*.csv"))
