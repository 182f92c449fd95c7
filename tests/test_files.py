"""A file is there whole, or as it was before."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from awatt.files import write_text, write_whole


def test_what_is_written_is_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for content in (b"one", b"", bytes(range(256)) * 999):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_text_is_utf8_without_changed_line_ends(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "Käse\r\n± 1\n")
    assert (tmp_path / "a.txt").read_bytes() == "Käse\r\n± 1\n".encode()


class Killed(BaseException):
    """As Ctrl-C: no ``except Exception`` holds it back."""


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "disk full"), Killed()])
@pytest.mark.parametrize("existing", [b"before", None])
def test_a_failure_before_the_end_leaves_what_was_there(
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
        assert Path(source).parent == path.parent  # another file system could not replace at once
        replace(source, target)

    monkeypatch.setattr(os, "replace", watch)
    write_whole(path, b"after")
    assert path.read_bytes() == b"after"
