"""The SQLite file of a project: opening it, transactions, actions that can be undone.

Plain sqlite3, not SQLAlchemy: nine small tables, one kind of database, and undo that is written by triggers; a mapper
would add a dependency and hide the transactions, which are what matters here. Write-ahead logging lets several
processes read while one writes; every action is one transaction that is on the disk before it is answered.
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
from awatt.server.journal import begin_action, changes_of, create_triggers, end_action, take_back
from awatt.server.limits import ConflictError

FORMAT = 2
APPLICATION = 0x61776174  # "awat": tells a project from another program's file
PATIENCE = 10.0  # seconds to wait for another process that writes
FROM_FORMAT_1 = (  # which kept the reviews of one load only
    "ALTER TABLE reviews ADD COLUMN load INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE reviews ADD COLUMN number INTEGER NOT NULL DEFAULT 0",
    "UPDATE reviews SET number = id",
)


class ProjectFile:
    """Safe for threads, for several processes, and for ``kill -9``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._acting = False
        self._file: tuple[int, int] | None = None
        try:
            self._connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            self._prepare()
            self._file = self._find()
        except (sqlite3.Error, OSError) as error:
            raise AwattError(f"{path}: cannot be opened as a project ({error}). Name another file.") from None

    def _prepare(self) -> None:
        run = self._connection.execute
        with self.snapshot():  # another process may be making the file at this moment
            application = run("PRAGMA application_id").fetchone()[0]
            tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION:
            raise AwattError(f"{self.path}: this is another program's database. Name another file.")
        self._write_ahead()
        for pragma in ("synchronous = FULL", "foreign_keys = ON"):
            run(f"PRAGMA {pragma}")
        with self._transaction():
            found = run("PRAGMA user_version").fetchone()[0]
            if found > FORMAT:
                raise AwattError(f"{self.path}: format {found} of a newer awatt. Run: pip install --upgrade awatt")
            for statement in FROM_FORMAT_1 if found == 1 else ():
                run(statement)
            for statement in (files("awatt.server") / "schema.sql").read_text("utf-8").split(";"):
                run(statement)
            run(f"PRAGMA application_id = {APPLICATION}")
            run(f"PRAGMA user_version = {FORMAT}")
            for name in ("revision", "learned", "reviews", "action"):
                run("INSERT OR IGNORE INTO meta VALUES (?, '0')", (name,))
            run("INSERT OR IGNORE INTO meta VALUES ('project', ?)", (secrets.token_hex(8),))
            self.identity = str(run("SELECT value FROM meta WHERE name = 'project'").fetchone()[0])
            run("INSERT OR IGNORE INTO loaded VALUES (1, 0)")
            create_triggers(self._connection)

    def _write_ahead(self) -> None:
        """The one statement that SQLite refuses at once, instead of waiting, while another process opens the file."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def check_there(self) -> None:
        """Raise if the file is not the one that was opened: SQLite would go on writing to one that nobody finds."""
        if self._file is not None and self._find() != self._file:
            raise AwattError(
                f"{self.path}: the project's file was moved, removed or replaced. Start awatt serve again."
            )

    def _find(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; other processes wait. One within another is part of it."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self.check_there()
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
        """Everything that is read within is of one moment."""
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
            advice = "Another process may hold it, or the disk is full. Try again."
            raise AwattError(f"the project could not be written or read ({error}). {advice}") from error

    @contextmanager
    def _action(self, title: str, *changed: str, joins: bool = False) -> Iterator[None]:
        """A change that can be undone; ``changed`` are the counters that it moves beside the revision.

        One within another is part of it: both are undone together, as one that ``joins`` is with the one before it,
        if that has the same title. One that changes nothing has not been.
        """
        with self._transaction():
            if self._acting:
                yield
                self._count(*changed)
                return
            number = begin_action(self._connection, title, joins=joins)
            before = changes_of(self._connection, number)
            self._acting = True
            try:
                yield
            finally:
                self._acting = False
            if changes_of(self._connection, number) > before:
                end_action(self._connection)
                self._count("revision", *changed)
            elif not before:
                self._run("DELETE FROM actions WHERE id = ?", (number,))

    def _count(self, *names: str) -> None:
        for name in names:
            self._run("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE name = ?", (name,))

    def version(self) -> Version:
        """The counters; other processes may have moved them."""
        with self._lock:
            found = dict(self._run("SELECT name, value FROM meta").fetchall())
        return Version(*(int(found[name]) for name in ("revision", "learned", "reviews")))

    def undo(self) -> str:
        """Take back the last action; gives its title."""
        return self._take_back(undone=False)

    def redo(self) -> str:
        """Do the action again that was taken back last."""
        return self._take_back(undone=True)

    def _take_back(self, undone: bool) -> str:
        with self._transaction():
            before = self._load()
            title = take_back(self._connection, undone=undone)
            if title is None:
                raise ConflictError(f"there is nothing to {'redo' if undone else 'undo'}.")
            self._count("revision", "learned", *(["reviews"] if self._load() != before else []))
        return title

    def _load(self) -> int:
        """Which of the loads that the file keeps is shown."""
        return int(self._run("SELECT load FROM loaded").fetchone()[0])
