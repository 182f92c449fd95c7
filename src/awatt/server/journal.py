"""Undo and redo in SQLite: with every change, triggers record what the changed row was before.

The technique is SQLite's own ("Automatic Undo/Redo Using SQLite"), but the journal holds values, not statements: a
file made by someone else can only restore rows of the tables listed here. While a row is restored, the triggers record
what it was before that, so redo comes for free. The journal is part of the file, so it survives the process.
"""

from __future__ import annotations

import sqlite3

#: changes to these tables can be undone; reviews are too many to journal, so several sets of them are kept, and
#: ``loaded`` says which set is shown. The first column is the key, which never changes.
TABLES = {
    "loaded": ("id", "load"),
    "aspects": ("id", "name", "threshold"),
    "examples": ("id", "text", "corrected", "made"),
    "mentions": ("id", "example", "aspect"),
    "settings": ("name", "value"),
    "votes": ("id", "example", "person", "aspects"),
    "notes": ("id", "text", "note"),
    "dismissed": ("id", "name"),
}
VALUES = ("first", "second", "third")  # columns of the journal, for the values after the key
MAX_ACTIONS = 200  # that can be undone

CURRENT_ACTION = "(SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'action')"


def create_triggers(connection: sqlite3.Connection) -> None:
    """One trigger per table and kind of change."""
    for table, (key, *columns) in TABLES.items():
        old = ", ".join(([f"old.{column}" for column in columns] + ["NULL"] * len(VALUES))[: len(VALUES)])
        for change, row in {
            "INSERT": f"new.{key}, 0, NULL, NULL, NULL",
            "UPDATE": f"old.{key}, 1, {old}",
            "DELETE": f"old.{key}, 1, {old}",
        }.items():
            connection.execute(
                f"CREATE TRIGGER {table}_{change.lower()} AFTER {change} ON {table} BEGIN "
                f"INSERT INTO journal (action, changed, key, existed, {', '.join(VALUES)}) "
                f"VALUES ({CURRENT_ACTION}, '{table}', {row}); END"
            )


def begin_action(connection: sqlite3.Connection, title: str, *, undone: bool = False, joins: bool = False) -> int:
    """Assign the changes from here on to a new action, and return its id.

    With ``joins`` they are assigned to the last action, if it has the same title and nothing was undone after it.
    """
    last = _last_action(connection, undone=False) if joins and not _last_action(connection, undone=True) else None
    if last is not None and last[1] == title:
        number = last[0]
    else:
        made = connection.execute("INSERT INTO actions (title, undone) VALUES (?, ?)", (title, int(undone)))
        number = int(made.lastrowid or 0)
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('action', ?)", (str(number),))
    return number


def count_changes(connection: sqlite3.Connection, number: int) -> int:
    """How many changes an action has made so far."""
    return int(connection.execute("SELECT count(*) FROM journal WHERE action = ?", (number,)).fetchone()[0])


def end_action(connection: sqlite3.Connection) -> None:
    """After a new action: delete what could be redone, and the oldest actions."""
    connection.execute("DELETE FROM actions WHERE undone = 1")
    kept = "SELECT id FROM actions ORDER BY id DESC LIMIT ?"
    connection.execute(f"DELETE FROM actions WHERE id NOT IN ({kept})", (MAX_ACTIONS,))


def truncate_history(connection: sqlite3.Connection, load: int) -> None:
    """Delete the action whose undoing would show this load again, and all actions before it."""
    shows = "changed = 'loaded' AND existed AND first = ?"
    connection.execute(f"DELETE FROM actions WHERE id <= (SELECT max(action) FROM journal WHERE {shows})", (load,))


def last_title(connection: sqlite3.Connection, *, undone: bool) -> str | None:
    """The title of the action that would be undone next, or with ``undone`` redone."""
    row = _last_action(connection, undone)
    return None if row is None else str(row[1])


def reverse_action(connection: sqlite3.Connection, *, undone: bool) -> str | None:
    """Undo the last action, or with ``undone`` redo the one undone last, and return its title."""
    row = _last_action(connection, undone)
    if row is None:
        return None
    number, title = row
    query = f"SELECT changed, key, existed, {', '.join(VALUES)} FROM journal WHERE action = ? ORDER BY id DESC"
    changes = connection.execute(query, (number,)).fetchall()
    connection.execute("DELETE FROM actions WHERE id = ?", (number,))
    begin_action(connection, title, undone=not undone)
    for table, key, existed, *values in changes:
        _restore(connection, table, key, values if existed else None)
    return str(title)


def _restore(connection: sqlite3.Connection, table: str, key: object, values: list[object] | None) -> None:
    """Give a row these values after its key, or with None delete it."""
    name, *columns = TABLES[table]
    if values is None:
        connection.execute(f"DELETE FROM {table} WHERE {name} = ?", (key,))
        return
    marks, changes = ", ".join("?" * (len(columns) + 1)), ", ".join(f"{each} = excluded.{each}" for each in columns)
    connection.execute(
        f"INSERT INTO {table} ({name}, {', '.join(columns)}) VALUES ({marks}) "
        f"ON CONFLICT ({name}) DO UPDATE SET {changes}",
        (key, *values[: len(columns)]),
    )


def _last_action(connection: sqlite3.Connection, undone: bool) -> tuple[int, str] | None:
    query = "SELECT id, title FROM actions WHERE undone = ? ORDER BY id DESC LIMIT 1"
    row: tuple[int, str] | None = connection.execute(query, (int(undone),)).fetchone()
    return row
