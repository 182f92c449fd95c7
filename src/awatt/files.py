"""Files that are written whole or not at all, and the folder of the benchmark's files."""

from __future__ import annotations

import os
from pathlib import Path


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


def shared_folder() -> Path:
    """The folder with the benchmark's data and weights: ``AWATT_SHARED``, or ``../shared``."""
    return Path(os.environ.get("AWATT_SHARED", "../shared"))
