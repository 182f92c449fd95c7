"""A file is written whole, or stays as it was before."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from awatt import files
from awatt.files import FileLock, write_text, write_whole


def test_only_the_written_file_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for content in (b"one", b"", bytes(range(256)) * 999):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_text_is_utf8_without_changed_line_ends(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "Käse\r\n± 1\n")
    assert (tmp_path / "a.txt").read_bytes() == "Käse\r\n± 1\n".encode()


@pytest.mark.parametrize("windows", [True, False])
def test_a_lock_can_be_released_where_an_open_file_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, windows: bool
) -> None:
    if windows:
        monkeypatch.setattr(files, "fcntl", None)
    lock = FileLock(tmp_path / "a.csv")
    closed: list[bool] = []
    unlink = Path.unlink
    monkeypatch.setattr(
        Path, "unlink", lambda path, **options: (closed.append(lock._file.closed), unlink(path, **options))
    )
    lock.release()
    lock.release()
    assert closed == [windows or os.name == "nt"]  # elsewhere another process could lock the file before it is removed
    assert list(tmp_path.iterdir()) == []


class Killed(BaseException):
    """Like Ctrl-C: no ``except Exception`` catches it."""


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "disk full"), Killed()])
@pytest.mark.parametrize("existing", [b"before", None])
def test_a_failure_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, existing: bytes | None
) -> None:
    path = tmp_path / "a.bin"
    if existing is not None:
        path.write_bytes(existing)

    def half(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise error

    def fail(*arguments: Any) -> None:
        raise error

    for owner, name, broken in ((Path, "write_bytes", half), (os, "replace", fail)):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, broken)
            with pytest.raises(type(error)):
                write_whole(path, b"a new content")
        assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == (
            [("a.bin", existing)] if existing is not None else []
        )


def test_the_file_appears_only_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, replace = tmp_path / "a.bin", os.replace
    path.write_bytes(b"before")

    def watch(source: Path, target: Path) -> None:
        assert path.read_bytes() == b"before"
        assert Path(source).read_bytes() == b"after"
        assert Path(source).parent == path.parent  # a rename is atomic only within a file system
        replace(source, target)

    monkeypatch.setattr(os, "replace", watch)
    write_whole(path, b"after")
    assert path.read_bytes() == b"after"
