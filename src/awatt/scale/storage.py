"""Files by path or by address (``file://``, ``s3://``, ``gs://`` ...), through fsspec.

This module adds only what fsspec lacks: files that appear whole or not at all, local patterns that skip nothing
silently, and errors in one line.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

from awatt.errors import AwattError, require
from awatt.files import write_whole
from awatt.records.formats import reason

FileSize = tuple[str, int]  # path or address, bytes

OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"}
_LOCAL = re.compile("(file|local)://")


def is_remote(path: str) -> bool:
    """Whether this is an address outside the local file system."""
    return "://" in path and not _LOCAL.match(path)


def absolute(path: str) -> str:
    """The path, independent of the working directory, of a local file or folder; a remote address as it is."""
    return path.rstrip("/") if is_remote(path) else os.path.abspath(_LOCAL.sub("", path, count=1))


def find_files(pattern: str) -> list[FileSize]:
    """The files that match, sorted by name: a file of exactly this name, or else by fsspec's glob.

    ``*``, ``?`` and ``[...]`` match within a folder, ``**`` matches any number of folders. As in a shell, they do not
    match names that begin with a dot.
    """
    with _located(pattern, "listed") as (system, place):
        if system.isfile(place):
            found = [(place, system.size(place))]
        else:
            if any("**" in name and name != "**" for name in place.split("/")):
                raise AwattError(f"{pattern}: '**' must be all of a folder's name, as in 'reviews/**/*.csv'.")
            fixed = re.split(r"[*?\[]", place, maxsplit=1)[0]
            begin = max(0, len(fixed) - 1)  # names after this match a wildcard
            found = [
                (path, info["size"])
                for path, info in system.glob(place, detail=True).items()
                if info["type"] == "file" and ("/." not in path[begin:] or "/." in place[begin:])
            ]
            with suppress(FileNotFoundError):
                if not found:  # glob passes over what it may not list; this says why
                    system.ls(fixed.rpartition("/")[0])
    if not found:
        raise AwattError(f"{pattern}: no file matches. Check the path, and put it in quotes: 'reviews/*.parquet'.")
    name = system.unstrip_protocol if is_remote(pattern) else str
    return sorted((name(path), int(size or 0)) for path, size in found)


@contextmanager
def open_file(path: str) -> Iterator[IO[bytes]]:
    """A file open for reading, with seek."""
    with _located(path, "read") as (system, place):
        stream = system.open(place, "rb") if is_remote(path) else open(place, "rb")  # noqa: SIM115 (closed below)
    with stream:
        try:
            yield cast("IO[bytes]", stream)
        except OSError as error:
            raise _one_line(path, "read", error) from error


def make_folder(path: str) -> None:
    """Create a folder and its parents; do nothing if it exists."""
    if path.partition("://")[0] in OBJECT_STORES:
        return  # they need no folders, and some drivers would create a bucket whose name was mistyped
    with _located(path, "written") as (system, place):
        system.makedirs(place, exist_ok=True)


def list_folder(path: str) -> list[str]:
    """The names in a folder, sorted; none if there is no such folder."""
    with _located(path, "listed") as (system, place), suppress(FileNotFoundError):
        return sorted(name.rstrip("/").rpartition("/")[2] for name in system.ls(place, detail=False))
    return []


def read_bytes(path: str) -> bytes | None:
    """The content of a file; None if there is no such file."""
    with _located(path, "read") as (system, place), suppress(FileNotFoundError):
        return cast("bytes", system.cat_file(place))
    return None


def write_bytes(path: str, content: bytes) -> None:
    """Write a file, whole or not at all: a store shows an object only when it is complete."""
    with _located(path, "written") as (system, place):
        if is_remote(path):
            system.pipe_file(place, content)
        else:
            write_whole(Path(place), content)


@contextmanager
def writable_path(path: str) -> Iterator[str]:
    """A local path to write to: for a remote address that of a temporary file, which is uploaded at the end."""
    if not is_remote(path):
        yield absolute(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield (temporary := f"{folder}/{path.rpartition('/')[2]}")
        with _located(path, "written") as (system, place):
            system.put_file(temporary, place)


def remove_files(folder: str, names: Iterable[str]) -> None:
    """Remove files from a folder; those that do not exist are ignored."""
    with _located(folder, "written") as (system, place):
        for name in names:
            with suppress(FileNotFoundError):
                system.rm_file(f"{place}/{name}")


@contextmanager
def _located(path: str, action: str) -> Iterator[tuple[Any, str]]:
    """The file system and the path in it. Its errors become one line; each driver of a store has types of its own."""
    try:
        yield _locate(path)
    except AwattError:
        raise
    except Exception as error:
        if is_remote(path) or isinstance(error, OSError):
            raise _one_line(path, action, error) from error
        raise


def _one_line(path: str, action: str, error: Exception) -> AwattError:
    advice = "Check the address, the network and the credentials." if is_remote(path) else "Check its permissions."
    return AwattError(f"{path}: cannot be {action} ({reason(error)}). {advice}")


def _locate(path: str) -> tuple[Any, str]:
    core = require("fsspec.core", "ray")
    if not is_remote(path):
        return _local_system()(), absolute(path)
    try:
        # Without its cache of listings, which would not see what the workers write.
        return cast("tuple[Any, str]", core.url_to_fs(path, use_listings_cache=False))
    except ImportError as error:
        missing = getattr(error.__cause__, "name", None)
        advice = f" Run: pip install {missing}" if missing else ""
        raise AwattError(f"{path}: the driver for this address is not installed ({reason(error)}).{advice}") from None
    except ValueError as error:
        raise AwattError(f"{path}: this kind of address is not supported ({reason(error)}).") from None


@cache
def _local_system() -> Any:
    from fsspec.implementations.local import LocalFileSystem

    class StrictLocalFileSystem(LocalFileSystem):  # type: ignore[misc]
        """Follows symbolic links and reports folders that cannot be listed; fsspec's own skips both silently."""

        def info(self, path: Any, **options: Any) -> dict[str, Any]:
            return cast("dict[str, Any]", super().info(os.fspath(path), **options))

        def walk(self, path: str, *arguments: Any, **options: Any) -> Any:
            return super().walk(path, *arguments, **{"on_error": report, **options})

    def report(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise _one_line(str(error.filename), "listed", error) from error

    return StrictLocalFileSystem
