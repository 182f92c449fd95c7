"""Files that are written whole or not at all, and where the benchmark's files lie."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write to a temporary file beside ``path``, then put it in its place."""
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
    """Where the benchmark's data and weights lie: ``AWATT_SHARED``, or ``../shared``."""
    return Path(os.environ.get("AWATT_SHARED", "../shared"))
