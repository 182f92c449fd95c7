"""A project: reviews, aspects, examples, labels and settings, read from and written to its file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import EllipsisType

from awatt.errors import AwattError
from awatt.server.content import Aspect, Content, Example
from awatt.server.journal import last_title, truncate_history
from awatt.server.limits import ConflictError, Limits, NotFoundError, check_count, check_length
from awatt.server.project_file import ProjectFile

MAX_LOADS = 3  # sets of reviews that the file keeps: the one that is shown, and two for undo
SHOWN_SENTENCES = "FROM sentences JOIN reviews ON reviews.id = review WHERE load = (SELECT load FROM loaded)"


def clean(text: str) -> str:
    """The text as the project stores it: stripped, and without NUL, where SQLite's quote() would cut it off."""
    return text.replace("\0", " ").strip()


class ProjectStore(ProjectFile):
    """Reads and writes a project."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        super().__init__(path)
        self.limits = limits or Limits()
        # (counter of reviews, sentences, reviews), cached: counting 100,000 takes longer than everything else.
        self._cached_sizes = (-1, 0, 0)

    # -- reading

    def content(self) -> Content:
        """Everything but the reviews, at one moment."""
        with self.snapshot():
            mentions: dict[int, list[int]] = {}
            for example, aspect in self._run("SELECT example, aspect FROM mentions ORDER BY aspect"):
                mentions.setdefault(example, []).append(aspect)
            examples = self._run("SELECT id, text, corrected FROM examples ORDER BY id").fetchall()
            settings = dict(self._run("SELECT name, value FROM settings").fetchall())
            n_sentences, n_reviews = self._sizes()
            return Content(
                **vars(self.version()),
                aspects=[Aspect(*row) for row in self._run("SELECT id, name, threshold FROM aspects ORDER BY id")],
                examples=[
                    Example(key, text, tuple(mentions.get(key, ())), bool(corrected))
                    for key, text, corrected in examples
                ],
                threshold=json.loads(settings.get("threshold", "null")),
                n_sentences=n_sentences,
                n_reviews=n_reviews,
                undo=last_title(self._connection, undone=False),
                redo=last_title(self._connection, undone=True),
            )

    def _sizes(self) -> tuple[int, int]:
        """How many sentences and reviews are shown."""
        version = self.version().reviews
        if self._cached_sizes[0] != version:
            sentences = self._run(f"SELECT count(*) {SHOWN_SENTENCES}").fetchone()[0]
            reviews = self._run("SELECT count(*) FROM reviews WHERE load = ?", (self._shown_load(),)).fetchone()[0]
            self._cached_sizes = version, sentences, reviews
        return self._cached_sizes[1:]

    def sentences(self) -> list[tuple[int, int, str]]:
        """The id, the review's number and the text of each sentence."""
        with self._lock:
            return self._run(f"SELECT sentences.id, number, text {SHOWN_SENTENCES} ORDER BY sentences.id").fetchall()

    def sentence_text(self, key: int) -> str:
        """The text of a sentence."""
        with self._lock:
            row = self._run(f"SELECT text {SHOWN_SENTENCES} AND sentences.id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(
                f"there is no sentence with the id {key}. Other reviews may have been loaded; reload the list."
            )
        return str(row[0])

    def fields(self) -> dict[int, dict[str, object]]:
        """The other columns of each review, by its number."""
        with self.snapshot():
            rows = self._run("SELECT number, fields FROM reviews WHERE load = ?", (self._shown_load(),)).fetchall()
        return {number: json.loads(fields) for number, fields in rows}

    # -- aspects

    def add_aspect(self, name: str, texts: Sequence[str] = ()) -> int:
        """Add an aspect with its examples, and return its id."""
        with self._transaction():
            name = self._check_new_name(name)
            with self._action(f"add aspect {name}", "learned"):
                check_count(self._count("aspects") + 1, self.limits.aspects, "aspects")
                key = int(self._run("INSERT INTO aspects (name) VALUES (?)", (name,)).lastrowid or 0)
                self._add_mentions(key, texts)
        return key

    def change_aspect(self, key: int, name: str | None, threshold: float | EllipsisType | None = ...) -> None:
        """Change the name, the threshold, or both; they are undone together."""
        with self._transaction():
            title = f"threshold of {self._aspect_name(key)}" if name is None else f"rename {self._aspect_name(key)}"
            with self._action(title, joins=name is None):
                if name is not None:
                    self.rename_aspect(key, name)
                if threshold is not ...:
                    self.set_threshold(threshold, key)

    def rename_aspect(self, key: int, name: str) -> None:
        """Give an aspect another name."""
        with self._transaction():
            old = self._aspect_name(key)
            if (name := name.strip()) == old:
                return
            name = self._check_new_name(name)
            with self._action(f"rename {old} to {name}", "learned"):
                self._run("UPDATE aspects SET name = ? WHERE id = ?", (name, key))

    def remove_aspect(self, key: int) -> None:
        """Remove an aspect, and the examples that mention no other aspect."""
        with self._transaction(), self._action(f"remove aspect {self._aspect_name(key)}", "learned"):
            only = "SELECT example FROM mentions GROUP BY example HAVING count(*) = 1 AND max(aspect) = ?"
            self._run(f"DELETE FROM examples WHERE id IN ({only})", (key,))
            self._run("DELETE FROM mentions WHERE aspect = ?", (key,))
            self._run("DELETE FROM aspects WHERE id = ?", (key,))

    def set_threshold(self, value: float | None, aspect: int | None = None) -> None:
        """Set the threshold of an aspect (None: the project's) or of the project (None: the model's own).

        Consecutive steps of a slider are undone together.
        """
        if aspect is not None:
            with self._transaction(), self._action(f"threshold of {self._aspect_name(aspect)}", joins=True):
                changed = "UPDATE aspects SET threshold = ? WHERE id = ? AND threshold IS NOT ?"
                self._run(changed, (value, aspect, value))
            return
        with self._transaction(), self._action("threshold", joins=True):
            if value == self.content().threshold:
                return
            self._run("DELETE FROM settings WHERE name = 'threshold'")  # REPLACE would not run the triggers
            self._run("INSERT INTO settings VALUES ('threshold', ?)", (json.dumps(value),))

    def _aspect_name(self, key: int) -> str:
        row = self._run("SELECT name FROM aspects WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no aspect with the id {key}. It may have been removed; reload the list.")
        return str(row[0])

    def _check_new_name(self, name: str) -> str:
        name = " ".join(clean(name).split())
        if not name:
            raise AwattError("the aspect has no name. Give it one, such as 'food'.")
        check_length(name, self.limits.name, "the name of the aspect")
        if self._run("SELECT 1 FROM aspects WHERE name = ?", (name,)).fetchone():
            raise ConflictError(f"there is an aspect '{name}' already. Add examples to it, or choose another name.")
        return name

    def _count(self, table: str) -> int:
        return int(self._run(f"SELECT count(*) FROM {table}").fetchone()[0])

    # -- examples

    def add_examples(self, aspect: int, texts: Sequence[str]) -> None:
        """Add examples of an aspect; an existing example now mentions this aspect, too."""
        with self._transaction(), self._action(f"add examples of {self._aspect_name(aspect)}", "learned"):
            self._add_mentions(aspect, texts)

    def _add_mentions(self, aspect: int, texts: Sequence[str]) -> None:
        for text in texts:
            key = self._get_or_add_example(text, corrected=False)
            self._run("INSERT OR IGNORE INTO mentions (example, aspect) VALUES (?, ?)", (key, aspect))
        check_count(self._count("examples"), self.limits.examples, "examples")

    def label_sentence(
        self,
        text: str,
        aspects: Iterable[int],
        corrected: bool = True,
        seen: Iterable[int] | EllipsisType | None = ...,
    ) -> None:
        """Label a sentence with exactly these aspects, possibly none. It becomes an example.

        ``seen`` is the label that the user last saw (None: no label; ``...``: not checked). If the label has changed
        since, the new one is refused: it would silently overwrite another user's.
        """
        wanted = sorted(set(aspects))
        with self._transaction():
            names = ", ".join(self._aspect_name(aspect) for aspect in wanted) or "none"
            self._check_seen(text, seen)
            with self._action(f"label a sentence: {names}", "learned"):
                key = self._get_or_add_example(text, corrected)
                for aspect in set(self._label(text) or ()).difference(wanted):
                    self._run("DELETE FROM mentions WHERE example = ? AND aspect = ?", (key, aspect))
                for aspect in wanted:
                    self._run("INSERT OR IGNORE INTO mentions (example, aspect) VALUES (?, ?)", (key, aspect))
                check_count(self._count("examples"), self.limits.examples, "examples")

    def _check_seen(self, text: str, seen: Iterable[int] | EllipsisType | None) -> None:
        if seen is not ... and self._label(text) != (None if seen is None else sorted(set(seen))):
            raise ConflictError(
                "the label of this sentence has been changed since it was shown. Look again, then decide."
            )

    def _label(self, text: str) -> list[int] | None:
        """The aspects of an example, sorted; None if the text is not one."""
        row = self._run("SELECT id FROM examples WHERE text = ?", (clean(text),)).fetchone()
        if row is None:
            return None
        return [key for (key,) in self._run("SELECT aspect FROM mentions WHERE example = ? ORDER BY aspect", row)]

    def label_example(self, key: int, aspects: Iterable[int]) -> None:
        """Set the aspects that an example mentions."""
        with self._transaction():
            self.label_sentence(self._example_text(key), aspects, corrected=False)

    def remove_example(self, key: int) -> None:
        """Remove an example."""
        with self._transaction():
            self._example_text(key)
            with self._action("remove an example", "learned"):
                self._run("DELETE FROM mentions WHERE example = ?", (key,))
                self._run("DELETE FROM examples WHERE id = ?", (key,))

    def remove_label(self, text: str, seen: Iterable[int] | EllipsisType | None = ...) -> None:
        """Remove the label of a sentence, which is then no longer an example. ``seen`` as in `label_sentence`."""
        with self._transaction():
            self._check_seen(text, seen)
            row = self._run("SELECT id FROM examples WHERE text = ?", (clean(text),)).fetchone()
            if row is not None:
                self.remove_example(row[0])

    def _get_or_add_example(self, text: str, corrected: bool) -> int:
        text = check_length(clean(text), self.limits.characters, "the example")
        if not text:
            raise AwattError("an example is blank. Fill it in or remove it.")
        row = self._run("SELECT id FROM examples WHERE text = ?", (text,)).fetchone()
        if row is not None:
            return int(row[0])
        added = self._run("INSERT INTO examples (text, corrected) VALUES (?, ?)", (text, int(corrected)))
        return int(added.lastrowid or 0)

    def _example_text(self, key: int) -> str:
        row = self._run("SELECT text FROM examples WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no example with the id {key}. It may have been removed; reload the list.")
        return str(row[0])

    # -- reviews

    def load_reviews(self, reviews: Iterable[tuple[dict[str, object], Sequence[str]]]) -> None:
        """Replace the reviews, each given as its other columns and its sentences. Aspects and examples are kept."""
        with self._action("load reviews", "reviews"):
            load = self._begin_load()
            total = 0
            for number, (fields, texts) in enumerate(reviews, 1):
                added = self._run(
                    "INSERT INTO reviews (fields, load, number) VALUES (?, ?, ?)",
                    (json.dumps(fields, default=str), load, number),
                )
                rows = [(added.lastrowid, clean(text)) for text in texts]
                self._connection.executemany("INSERT INTO sentences (review, text) VALUES (?, ?)", rows)
                total += len(rows)
                check_count(total, self.limits.sentences, "sentences")

    def _begin_load(self) -> int:
        """Loads form a stack: those above the shown one (only redo led there) and the oldest are deleted."""
        shown = self._shown_load()
        oldest = shown + 2 - MAX_LOADS
        self._run("DELETE FROM reviews WHERE load > ? OR load < ?", (shown, oldest))
        truncate_history(self._connection, "loaded", {"id": 1, "load": oldest - 1})
        self._run("UPDATE loaded SET load = ?", (shown + 1,))
        return shown + 1

    def load_sample(
        self, reviews: Iterable[tuple[dict[str, object], Sequence[str]]], examples: dict[str, list[str]]
    ) -> None:
        """Replace everything with a sample."""
        with self._action("load the sample"):
            self._delete_aspects()
            for name, texts in examples.items():
                self.add_aspect(name, texts)
            self.load_reviews(reviews)

    def clear(self) -> None:
        """Empty the project."""
        with self._action("start over"):
            self._delete_aspects()
            self.load_reviews(())

    def _delete_aspects(self) -> None:
        """With their examples and thresholds."""
        for table in ("aspects", "examples", "mentions", "settings"):
            self._run(f"DELETE FROM {table}")
        self._increase("learned")
