"""Project files that someone else made or that were damaged: cases for the tests and for ``benchmarks/attacks.py``.

Each changes a sound project. Opening it must be refused in words, or everything must still respond; no case may write
a file or run a statement of its own.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from fastapi.testclient import TestClient

from awatt.errors import AwattError
from awatt.server.access import Access
from awatt.server.app import create_app
from awatt.server.store import ProjectStore

HOST = "127.0.0.1:8377"
WRITTEN = "written-by-the-project"  # the file that some cases try to write, beside the project

#: The tables of format 2, whose undo history consists of SQL statements.
FORMAT_2 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE loaded (id INTEGER PRIMARY KEY, load INTEGER NOT NULL);
CREATE TABLE reviews (
  id INTEGER PRIMARY KEY AUTOINCREMENT, fields TEXT NOT NULL, load INTEGER NOT NULL, number INTEGER NOT NULL);
CREATE INDEX reviews_of_load ON reviews (load);
CREATE TABLE sentences (
  id INTEGER PRIMARY KEY AUTOINCREMENT, review INTEGER NOT NULL REFERENCES reviews(id) ON DELETE CASCADE,
  text TEXT NOT NULL);
CREATE TABLE aspects (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, threshold REAL);
CREATE TABLE examples (
  id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE, corrected INTEGER NOT NULL);
CREATE TABLE mentions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, example INTEGER NOT NULL, aspect INTEGER NOT NULL, UNIQUE (example, aspect));
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE actions (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, undone INTEGER NOT NULL DEFAULT 0);
CREATE TABLE journal (
  id INTEGER PRIMARY KEY AUTOINCREMENT, action INTEGER NOT NULL REFERENCES actions(id) ON DELETE CASCADE,
  statement TEXT NOT NULL);
CREATE TRIGGER aspects_insert AFTER INSERT ON aspects BEGIN
  INSERT INTO journal (action, statement) VALUES (1, 'DELETE FROM aspects WHERE id = ' || new.id); END;
INSERT INTO meta VALUES ('revision', '7'), ('learned', '5'), ('reviews', '2'), ('action', '1'), ('project', 'abc');
INSERT INTO loaded VALUES (1, 2);
INSERT INTO reviews VALUES (1, '{"stars": 4}', 2, 1), (2, '{}', 2, 2);
INSERT INTO sentences VALUES (1, 1, 'Cold soup.'), (2, 2, 'A rude waiter.');
INSERT INTO actions VALUES (1, 'add aspect food', 0);
INSERT INTO aspects VALUES (1, 'food', 0.1234567890123456), (2, 'service', NULL);
INSERT INTO examples VALUES (1, 'Tasty soup.', 0), (2, 'A slow waiter.', 1);
INSERT INTO mentions VALUES (1, 1, 1), (2, 2, 2);
INSERT INTO settings VALUES ('threshold', '0.25');
PRAGMA application_id = 1635213684;
PRAGMA user_version = 2;
"""
#: From format 2 to format 1, which kept only one set of reviews.
FORMAT_1 = """
DROP TABLE loaded;
ALTER TABLE reviews RENAME TO new;
CREATE TABLE reviews (id INTEGER PRIMARY KEY, fields TEXT NOT NULL);
INSERT INTO reviews SELECT id, fields FROM new;
DROP TABLE new;
PRAGMA user_version = 1;
"""


def write_old(path: Path, *scripts: str) -> None:
    """A project of an earlier format."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA legacy_alter_table = ON")
    for script in (FORMAT_2, *scripts):
        connection.executescript(script)
    connection.close()


def _sql(*statements: str) -> Callable[[Path], None]:
    """Change the project with these statements, and with no constraint in the way."""

    def change(path: Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        for statement in ("PRAGMA ignore_check_constraints = ON", "PRAGMA writable_schema = ON", *statements):
            connection.execute(statement.replace("FOLDER", str(path.parent)))
        connection.close()

    return change


def _journal(row: str) -> Callable[[Path], None]:
    return _sql(f"INSERT INTO journal VALUES {row}")


def _old(*statements: str) -> Callable[[Path], None]:
    return lambda path: write_old(path, *(each.replace("FOLDER", str(path.parent)) for each in statements))


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: _write(path, change(path.read_bytes()))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


ATTACH = f"ATTACH ''FOLDER/{WRITTEN}'' AS x"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
LAST = "(SELECT max(id) FROM actions)"
PROJECTS: dict[str, Callable[[Path], None]] = {
    "format 2, undo attaches a file": _old(
        f"INSERT INTO journal VALUES (9, 1, '{ATTACH.replace(chr(39), chr(39) * 2)}')"
    ),
    "format 2, undo drops a table": _old("INSERT INTO journal VALUES (9, 1, 'DROP TABLE examples')"),
    "format 2, a view": _old("DROP TABLE settings; CREATE VIEW settings AS SELECT 1 AS name, 2 AS value"),
    "format 2, a virtual table": _old("DROP TABLE settings; CREATE VIRTUAL TABLE settings USING fts5(name, value)"),
    "format 2, another table": _old("CREATE TABLE mine (x)"),
    "format 2, a trigger of its own": _old("CREATE TRIGGER mine DELETE ON meta BEGIN DELETE FROM aspects; END"),
    "format 2, an aspect named by bytes": _old("UPDATE aspects SET name = x'ff' WHERE id = 1"),
    "format 2, a threshold of 7": _old("UPDATE settings SET value = '7'"),
    "a trigger of its own": _sql("CREATE TRIGGER mine AFTER INSERT ON aspects BEGIN DELETE FROM examples; END"),
    "a trigger changed": _sql(
        "UPDATE sqlite_master SET sql = replace(sql, 'new.id', '7') WHERE name = 'aspects_insert'"
    ),
    "a view": _sql("CREATE VIEW mine AS SELECT * FROM aspects"),
    "an endless view in place of a table": _sql(
        "DROP TABLE settings",
        f"CREATE VIEW settings AS {ENDLESS} SELECT i AS name, i AS value FROM n",
    ),
    "a virtual table": _sql("CREATE VIRTUAL TABLE mine USING fts5(text)"),
    "another table": _sql("CREATE TABLE mine (x)"),
    "a table missing": _sql("DROP TABLE settings"),
    "a column more": _sql("ALTER TABLE aspects ADD COLUMN mine TEXT"),
    "an index of an expression": _sql("CREATE INDEX mine ON aspects (abs(id))"),
    "an aspect named by bytes": _sql("UPDATE aspects SET name = x'ff00' WHERE id = 1"),
    "a threshold of words": _sql("UPDATE aspects SET threshold = 'high'"),
    "a threshold of 7": _sql(
        "UPDATE settings SET value = 7", "INSERT OR REPLACE INTO settings VALUES ('threshold', 7)"
    ),
    "an infinite threshold": _sql("UPDATE aspects SET threshold = 9e999"),
    "a counter of words": _sql("UPDATE meta SET value = 'many' WHERE name = 'revision'"),
    "a counter without end": _sql(f"UPDATE meta SET value = '{'9' * 5000}' WHERE name = 'revision'"),
    "no counters": _sql("DELETE FROM meta"),
    "two shown loads": _sql("INSERT INTO loaded VALUES (2, 5)"),
    "no shown load": _sql("DELETE FROM loaded"),
    "an example of an aspect that is not there": _sql("INSERT INTO mentions (example, aspect) VALUES (1, 999)"),
    "a mention without example": _sql("INSERT INTO mentions (example, aspect) VALUES (999, 1)"),
    "a vote that is no JSON": _sql("INSERT INTO votes (example, person, aspects) VALUES (1, 'Ann', '[1')"),
    "a deeply nested vote": _sql(f"INSERT INTO votes (example, person, aspects) VALUES (1, 'Ann', '{'[' * 100_000}')"),
    "a vote of words": _sql("""INSERT INTO votes (example, person, aspects) VALUES (9, 'Ann', '["x", {}, 1.5]')"""),
    "more notes than allowed": _sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 6000) "
        "INSERT INTO notes (text, note) SELECT 'text ' || i, 'note' FROM n"
    ),
    "a thousand people": _sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) "
        "INSERT INTO votes (example, person, aspects) SELECT 1, 'person ' || i, '[1]' FROM n"
    ),
    "more labels by people than allowed": _sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) "
        "INSERT INTO votes (example, person, aspects) SELECT i, 'Ann', '[1]' FROM n"
    ),
    "columns that are no JSON": _sql("UPDATE reviews SET fields = '{'"),
    "columns that are a number": _sql("UPDATE reviews SET fields = '5'"),
    "deeply nested columns": _sql(f"UPDATE reviews SET fields = '{'[' * 100_000}'"),
    "text that is not UTF-8": _sql("UPDATE sentences SET text = CAST(x'ff41' AS TEXT)"),
    "more aspects than allowed": _sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) "
        "INSERT INTO aspects (name) SELECT 'aspect ' || i FROM n"
    ),
    "undo of the schema": _journal(f"(NULL, {LAST}, 'sqlite_master', 1, 1, 'x', 'y', NULL)"),
    "undo of the counters": _journal(f"(NULL, {LAST}, 'meta', 'revision', 1, 'x', NULL, NULL)"),
    "undo of an unknown key": _sql(
        f"INSERT INTO journal VALUES (NULL, {LAST}, 'aspects', 'x; DROP', 1, 'x', NULL, NULL)"
    ),
    "undo to a threshold of words": _sql(
        f"INSERT INTO journal VALUES (NULL, {LAST}, 'aspects', 1, 1, 'x', 'high', NULL)"
    ),
    "undo to a name twice": _journal(f"(NULL, {LAST}, 'aspects', 99, 1, 'food', NULL, NULL)"),
    "undo to another load": _journal(f"(NULL, {LAST}, 'loaded', 1, 1, -5, NULL, NULL)"),
    "undo without load": _journal(f"(NULL, {LAST}, 'loaded', 1, 0, NULL, NULL, NULL)"),
    "a newer format": _sql("PRAGMA user_version = 99"),
    "another program's file": _sql("PRAGMA application_id = 5"),
    "a damaged page": _bytes(lambda content: content[: 4096 * 3] + b"\x5a" * 4096 + content[4096 * 4 :]),
    "a damaged schema": _bytes(lambda content: content[:100] + b"\x5a" * 1000 + content[1100:]),
    "a damaged header": _bytes(lambda content: b"SQLite" + b"\0" * 94 + content[100:]),
    "half the file": _bytes(lambda content: content[: len(content) // 2]),
    "text": _bytes(lambda _: b"not a database" * 1000),
    "a pipe": _fifo,
}


def write_sound(path: Path) -> Path:
    """A project as awatt writes it."""
    store = ProjectStore(path)
    food = store.add_aspect("food", ["Tasty soup.", "Cold pasta."])
    store.add_aspect("service", ["A rude waiter."])
    store.load_reviews([({"stars": 4}, ["The soup was cold."])] * 50)
    store.set_threshold(0.3, food)
    store.close()
    return path


def try_project(path: Path) -> list[str]:
    """What goes wrong with the project: nothing, if it is refused in words or everything responds."""
    problems = []
    try:
        access = Access("a-token-for-the-tests", frozenset({HOST}))
        app = create_app(ProjectStore(path), access)
    except AwattError as error:
        named = str(path) in str(error) or "in the project" in str(error)
        problems += [] if named and "\n" not in str(error) else [str(error)]
    else:
        headers = {"authorization": f"Bearer {access.token}"}
        with TestClient(app, f"http://{HOST}", headers=headers, raise_server_exceptions=False) as client:
            reads = ["", "/sentences", "/scores", "/map", "/people", "/export/results.csv"]
            for url in [f"/v1/project{each}" for each in reads] + ["/v1/aspects", "/health/ready"]:
                status = client.get(url).status_code
                problems += [] if status in (200, 422, 503) else [f"{url}: {status}"]
            while (undone := client.post("/v1/project/undo")).status_code == 200:
                pass
            problems += [] if undone.status_code in (409, 503) else [f"undo: {undone.status_code}"]
            problems += [] if client.get("/v1/project").status_code == 200 else ["the project is gone after undo"]
    return problems + (["it wrote a file"] if (path.parent / WRITTEN).exists() else [])
