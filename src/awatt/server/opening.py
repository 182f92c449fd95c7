"""Opening a project's file, which someone else may have made: nothing in it is used before it has been checked.

Its tables, indices and triggers must be exactly ours, every row must satisfy the constraints of `schema.sql`, and the
connection can neither attach other files nor change the schema. A file of an earlier format is copied into new tables.
"""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib.resources import files
from pathlib import Path

from awatt.errors import AwattError
from awatt.records.formats import reason
from awatt.server.journal import create_triggers

FORMAT = 4
APPLICATION_ID = 0x61776174  # "awat": distinguishes a project from another program's file
LOCK_TIMEOUT = 10.0  # seconds to wait for another process that writes
CHECK_SECONDS = 5.0  # for looking through the file for damage
MAX_VALUE = 128 * 2**20  # bytes of one value: more than any upload contains
COUNTERS = ("revision", "learned", "reviews", "action")
OLD_COLUMNS = {  # what earlier formats keep; their undo history ends here, and statements in it are never run
    "meta": "name, value",
    "loaded": "id, load",
    "reviews": "id, fields, load, number",
    "sentences": "id, review, text",
    "aspects": "id, name, threshold",
    "examples": "id, text, corrected, NULL",
    "mentions": "id, example, aspect",
    "settings": "name, CASE value WHEN 'null' THEN NULL ELSE CAST(value AS REAL) END",
}
ALLOWED = {  # what the statements of the service do, once the file is open
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_TRANSACTION,
    sqlite3.SQLITE_FUNCTION,
}

_log = logging.getLogger(__name__)


class DamagedError(AwattError):
    """The file contains something that awatt did not write."""


def open_project(path: Path) -> sqlite3.Connection:
    """A connection to the project, created if missing. Only its owner can read a new file."""
    try:
        _create_private(path)
        connection = connect(path)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        if "malformed" in str(error):
            raise DamagedError(str(error)) from None
        raise AwattError(f"{path}: cannot be opened as a project ({reason(error)}). Name another file.") from None
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY)
    return connection


def connect(path: Path) -> sqlite3.Connection:
    """A connection that trusts nothing in the file and can attach no other."""
    connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _create_private(path: Path) -> None:
    """Create the file for its owner only; close an existing one to others, not to its group.

    SQLite's files beside it are alike.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise OSError("this is not a regular file") from None
        if mode & 0o007 and os.name == "posix" and path.stat().st_uid == os.geteuid():
            path.chmod(stat.S_IMODE(mode) & ~0o007)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    run = connection.execute
    run("BEGIN")  # both belong to one moment: another process may be creating the file
    application_id, objects = run("PRAGMA application_id").fetchone()[0], _objects(connection)
    run("ROLLBACK")
    if objects and application_id != APPLICATION_ID:
        raise AwattError(f"{path}: this is another program's database. Name another file.")
    _enable_write_ahead_log(connection)
    run("PRAGMA foreign_keys = OFF")  # until the tables are complete
    run("PRAGMA legacy_alter_table = ON")
    run("BEGIN IMMEDIATE")
    try:
        found = run("PRAGMA user_version").fetchone()[0]
        if found > FORMAT:
            raise AwattError(f"{path}: was written by a newer awatt (format {found}). Run: pip install --upgrade awatt")
        if found < FORMAT:
            _upgrade(connection, found)
        if _objects(connection) != _expected_objects():
            raise DamagedError("its tables are not those of a project")
        names = {name for (name,) in run("SELECT name FROM meta")}
        if names != {*COUNTERS, "project"} or run("SELECT count(*) FROM loaded").fetchone() != (1,):
            raise DamagedError("its counters are not those of a project")
        run("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    run("PRAGMA foreign_keys = ON")
    problem = find_damage(connection)
    if problem is not None:
        raise DamagedError(problem)


def _enable_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Retry, since while another process opens the file, SQLite fails here instead of waiting."""
    end = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def _upgrade(connection: sqlite3.Connection, found: int) -> None:
    """Create the tables, and copy the rows of an earlier format into them."""
    run = connection.execute
    objects = _objects(connection)
    old = [name for kind, name, *_ in objects if kind == "table" and name in OLD_COLUMNS]
    unknown = {name for kind, name, *_ in objects if kind in ("table", "view")} - {*OLD_COLUMNS, "actions", "journal"}
    if unknown or any("VIRTUAL" in str(sql).upper().split()[:2] or kind == "view" for kind, _, _, sql in objects):
        raise DamagedError("its tables are not those of a project")
    for kind in ("trigger", "index"):
        for name in [name for each, name, *_ in objects if each == kind]:
            run(f"DROP {kind} {_quoted(name)}")
    for name in ("journal", "actions"):
        run(f"DROP TABLE IF EXISTS {name}")
    for name in old:
        run(f"ALTER TABLE {name} RENAME TO old_{name}")
    for statement in (files("awatt.server") / "schema.sql").read_text("utf-8").split(";"):
        run(statement)
    for name in old:
        columns = OLD_COLUMNS[name]
        if found == 1 and name == "reviews":  # format 1 kept only one set of reviews
            columns = "id, fields, 0, id"
        run(f"INSERT INTO {name} SELECT {columns} FROM old_{name}")
        run(f"DROP TABLE old_{name}")
    for name in COUNTERS:
        run("INSERT OR IGNORE INTO meta VALUES (?, '0')", (name,))
    run("INSERT OR IGNORE INTO meta VALUES ('project', ?)", (secrets.token_hex(8),))
    run("INSERT OR IGNORE INTO loaded VALUES (1, 0)")
    create_triggers(connection)  # last: nothing so far can be undone
    run(f"PRAGMA application_id = {APPLICATION_ID}")
    run(f"PRAGMA user_version = {FORMAT}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _objects(connection: sqlite3.Connection) -> set[tuple[str, str, str, str]]:
    """The tables, indices, triggers and views, without those that SQLite keeps for itself."""
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    return set(connection.execute(query).fetchall())


@cache
def _expected_objects() -> set[tuple[str, str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as fresh:
        _upgrade(fresh, 0)
        return _objects(fresh)


def find_damage(connection: sqlite3.Connection, seconds: float = CHECK_SECONDS) -> str | None:
    """The first thing wrong with the pages or rows of the file, as far as can be told in this time."""
    end = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > end, 100_000)
    try:
        found: Sequence[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.OperationalError as error:
        if "interrupt" not in str(error):
            raise
        _log.warning("the project is large: only part of it was checked for damage")
        return None
    finally:
        connection.set_progress_handler(None, 0)
    return None if found == [("ok",)] else " ".join(found[0][0].split())
