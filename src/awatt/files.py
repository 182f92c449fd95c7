"""Files: read strictly, written whole or not at all, by one process at a time; and the benchmark's folder."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from awatt.errors import AwattError

try:
    import fcntl
except ImportError:  # Windows, where files are not locked
    fcntl = None  # type: ignore[assignment]


def write_whole(path: Path, content: bytes) -> None:
    """Write to a temporary file in the same folder, then rename it to ``path``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, content: str) -> None:
    """``write_whole`` for text, in UTF-8."""
    write_whole(path, content.encode("utf-8"))


def parse_json(content: str | bytes) -> Any:
    """A JSON value; a ValueError for what ``json.loads`` would lose in silence: repeated keys and infinite numbers.

    NaN is accepted, because some programs write it for a missing value.
    """
    if isinstance(content, bytes):
        content = content.decode(json.detect_encoding(content))
    return _DECODER.decode(content)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:60]!r} occurs more than once")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:60]} is too large")
    return number


def _constant(name: str) -> float:
    if name != "NaN":
        raise ValueError(f"{name} is not a JSON value")
    return math.nan


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_constant)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block. Processes started within ignore it; the parent ends them."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class FileLock:
    """Makes this process the only one that writes ``path``, until `release` or the end of the process, even by a kill.

    Raises if another process holds the lock, and names it. The lock is on a hidden file beside ``path``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f".{path.name}.lock")
        self._file = self._acquire(path)

    def _acquire(self, path: Path) -> IO[bytes]:
        while True:
            file = self.path.open("a+b")
            if not _lock(file):
                file.seek(0)
                holder = file.read(200).decode(errors="replace") or "it does not say which"
                file.close()
                advice = "Wait until it ends, or choose another place."
                raise AwattError(f"{path}: another process is writing this file ({holder}). {advice}")
            if self.path.exists() and os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
                file.flush()
                return file
            file.close()  # its former holder removed it between the first two lines: there may be another one now

    def release(self) -> None:
        """Let others write; does nothing the second time."""
        if not self._file.closed:
            if fcntl is None:  # Windows cannot remove an open file; elsewhere another process could lock it in between
                self._file.close()
            self.path.unlink(missing_ok=True)
            self._file.close()


def _lock(file: IO[bytes]) -> bool:
    """Whether the lock is ours; always on file systems that have none."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
    return True


_PERMISSIONS = (errno.EACCES, errno.EPERM, errno.EROFS)
_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PATH = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP)


def file_advice(error: OSError) -> str:
    """What the user can do about a file that cannot be read or written."""
    for advice, numbers in (
        ("Check the permissions", _PERMISSIONS),
        ("Free some space", _SPACE),
        ("Check the path", _PATH),
    ):
        if error.errno in numbers:
            return advice
    return "Check the disk"


def describe_error(error: OSError) -> str:
    """The file, the reason and what to do, in one line."""
    if error.strerror is None:
        return str(error)
    place = "" if error.filename is None else f"{error.filename}: "
    return f"{place}{error.strerror}. {file_advice(error)}."


def make_folder(path: Path) -> None:
    """Make sure that ``path`` is a folder in which files can be written, before any work is done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise AwattError(f"{path}: this is a file, but a folder is needed. Choose another place.") from None
    except OSError as error:
        raise AwattError(f"{path}: cannot be created ({error.strerror}). {file_advice(error)}.") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise AwattError(f"{path}: files cannot be written here. Check the permissions, or choose another place.")


def shared_folder() -> Path:
    """The folder with the benchmark's data and weights: ``AWATT_SHARED``, or ``../shared``."""
    return Path(os.environ.get("AWATT_SHARED", "../shared"))
