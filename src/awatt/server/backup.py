"""A copy of the project's file beside it, for the day when the file is damaged."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from awatt.errors import AwattError
from awatt.server.opening import connect, find_damage


def backup_path(project: Path) -> Path:
    """Where the copy is."""
    return project.with_name(f"{project.name}.backup")


def write_backup(project: Path, project_id: str) -> bool:
    """Copy the file as it is at this moment; others can write meanwhile. A damaged file replaces no earlier copy."""
    target = backup_path(project)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600))
        with closing(connect(project)) as source, closing(connect(temporary)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without others beside it
            sound = find_damage(copy) is None
        if sound:
            _keep_other(target, project_id)
            os.replace(temporary, target)
        return sound
    except (sqlite3.Error, OSError):
        return False
    finally:
        temporary.unlink(missing_ok=True)


def _keep_other(copy: Path, project_id: str) -> None:
    """Rename the backup of another project, whose file was here before, and what is no backup."""
    if not copy.is_file():
        return
    found = ""
    with suppress(sqlite3.Error), closing(connect(copy)) as connection:
        row = connection.execute("SELECT value FROM meta WHERE name = 'project'").fetchone()
        found = "" if row is None else str(row[0])
    if found != project_id:
        os.replace(copy, copy.with_name(f"{copy.name}.{found if found.isalnum() else 'other'}"))


def damaged(project: Path, problem: str) -> AwattError:
    """What to do about a damaged file."""
    found, copy = f"{project}: the project is damaged ({problem})", backup_path(project)
    if not copy.is_file():
        return AwattError(f"{found}, and there is no backup beside it. Name another file with --project.")
    written = datetime.fromtimestamp(copy.stat().st_mtime).strftime("%Y-%m-%d %H:%M")
    return AwattError(f"{found}. Its backup of {written} can be used instead: --project '{copy}'")
