"""Undo and redo in SQLite: with every change, triggers record the statement that reverses it.

The technique is SQLite's own ("Automatic Undo/Redo Using SQLite"). Undoing runs those statements, and as the triggers
record how to reverse *them*, redo comes for free. The journal is part of the file, so it survives the process.
"""

from __future__ import annotations

import sqlite3

#: changes to these tables can be undone; reviews are too many to journal, so several sets of them are kept, and
#: ``loaded`` says which set is shown
TABLES = {
    "loaded": ("id", "load"),
    "aspects": ("id", "name", "threshold"),
    "examples": ("id", "text", "corrected"),
    "mentions": ("id", "example", "aspect"),
    "settings": ("name", "value"),
}
MAX_ACTIONS = 200  # that can be undone

CURRENT_ACTION = "(SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'action')"


def create_triggers(connection: sqlite3.Connection) -> None:
    """One trigger per table and kind of change."""
    for table, columns in TABLES.items():
        key, names = columns[0], ", ".join(columns)
        old = " || ',' || ".join(f"quote(old.{column})" for column in columns)
        changes = " || ', ".join(f"{column} = ' || quote(old.{column})" for column in columns)
        inverses = {
            "INSERT": f"'DELETE FROM {table} WHERE {key} = ' || quote(new.{key})",
            "UPDATE": f"'UPDATE {table} SET {changes} || ' WHERE {key} = ' || quote(new.{key})",
            "DELETE": f"'INSERT INTO {table} ({names}) VALUES (' || {old} || ')'",
        }
        for change, inverse in inverses.items():
            connection.execute(
                f"CREATE TRIGGER IF NOT EXISTS {table}_{change.lower()} AFTER {change} ON {table} "
                f"BEGIN INSERT INTO journal (action, statement) VALUES ({CURRENT_ACTION}, {inverse}); END"
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


def truncate_history(connection: sqlite3.Connection, table: str, values: dict[str, int]) -> None:
    """Delete the action whose undoing would restore these values of a table, and all actions before it."""
    changes = ", ".join(f"{column} = {value}" for column, value in values.items())
    key = next(iter(values))
    connection.execute(
        "DELETE FROM actions WHERE id <= (SELECT max(action) FROM journal WHERE statement = ?)",
        (f"UPDATE {table} SET {changes} WHERE {key} = {values[key]}",),
    )


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
    statements = connection.execute("SELECT statement FROM journal WHERE action = ? ORDER BY id DESC", (number,))
    inverses = [statement for (statement,) in statements]
    connection.execute("DELETE FROM actions WHERE id = ?", (number,))
    begin_action(connection, title, undone=not undone)
    for statement in inverses:
        connection.execute(statement)
    return str(title)


def _last_action(connection: sqlite3.Connection, undone: bool) -> tuple[int, str] | None:
    query = "SELECT id, title FROM actions WHERE undone = ? ORDER BY id DESC LIMIT 1"
    row: tuple[int, str] | None = connection.execute(query, (int(undone),)).fetchone()
    return row
