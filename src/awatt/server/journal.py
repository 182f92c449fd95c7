"""Undo and redo in SQLite: triggers write, beside every change, the statement that takes it back.

The technique is SQLite's own ("Automatic Undo/Redo Using SQLite"). Undoing runs those statements, and as the triggers
write what takes *them* back, redo comes for free. It is kept in the file, so that it survives the process.
"""

from __future__ import annotations

import sqlite3

#: what can be undone; reviews themselves are too many, so they are kept, and ``loaded`` says which are shown
TABLES = {
    "loaded": ("id", "load"),
    "aspects": ("id", "name", "threshold"),
    "examples": ("id", "text", "corrected"),
    "mentions": ("id", "example", "aspect"),
    "settings": ("name", "value"),
}
KEPT = 200  # actions that can be undone

CURRENT = "(SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'action')"


def create_triggers(connection: sqlite3.Connection) -> None:
    """One trigger for each table and kind of change."""
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
                f"BEGIN INSERT INTO journal (action, statement) VALUES ({CURRENT}, {inverse}); END"
            )


def begin_action(connection: sqlite3.Connection, title: str, *, undone: bool = False, joins: bool = False) -> int:
    """From here on changes belong to a new action.

    With ``joins`` they belong to the last action, if it has the same title and nothing was undone after it.
    """
    last = _last(connection, undone=False) if joins and _last(connection, undone=True) is None else None
    if last is not None and last[1] == title:
        number = last[0]
    else:
        made = connection.execute("INSERT INTO actions (title, undone) VALUES (?, ?)", (title, int(undone)))
        number = int(made.lastrowid or 0)
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('action', ?)", (str(number),))
    return number


def changes_of(connection: sqlite3.Connection, number: int) -> int:
    """How many changes an action has made so far."""
    return int(connection.execute("SELECT count(*) FROM journal WHERE action = ?", (number,)).fetchone()[0])


def end_action(connection: sqlite3.Connection) -> None:
    """A person has done it: what could be redone is forgotten, and what was done long ago."""
    connection.execute("DELETE FROM actions WHERE undone = 1")
    kept = "SELECT id FROM actions ORDER BY id DESC LIMIT ?"
    connection.execute(f"DELETE FROM actions WHERE id NOT IN ({kept})", (KEPT,))


def forget_before(connection: sqlite3.Connection, table: str, values: dict[str, int]) -> None:
    """Forget the action whose undoing would bring back these values of a table, and all before it."""
    changes = ", ".join(f"{column} = {value}" for column, value in values.items())
    key = next(iter(values))
    connection.execute(
        "DELETE FROM actions WHERE id <= (SELECT max(action) FROM journal WHERE statement = ?)",
        (f"UPDATE {table} SET {changes} WHERE {key} = {values[key]}",),
    )


def last_title(connection: sqlite3.Connection, *, undone: bool) -> str | None:
    """What would be undone (or done again) next."""
    row = _last(connection, undone)
    return None if row is None else str(row[1])


def take_back(connection: sqlite3.Connection, *, undone: bool) -> str | None:
    """Undo the last action, or with ``undone`` do the last undone one again; gives its title."""
    row = _last(connection, undone)
    if row is None:
        return None
    number, title = row
    statements = connection.execute("SELECT statement FROM journal WHERE action = ? ORDER BY id DESC", (number,))
    todo = [statement for (statement,) in statements]
    connection.execute("DELETE FROM actions WHERE id = ?", (number,))
    begin_action(connection, title, undone=not undone)
    for statement in todo:
        connection.execute(statement)
    return str(title)


def _last(connection: sqlite3.Connection, undone: bool) -> tuple[int, str] | None:
    query = "SELECT id, title FROM actions WHERE undone = ? ORDER BY id DESC LIMIT 1"
    row: tuple[int, str] | None = connection.execute(query, (int(undone),)).fetchone()
    return row
