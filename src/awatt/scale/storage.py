"""Files by path or by address (s3://, gs://, hdfs://, file://), through pyarrow: list, read, write whole, remove."""

from __future__ import annotations

import glob
import os
import re
import secrets
from collections.abc import Iterable
from fnmatch import translate
from typing import IO, Any, cast

from awatt.errors import AwattError
from awatt.records.formats import reason

Found = tuple[str, int]  # path, bytes


def is_address(path: str) -> bool:
    """Whether it names its file system."""
    return "://" in path


def _locate(path: str) -> tuple[Any, str]:
    """The file system, and the path in it."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem, LocalFileSystem

    if not is_address(path):
        return LocalFileSystem(), os.path.abspath(path)
    try:
        return cast("tuple[Any, str]", FileSystem.from_uri(path))
    except (ArrowException, OSError) as error:
        raise AwattError(f"{path}: cannot be reached ({reason(error)}). Check the address.") from error


def find_files(pattern: str) -> list[Found]:
    """The files that match, sorted by name. ``*`` and ``?`` match within a folder, ``**`` across folders."""
    if is_address(pattern):
        found = _match(pattern)
    else:
        paths = [pattern] if os.path.exists(pattern) else glob.glob(pattern, recursive=True)
        found = [(path, os.path.getsize(path)) for path in paths if os.path.isfile(path)]
    if not found:
        raise AwattError(f"{pattern}: no file matches. Check the path, and put it in quotes: 'reviews/*.parquet'.")
    return sorted(found)


def _match(pattern: str) -> list[Found]:
    from pyarrow.fs import FileSelector

    fixed = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    folder = fixed.rpartition("/")[0] if fixed != pattern else pattern.rpartition("/")[0]
    system, root = _locate(folder)
    # fnmatch lets * cross a folder's border; here only ** does
    rule = translate(pattern[len(folder) + 1 :]).replace(".*.*", "\0").replace(".*", "[^/]*").replace("\0", ".*")
    selector = FileSelector(root, recursive="/" in pattern[len(folder) + 1 :] or "**" in pattern, allow_not_found=True)
    try:
        listed = system.get_file_info(selector)
    except OSError as error:
        advice = "Check the address, the network and the credentials."
        raise AwattError(f"{pattern}: cannot be listed ({reason(error)}). {advice}") from error
    names = ((info.path[len(root) :].lstrip("/"), info) for info in listed if info.is_file)
    return [(f"{folder}/{name}", int(info.size)) for name, info in names if re.match(rule, name)]


def open_file(path: str) -> IO[bytes]:
    """For reading, from any place in it."""
    if not is_address(path):
        return open(path, "rb")
    system, place = _locate(path)
    return cast("IO[bytes]", system.open_input_file(place))


def make_folder(path: str) -> None:
    """With those above it; nothing if it exists."""
    system, place = _locate(path)
    system.create_dir(place, recursive=True)


def list_folder(path: str) -> list[str]:
    """The names of the files in a folder; none if there is no such folder."""
    from pyarrow.fs import FileSelector

    system, place = _locate(path)
    return sorted(info.base_name for info in system.get_file_info(FileSelector(place, allow_not_found=True)))


def read_bytes(path: str) -> bytes | None:
    """What the file holds; None if there is none."""
    try:
        with open_file(path) as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def write_bytes(path: str, content: bytes) -> None:
    """Whole or not at all: an object store shows a file when it is closed, elsewhere it is put in its place then."""
    system, place = _locate(path)
    local = system.type_name == "local"
    target = f"{place}.{secrets.token_hex(8)}.tmp" if local else place
    with system.open_output_stream(target) as stream:
        stream.write(content)
    if local:
        os.replace(target, place)


def upload(source: str, path: str) -> None:
    """Copy a local file to an address."""
    with open(source, "rb") as stream:
        system, place = _locate(path)
        with system.open_output_stream(place) as target:
            while chunk := stream.read(2**22):
                target.write(chunk)


def remove_files(folder: str, names: Iterable[str]) -> None:
    """Remove files of a folder; those that are not there do not matter."""
    system, place = _locate(folder)
    for name in names:
        try:
            system.delete_file(f"{place}/{name}")
        except FileNotFoundError:
            continue
