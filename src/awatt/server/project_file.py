"""The SQLite file of a project: transactions, actions that can be undone, errors in words.

Plain sqlite3, not SQLAlchemy: a few small tables, one kind of database, and undo by triggers; a mapper would add a
dependency and hide the transactions, which are what matters here. Write-ahead logging lets several processes read while
one writes; every action is one transaction, which is on disk before the response is sent.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from awatt.server.backup import damaged, write_backup
from awatt.server.content import Version
from awatt.server.errors import ConflictError, DiskFullError, ProjectUnavailableError, ServiceError
from awatt.server.journal import begin_action, count_changes, end_action, reverse_action
from awatt.server.opening import DamagedError, open_project

MIN_FREE = 16 * 2**20  # bytes on the disk: below that the project is not ready for changes


class ProjectFile:
    """Safe with several threads, with several processes, and with ``kill -9``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._in_action = False
        self._backed_up = -1  # the revision of the last backup
        self._disk_is_full = False  # what the last change said
        try:
            self._connection = open_project(path)
        except DamagedError as error:
            raise damaged(path, str(error)) from None
        try:
            self._file_id = self._find_file_id()
            with self.snapshot():
                self.project_id = str(self._run("SELECT value FROM meta WHERE name = 'project'").fetchone()[0])
        except BaseException:
            self.close()
            raise

    def check_file(self) -> None:
        """Raise if the path is no longer the file that was opened: SQLite would keep writing to the lost one."""
        if self._find_file_id() != self._file_id:
            raise ProjectUnavailableError(
                "the project's file was moved, removed or replaced. Put it back, or start awatt serve again."
            )

    def check_ready(self) -> None:
        """Raise if the project cannot be read, or a change could not be saved."""
        self.check_file()
        self.version()
        if self._disk_is_full or shutil.disk_usage(self.path.parent).free < MIN_FREE:
            raise DiskFullError("the disk with the project is full. Free some space; nothing saved so far is lost.")

    def back_up(self) -> None:
        """Write a backup if the project has changed since the last one."""
        revision = self.version().revision
        if (
            revision
            and revision != self._backed_up
            and self._find_file_id() == self._file_id
            and write_backup(self.path, self.project_id)
        ):
            self._backed_up = revision

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
            with self._between("BEGIN IMMEDIATE"):
                yield
                self._run("COMMIT")
                self._disk_is_full = False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read within it belongs to one moment."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            with self._between("BEGIN"):
                yield

    @contextmanager
    def _between(self, begin: str) -> Iterator[None]:
        """Roll back at the end unless committed, and turn SQLite errors into service errors."""
        try:
            self._run(begin)
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.rollback()
        except sqlite3.Error as error:
            raise self._in_words(error) from error

    def _run(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Within a transaction or a snapshot only."""
        return self._connection.execute(statement, values)

    def _in_words(self, error: sqlite3.Error) -> ServiceError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return ProjectUnavailableError("another process has locked the project. Try again in a moment.")
        if name == "SQLITE_FULL":
            self._disk_is_full = True
            return DiskFullError("the disk is full: the change was not saved. Free some space, then try again.")
        if name in ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_CONSTRAINT_CHECK", "SQLITE_MISMATCH"):
            return ProjectUnavailableError(
                "the project's file is damaged. Start awatt serve again: it names the backup."
            )
        return ProjectUnavailableError(
            f"the project's file could not be read or written ({name or error}). Check its disk and permissions."
        )

    @contextmanager
    def _action(self, title: str, *changed: str, joins: bool = False) -> Iterator[None]:
        """A change that can be undone; ``changed`` names the counters to increase besides the revision.

        A nested action is part of the outer one, and with ``joins`` an action is part of the previous one if that has
        the same title: they are undone together. An action that changes nothing is not recorded.
        """
        with self._transaction():
            if self._in_action:
                before = self._connection.total_changes
                yield
                if self._connection.total_changes > before:
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
        with self.snapshot():
            found = dict(self._run("SELECT name, value FROM meta").fetchall())
        return Version(*(int(found[name]) for name in ("revision", "learned", "reviews")))

    def undo(self, revision: int | None = None) -> str:
        """Undo the last action, and return its title; refused if the project is no longer at this ``revision``."""
        return self._reverse(revision, undone=False)

    def redo(self, revision: int | None = None) -> str:
        """Redo the action that was undone last, and return its title; ``revision`` as in `undo`."""
        return self._reverse(revision, undone=True)

    def _reverse(self, revision: int | None, undone: bool) -> str:
        with self._transaction():
            if revision not in (None, self.version().revision):
                raise ConflictError("the project has been changed since it was shown. Look again, then decide.")
            before = self._shown_load()
            title = reverse_action(self._connection, undone=undone)
            if title is None:
                raise ConflictError(f"there is nothing to {'redo' if undone else 'undo'}.")
            self._increase("revision", "learned", *(["reviews"] if self._shown_load() != before else []))
        return title

    def _shown_load(self) -> int:
        """The number of the load whose reviews are shown."""
        return int(self._run("SELECT load FROM loaded").fetchone()[0])
