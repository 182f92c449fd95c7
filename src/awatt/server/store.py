"""A project: reviews, aspects, examples, corrections and settings, read from and written to its file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import EllipsisType

from awatt.errors import AwattError
from awatt.server.content import Aspect, Content, Example
from awatt.server.journal import forget_before, last_title
from awatt.server.limits import ConflictError, Limits, NotFoundError, check_count, check_length
from awatt.server.project_file import ProjectFile

LOADS = 3  # sets of reviews that the file keeps: those that are shown, and two to which undo leads back
SHOWN = "FROM sentences JOIN reviews ON reviews.id = review WHERE load = (SELECT load FROM loaded)"


def clean(text: str) -> str:
    """As the project keeps it: stripped, and without the one character that SQLite takes for an end."""
    return text.replace("\0", " ").strip()


class ProjectStore(ProjectFile):
    """Reads and writes a project."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        super().__init__(path)
        self.limits = limits or Limits()
        # The counter of loads, sentences, reviews: counting 100,000 takes longer than the rest.
        self._sizes = (-1, 0, 0)

    # -- reading

    def content(self) -> Content:
        """Everything but the reviews, as of one moment."""
        with self.snapshot():
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
                *self._shown_sizes(),
                last_title(self._connection, undone=False),
                last_title(self._connection, undone=True),
            )

    def _shown_sizes(self) -> tuple[int, int]:
        """How many sentences and reviews are shown."""
        version = self.version().reviews
        if self._sizes[0] != version:
            sentences = self._run(f"SELECT count(*) {SHOWN}").fetchone()[0]
            reviews = self._run("SELECT count(*) FROM reviews WHERE load = ?", (self._load(),)).fetchone()[0]
            self._sizes = version, sentences, reviews
        return self._sizes[1:]

    def sentences(self) -> list[tuple[int, int, str]]:
        """The id, the review's number and the text of each sentence."""
        with self._lock:
            return self._run(f"SELECT sentences.id, number, text {SHOWN} ORDER BY sentences.id").fetchall()

    def sentence_text(self, key: int) -> str:
        """The text of a sentence."""
        with self._lock:
            row = self._run(f"SELECT text {SHOWN} AND sentences.id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(
                f"there is no sentence with the id {key}. Other reviews may have been loaded; load the list again."
            )
        return str(row[0])

    def fields(self) -> dict[int, dict[str, object]]:
        """The other columns of each review, by its number, as they were loaded."""
        with self.snapshot():
            rows = self._run("SELECT number, fields FROM reviews WHERE load = ?", (self._load(),)).fetchall()
        return {number: json.loads(fields) for number, fields in rows}

    # -- aspects

    def add_aspect(self, name: str, texts: Sequence[str] = ()) -> int:
        """Add an aspect with its examples."""
        with self._transaction():
            name = self._free_name(name)
            with self._action(f"add aspect {name}", "learned"):
                check_count(self._size("aspects") + 1, self.limits.aspects, "aspects")
                key = int(self._run("INSERT INTO aspects (name) VALUES (?)", (name,)).lastrowid or 0)
                self._add_texts(key, texts)
        return key

    def change_aspect(self, key: int, name: str | None, threshold: float | EllipsisType | None = ...) -> None:
        """Another name, another threshold, or both; undone together."""
        with self._transaction():
            title = f"threshold of {self._name(key)}" if name is None else f"rename {self._name(key)}"
            with self._action(title, joins=name is None):
                if name is not None:
                    self.rename_aspect(key, name)
                if threshold is not ...:
                    self.set_threshold(threshold, key)

    def rename_aspect(self, key: int, name: str) -> None:
        """Give an aspect another name."""
        with self._transaction():
            old = self._name(key)
            if (name := name.strip()) == old:
                return
            name = self._free_name(name)
            with self._action(f"rename {old} to {name}", "learned"):
                self._run("UPDATE aspects SET name = ? WHERE id = ?", (name, key))

    def remove_aspect(self, key: int) -> None:
        """Forget an aspect and the sentences that were examples of no other."""
        with self._transaction(), self._action(f"remove aspect {self._name(key)}", "learned"):
            only = "SELECT example FROM mentions GROUP BY example HAVING count(*) = 1 AND max(aspect) = ?"
            self._run(f"DELETE FROM examples WHERE id IN ({only})", (key,))
            self._run("DELETE FROM mentions WHERE aspect = ?", (key,))
            self._run("DELETE FROM aspects WHERE id = ?", (key,))

    def set_threshold(self, value: float | None, aspect: int | None = None) -> None:
        """Of an aspect, or of the project. None is the project's, or the model's own.

        The steps of a slider are undone together.
        """
        if aspect is not None:
            with self._transaction(), self._action(f"threshold of {self._name(aspect)}", joins=True):
                changed = "UPDATE aspects SET threshold = ? WHERE id = ? AND threshold IS NOT ?"
                self._run(changed, (value, aspect, value))
            return
        with self._transaction(), self._action("threshold", joins=True):
            if value == self.content().threshold:
                return
            self._run("DELETE FROM settings WHERE name = 'threshold'")  # REPLACE would not run the triggers
            self._run("INSERT INTO settings VALUES ('threshold', ?)", (json.dumps(value),))

    def _name(self, key: int) -> str:
        row = self._run("SELECT name FROM aspects WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no aspect with the id {key}. It may have been removed; load the list again.")
        return str(row[0])

    def _free_name(self, name: str) -> str:
        name = " ".join(clean(name).split())
        if not name:
            raise AwattError("the aspect has no name, but one is needed, such as 'food'.")
        check_length(name, self.limits.name, "the name of the aspect")
        if self._run("SELECT 1 FROM aspects WHERE name = ?", (name,)).fetchone():
            raise ConflictError(f"there is an aspect '{name}' already. Add examples to it, or use another name.")
        return name

    def _size(self, table: str) -> int:
        return int(self._run(f"SELECT count(*) FROM {table}").fetchone()[0])

    # -- examples

    def add_examples(self, aspect: int, texts: Sequence[str]) -> None:
        """More examples of an aspect; one that is there already mentions this aspect too."""
        with self._transaction(), self._action(f"add examples of {self._name(aspect)}", "learned"):
            self._add_texts(aspect, texts)

    def _add_texts(self, aspect: int, texts: Sequence[str]) -> None:
        for text in texts:
            key = self._example(text, corrected=False)
            self._run("INSERT OR IGNORE INTO mentions (example, aspect) VALUES (?, ?)", (key, aspect))
        check_count(self._size("examples"), self.limits.examples, "examples")

    def judge(
        self,
        text: str,
        aspects: Iterable[int],
        corrected: bool = True,
        seen: Iterable[int] | EllipsisType | None = ...,
    ) -> None:
        """A person says what a sentence mentions: exactly these aspects, maybe none. It becomes an example.

        ``seen`` is what had been said of it (None: nothing) when the person looked. If that is not so any more, the
        change is refused: it would silently undo somebody else's.
        """
        wanted = sorted(set(aspects))
        with self._transaction():
            names = ", ".join(self._name(aspect) for aspect in wanted) or "none"
            self._check_seen(text, seen)
            with self._action(f"label a sentence: {names}", "learned"):
                key = self._example(text, corrected)
                for aspect in set(self._said(text) or ()).difference(wanted):
                    self._run("DELETE FROM mentions WHERE example = ? AND aspect = ?", (key, aspect))
                for aspect in wanted:
                    self._run("INSERT OR IGNORE INTO mentions (example, aspect) VALUES (?, ?)", (key, aspect))
                check_count(self._size("examples"), self.limits.examples, "examples")

    def _check_seen(self, text: str, seen: Iterable[int] | EllipsisType | None) -> None:
        if seen is not ... and self._said(text) != (None if seen is None else sorted(set(seen))):
            raise ConflictError(
                "somebody has changed what this sentence mentions since it was shown. Look again, then decide."
            )

    def _said(self, text: str) -> list[int] | None:
        """The aspects of an example, sorted; None if the text is not one."""
        row = self._run("SELECT id FROM examples WHERE text = ?", (clean(text),)).fetchone()
        if row is None:
            return None
        return [key for (key,) in self._run("SELECT aspect FROM mentions WHERE example = ? ORDER BY aspect", row)]

    def judge_example(self, key: int, aspects: Iterable[int]) -> None:
        """Change what an example mentions."""
        with self._transaction():
            self.judge(self._example_text(key), aspects, corrected=False)

    def remove_example(self, key: int) -> None:
        """Forget an example."""
        with self._transaction():
            self._example_text(key)
            with self._action("remove an example", "learned"):
                self._run("DELETE FROM mentions WHERE example = ?", (key,))
                self._run("DELETE FROM examples WHERE id = ?", (key,))

    def forget(self, text: str, seen: Iterable[int] | EllipsisType | None = ...) -> None:
        """Take back what was said of a sentence: it is no example any more. ``seen`` as for `judge`."""
        with self._transaction():
            self._check_seen(text, seen)
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
        row = self._run("SELECT text FROM examples WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(
                f"there is no example with the id {key}. It may have been removed; load the list again."
            )
        return str(row[0])

    # -- reviews

    def load_reviews(self, reviews: Iterable[tuple[dict[str, object], Sequence[str]]]) -> None:
        """Show other reviews: the other columns of each, and its sentences. Aspects and examples stay."""
        with self._action("load reviews", "reviews"):
            load = self._begin_load()
            total = 0
            for number, (fields, texts) in enumerate(reviews, 1):
                made = self._run(
                    "INSERT INTO reviews (fields, load, number) VALUES (?, ?, ?)",
                    (json.dumps(fields, default=str), load, number),
                )
                rows = [(made.lastrowid, clean(text)) for text in texts]
                self._connection.executemany("INSERT INTO sentences (review, text) VALUES (?, ?)", rows)
                total += len(rows)
                check_count(total, self.limits.sentences, "sentences")

    def _begin_load(self) -> int:
        """Loads are a stack: those above the shown one could only be done again, and those far below are forgotten."""
        shown = self._load()
        oldest = shown + 2 - LOADS
        self._run("DELETE FROM reviews WHERE load > ? OR load < ?", (shown, oldest))
        forget_before(self._connection, "loaded", {"id": 1, "load": oldest - 1})
        self._run("UPDATE loaded SET load = ?", (shown + 1,))
        return shown + 1

    def load_sample(
        self, reviews: Iterable[tuple[dict[str, object], Sequence[str]]], examples: dict[str, list[str]]
    ) -> None:
        """Replace everything."""
        with self._action("load the sample"):
            self._forget_learned()
            for name, texts in examples.items():
                self.add_aspect(name, texts)
            self.load_reviews(reviews)

    def clear(self) -> None:
        """Begin with an empty project again."""
        with self._action("start over"):
            self._forget_learned()
            self.load_reviews(())

    def _forget_learned(self) -> None:
        for table in ("aspects", "examples", "mentions", "settings"):
            self._run(f"DELETE FROM {table}")
        self._count("learned")
