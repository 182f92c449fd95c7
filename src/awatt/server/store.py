"""A project (reviews, aspects, examples, corrections, settings) in one SQLite file.

Plain sqlite3, not SQLAlchemy: eight small tables, one kind of database, and undo that is written by triggers; a mapper
would add a dependency and hide the transactions, which are what matters here. Write-ahead logging lets several
processes read while one writes; every action is one transaction that is on the disk before it is answered.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from awatt.errors import AwattError
from awatt.server.journal import begin_action, create_triggers, end_action, last_title, take_back
from awatt.server.limits import ConflictError, Limits, NotFoundError, check_count, check_length

FORMAT = 1
APPLICATION = 0x61776174  # "awat": tells a project from another program's file
PATIENCE = 10.0  # seconds to wait for another process that writes


@dataclass(frozen=True)
class Aspect:
    """An aspect; ``threshold`` is None where the project's counts."""

    id: int
    name: str
    threshold: float | None


@dataclass(frozen=True)
class Example:
    """A sentence that a person has judged: the ids of all aspects that it mentions, maybe none."""

    id: int
    text: str
    aspects: tuple[int, ...]
    corrected: bool  # judged in the table, not typed in as an example


@dataclass(frozen=True)
class Version:
    """Counters of what changed last: everything, what is learned from, the reviews."""

    revision: int
    learned: int
    reviews: int


@dataclass(frozen=True)
class Content:
    """Everything but the reviews, at one moment."""

    version: Version
    aspects: list[Aspect]
    examples: list[Example]
    threshold: float | None  # of the project; None is the model's own
    n_sentences: int
    n_reviews: int
    undo: str | None
    redo: str | None


def clean(text: str) -> str:
    """As the project keeps it: stripped, and without the one character that SQLite takes for an end."""
    return text.replace("\0", " ").strip()


class ProjectStore:
    """Reads and writes a project; safe for threads, for several processes, and for ``kill -9``."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self.path, self.limits = path, limits or Limits()
        self._lock = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            self._prepare()
        except (sqlite3.Error, OSError) as error:
            raise AwattError(f"{path}: cannot be opened as a project ({error}). Name another file.") from None

    def _prepare(self) -> None:
        run = self._connection.execute
        application = run("PRAGMA application_id").fetchone()[0]
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION:
            raise AwattError(f"{self.path}: this is another program's database. Name another file.")
        if (found := run("PRAGMA user_version").fetchone()[0]) > FORMAT:
            raise AwattError(f"{self.path}: format {found} of a newer awatt. Run: pip install --upgrade awatt")
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            run(f"PRAGMA {pragma}")
        with self._transaction():
            for statement in (files("awatt.server") / "schema.sql").read_text("utf-8").split(";"):
                run(statement)
            run(f"PRAGMA application_id = {APPLICATION}")
            run(f"PRAGMA user_version = {FORMAT}")
            for name in ("revision", "learned", "reviews", "action"):
                run("INSERT OR IGNORE INTO meta VALUES (?, '0')", (name,))
            create_triggers(self._connection)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    # -- transactions

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; other processes wait. One within another is part of it."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._run("BEGIN IMMEDIATE")
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise

    def _run(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.OperationalError as error:
            advice = "Another process may hold it, or the disk is full. Try again."
            raise AwattError(f"the project could not be written or read ({error}). {advice}") from error

    @contextmanager
    def _action(self, title: str, *changed: str) -> Iterator[None]:
        """A change that can be undone; ``changed`` are the counters that it moves beside the revision."""
        with self._transaction():
            number = begin_action(self._connection, title)
            yield
            end_action(self._connection, number)
            self._count("revision", *changed)

    def _count(self, *names: str) -> None:
        for name in names:
            self._run("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE name = ?", (name,))

    # -- reading

    def version(self) -> Version:
        """The counters; other processes may have moved them."""
        with self._lock:
            found = dict(self._run("SELECT name, value FROM meta").fetchall())
        return Version(*(int(found[name]) for name in ("revision", "learned", "reviews")))

    def content(self) -> Content:
        """Everything but the reviews, as of one moment."""
        with self._lock:
            self._run("BEGIN")
            try:
                mentions: dict[int, list[int]] = {}
                for example, aspect in self._run("SELECT example, aspect FROM mentions ORDER BY aspect"):
                    mentions.setdefault(example, []).append(aspect)
                examples = self._run("SELECT id, text, corrected FROM examples ORDER BY id").fetchall()
                settings = dict(self._run("SELECT name, value FROM settings").fetchall())
                return Content(
                    self.version(),
                    [Aspect(*row) for row in self._run("SELECT id, name, threshold FROM aspects ORDER BY id")],
                    [Example(key, text, tuple(mentions.get(key, ())), bool(made)) for key, text, made in examples],
                    json.loads(settings.get("threshold", "null")),
                    self._size("sentences"),
                    self._size("reviews"),
                    last_title(self._connection, undone=False),
                    last_title(self._connection, undone=True),
                )
            finally:
                self._connection.rollback()

    def sentences(self) -> list[tuple[int, int, str]]:
        """The id, the review's id and the text of each sentence."""
        with self._lock:
            return self._run("SELECT id, review, text FROM sentences ORDER BY id").fetchall()

    def fields(self) -> dict[int, dict[str, object]]:
        """The other columns of each review, as they were loaded."""
        with self._lock:
            return {key: json.loads(fields) for key, fields in self._run("SELECT id, fields FROM reviews")}

    # -- aspects

    def add_aspect(self, name: str, texts: Sequence[str] = ()) -> int:
        """Add an aspect with its examples."""
        name = self._free_name(name)
        with self._action(f"add aspect {name}", "learned"):
            check_count(self._size("aspects") + 1, self.limits.aspects, "aspects")
            key = int(self._run("INSERT INTO aspects (name) VALUES (?)", (name,)).lastrowid or 0)
            self._add_texts(key, texts)
        return key

    def rename_aspect(self, key: int, name: str) -> None:
        """Give an aspect another name."""
        old = self._name(key)
        if (name := name.strip()) == old:
            return
        name = self._free_name(name)
        with self._action(f"rename {old} to {name}", "learned"):
            self._run("UPDATE aspects SET name = ? WHERE id = ?", (name, key))

    def remove_aspect(self, key: int) -> None:
        """Forget an aspect and the sentences that were examples of no other."""
        with self._action(f"remove aspect {self._name(key)}", "learned"):
            only = "SELECT example FROM mentions GROUP BY example HAVING count(*) = 1 AND max(aspect) = ?"
            self._run(f"DELETE FROM examples WHERE id IN ({only})", (key,))
            self._run("DELETE FROM mentions WHERE aspect = ?", (key,))
            self._run("DELETE FROM aspects WHERE id = ?", (key,))

    def set_threshold(self, value: float | None, aspect: int | None = None) -> None:
        """Of an aspect, or of the project. None is the project's, or the model's own."""
        if aspect is not None:
            with self._action(f"threshold of {self._name(aspect)}"):
                self._run("UPDATE aspects SET threshold = ? WHERE id = ?", (value, aspect))
            return
        with self._action("threshold"):
            self._run("DELETE FROM settings WHERE name = 'threshold'")  # REPLACE would not run the triggers
            self._run("INSERT INTO settings VALUES ('threshold', ?)", (json.dumps(value),))

    def _name(self, key: int) -> str:
        with self._lock:
            row = self._run("SELECT name FROM aspects WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no aspect with the id {key}. It may have been removed; load the list again.")
        return str(row[0])

    def _free_name(self, name: str) -> str:
        name = " ".join(clean(name).split())
        if not name:
            raise AwattError("the aspect has no name, but one is needed, such as 'food'.")
        check_length(name, self.limits.name, "the name of the aspect")
        with self._lock:
            if self._run("SELECT 1 FROM aspects WHERE name = ?", (name,)).fetchone():
                raise ConflictError(f"there is an aspect '{name}' already. Add examples to it, or use another name.")
        return name

    def _size(self, table: str) -> int:
        return int(self._run(f"SELECT count(*) FROM {table}").fetchone()[0])

    # -- examples

    def add_examples(self, aspect: int, texts: Sequence[str]) -> None:
        """More examples of an aspect; one that is there already mentions this aspect too."""
        with self._action(f"add examples of {self._name(aspect)}", "learned"):
            self._add_texts(aspect, texts)

    def _add_texts(self, aspect: int, texts: Sequence[str]) -> None:
        for text in texts:
            key = self._example(text, corrected=False)
            self._run("INSERT OR IGNORE INTO mentions (example, aspect) VALUES (?, ?)", (key, aspect))
        check_count(self._size("examples"), self.limits.examples, "examples")

    def judge(self, text: str, aspects: Iterable[int], corrected: bool = True) -> None:
        """A person says what a sentence mentions: exactly these aspects, maybe none. It becomes an example."""
        wanted = sorted(set(aspects))
        names = ", ".join(self._name(aspect) for aspect in wanted) or "none"
        with self._action(f"label a sentence: {names}", "learned"):
            key = self._example(text, corrected)
            held = {aspect for (aspect,) in self._run("SELECT aspect FROM mentions WHERE example = ?", (key,))}
            for aspect in held.difference(wanted):
                self._run("DELETE FROM mentions WHERE example = ? AND aspect = ?", (key, aspect))
            for aspect in wanted:
                self._run("INSERT OR IGNORE INTO mentions (example, aspect) VALUES (?, ?)", (key, aspect))
            check_count(self._size("examples"), self.limits.examples, "examples")

    def judge_example(self, key: int, aspects: Iterable[int]) -> None:
        """Change what an example mentions."""
        self.judge(self._example_text(key), aspects, corrected=False)

    def remove_example(self, key: int) -> None:
        """Forget an example."""
        self._example_text(key)
        with self._action("remove an example", "learned"):
            self._run("DELETE FROM mentions WHERE example = ?", (key,))
            self._run("DELETE FROM examples WHERE id = ?", (key,))

    def forget(self, text: str) -> None:
        """Take back what was said of a sentence: it is no example any more."""
        with self._lock:
            row = self._run("SELECT id FROM examples WHERE text = ?", (clean(text),)).fetchone()
        if row is not None:
            self.remove_example(row[0])

    def _example(self, text: str, corrected: bool) -> int:
        text = check_length(clean(text), self.limits.characters, "the example")
        if not text:
            raise AwattError("an example is blank, but a sentence is needed. Fill it in or remove it.")
        row = self._run("SELECT id FROM examples WHERE text = ?", (text,)).fetchone()
        if row is not None:
            return int(row[0])
        made = self._run("INSERT INTO examples (text, corrected) VALUES (?, ?)", (text, int(corrected)))
        return int(made.lastrowid or 0)

    def _example_text(self, key: int) -> str:
        with self._lock:
            row = self._run("SELECT text FROM examples WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(
                f"there is no example with the id {key}. It may have been removed; load the list again."
            )
        return str(row[0])

    # -- reviews

    def sentence_text(self, key: int) -> str:
        """The text of a sentence."""
        with self._lock:
            row = self._run("SELECT text FROM sentences WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no sentence with the id {key}. Load the reviews again.")
        return str(row[0])

    def load_reviews(self, reviews: Iterable[tuple[dict[str, object], Sequence[str]]]) -> None:
        """Replace the reviews: the other columns of each, and its sentences. Begins a new history."""
        with self._transaction():
            self._clear("reviews", "sentences", "actions")
            total = 0
            for number, (fields, texts) in enumerate(reviews, 1):
                self._run("INSERT INTO reviews VALUES (?, ?)", (number, json.dumps(fields, default=str)))
                rows = [(number, clean(text)) for text in texts]
                self._connection.executemany("INSERT INTO sentences (review, text) VALUES (?, ?)", rows)
                total += len(rows)
                check_count(total, self.limits.sentences, "sentences")
            self._count("revision", "reviews")

    def load_sample(
        self, reviews: Iterable[tuple[dict[str, object], Sequence[str]]], examples: dict[str, list[str]]
    ) -> None:
        """Replace everything."""
        with self._transaction():
            self.clear()
            for name, texts in examples.items():
                self.add_aspect(name, texts)
            self.load_reviews(reviews)

    def clear(self) -> None:
        """Forget everything."""
        with self._transaction():
            begin_action(self._connection, "")  # the triggers want one
            self._clear("reviews", "sentences", "aspects", "examples", "mentions", "settings", "actions")
            self._count("revision", "learned", "reviews")

    def _clear(self, *tables: str) -> None:
        for table in tables:
            self._run(f"DELETE FROM {table}")

    # -- history

    def undo(self) -> str:
        """Take back the last action; gives its title."""
        return self._take_back(undone=False)

    def redo(self) -> str:
        """Do the action again that was taken back last."""
        return self._take_back(undone=True)

    def _take_back(self, undone: bool) -> str:
        with self._transaction():
            title = take_back(self._connection, undone=undone)
            if title is None:
                raise ConflictError(f"there is nothing to {'redo' if undone else 'undo'}.")
            self._count("revision", "learned")
        return title
