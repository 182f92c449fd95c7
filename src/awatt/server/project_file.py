"""The SQLite file of a project: opening it, transactions, actions that can be undone.

Plain sqlite3, not SQLAlchemy: nine small tables, one kind of database, and undo by triggers; a mapper would add a
dependency and hide the transactions, which are what matters here. Write-ahead logging lets several processes read while
one writes; every action is one transaction, which is on disk before the response is sent.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from awatt.errors import AwattError
from awatt.server.content import Version
from awatt.server.journal import begin_action, count_changes, create_triggers, end_action, reverse_action
from awatt.server.limits import ConflictError

FORMAT = 2
APPLICATION_ID = 0x61776174  # "awat": distinguishes a project from another program's file
LOCK_TIMEOUT = 10.0  # seconds to wait for another process that writes
FROM_FORMAT_1 = (  # which kept only one set of reviews
    "ALTER TABLE reviews ADD COLUMN load INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE reviews ADD COLUMN number INTEGER NOT NULL DEFAULT 0",
    "UPDATE reviews SET number = id",
)


class ProjectFile:
    """Safe with several threads, with several processes, and with ``kill -9``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._in_action = False
        self._file_id: tuple[int, int] | None = None
        try:
            self._connection = sqlite3.connect(
                path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
            )
            self._prepare()
            self._file_id = self._find_file_id()
        except (sqlite3.Error, OSError) as error:
            raise AwattError(f"{path}: cannot be opened as a project ({error}). Name another file.") from None

    def _prepare(self) -> None:
        run = self._connection.execute
        with self.snapshot():  # another process may be creating the file at this moment
            application_id = run("PRAGMA application_id").fetchone()[0]
            tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application_id != APPLICATION_ID:
            raise AwattError(f"{self.path}: this is another program's database. Name another file.")
        self._enable_write_ahead_log()
        for pragma in ("synchronous = FULL", "foreign_keys = ON"):
            run(f"PRAGMA {pragma}")
        with self._transaction():
            found = run("PRAGMA user_version").fetchone()[0]
            if found > FORMAT:
                raise AwattError(
                    f"{self.path}: was written by a newer awatt (format {found}). Run: pip install --upgrade awatt"
                )
            for statement in FROM_FORMAT_1 if found == 1 else ():
                run(statement)
            for statement in (files("awatt.server") / "schema.sql").read_text("utf-8").split(";"):
                run(statement)
            run(f"PRAGMA application_id = {APPLICATION_ID}")
            run(f"PRAGMA user_version = {FORMAT}")
            for name in ("revision", "learned", "reviews", "action"):
                run("INSERT OR IGNORE INTO meta VALUES (?, '0')", (name,))
            run("INSERT OR IGNORE INTO meta VALUES ('project', ?)", (secrets.token_hex(8),))
            self.project_id = str(run("SELECT value FROM meta WHERE name = 'project'").fetchone()[0])
            run("INSERT OR IGNORE INTO loaded VALUES (1, 0)")
            create_triggers(self._connection)

    def _enable_write_ahead_log(self) -> None:
        """Retry, since while another process opens the file, SQLite fails here instead of waiting."""
        end = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def check_file(self) -> None:
        """Raise if the path is no longer the file that was opened: SQLite would keep writing to the lost one."""
        if self._file_id is not None and self._find_file_id() != self._file_id:
            raise AwattError(
                f"{self.path}: the project's file was moved, removed or replaced. Start awatt serve again."
            )

    def _find_file_id(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; other processes wait. A nested transaction is part of the outer one."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self.check_file()
            self._run("BEGIN IMMEDIATE")
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read within it belongs to one moment."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._run("BEGIN")
            try:
                yield
            finally:
                self._connection.rollback()

    def _run(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.OperationalError as error:
            advice = "Another process may have locked it, or the disk is full. Try again."
            raise AwattError(f"the project could not be written or read ({error}). {advice}") from error

    @contextmanager
    def _action(self, title: str, *changed: str, joins: bool = False) -> Iterator[None]:
        """A change that can be undone; ``changed`` names the counters to increase besides the revision.

        A nested action is part of the outer one, and with ``joins`` an action is part of the previous one if that has
        the same title: they are undone together. An action that changes nothing is not recorded.
        """
        with self._transaction():
            if self._in_action:
                yield
                self._increase(*changed)
                return
            number = begin_action(self._connection, title, joins=joins)
            before = count_changes(self._connection, number)
            self._in_action = True
            try:
                yield
            finally:
                self._in_action = False
            if count_changes(self._connection, number) > before:
                end_action(self._connection)
                self._increase("revision", *changed)
            elif not before:
                self._run("DELETE FROM actions WHERE id = ?", (number,))

    def _increase(self, *names: str) -> None:
        for name in names:
            self._run("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE name = ?", (name,))

    def version(self) -> Version:
        """The counters, including the changes of other processes."""
        with self._lock:
            found = dict(self._run("SELECT name, value FROM meta").fetchall())
        return Version(*(int(found[name]) for name in ("revision", "learned", "reviews")))

    def undo(self) -> str:
        """Undo the last action, and return its title."""
        return self._reverse(undone=False)

    def redo(self) -> str:
        """Redo the action that was undone last, and return its title."""
        return self._reverse(undone=True)

    def _reverse(self, undone: bool) -> str:
        with self._transaction():
            before = self._shown_load()
            title = reverse_action(self._connection, undone=undone)
            if title is None:
                raise ConflictError(f"there is nothing to {'redo' if undone else 'undo'}.")
            self._increase("revision", "learned", *(["reviews"] if self._shown_load() != before else []))
        return title

    def _shown_load(self) -> int:
        """The number of the load whose reviews are shown."""
        return int(self._run("SELECT load FROM loaded").fetchone()[0])
