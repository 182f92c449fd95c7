"""The reviews of a project and their sentences. They never change, but others can be loaded in their place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from awatt.server.errors import NotFoundError, ProjectUnavailableError
from awatt.server.journal import truncate_history
from awatt.server.limits import Limits, check_count
from awatt.server.project_file import ProjectFile

MAX_LOADS = 6  # sets of reviews that the file keeps: the one that is shown, and five for undo
SHOWN_SENTENCES = "FROM sentences JOIN reviews ON reviews.id = review WHERE load = (SELECT load FROM loaded)"


def clean(text: str) -> str:
    """The text as the project stores it: stripped, and without NUL, where many programs would cut it off."""
    return text.replace("\0", " ").strip()


class ReviewStore(ProjectFile):
    """Reads and loads reviews."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        super().__init__(path)
        self.limits = limits or Limits()
        # (counter of reviews, sentences, reviews), cached: counting 100,000 takes longer than everything else.
        self._cached_sizes = (-1, 0, 0)

    def _count(self, table: str) -> int:
        return int(self._run(f"SELECT count(*) FROM {table}").fetchone()[0])

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
        with self.snapshot():
            return self._run(f"SELECT sentences.id, number, text {SHOWN_SENTENCES} ORDER BY sentences.id").fetchall()

    def sentence_text(self, key: int) -> str:
        """The text of a sentence."""
        with self.snapshot():
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
        return {number: _read_fields(fields) for number, fields in rows}

    def review(self, number: int) -> tuple[list[int], list[str], dict[str, object]]:
        """The ids and texts of the sentences of a review, and its other columns."""
        with self.snapshot():
            query = f"SELECT sentences.id, text, fields {SHOWN_SENTENCES} AND number = ? ORDER BY sentences.id"
            rows = self._run(query, (number,)).fetchall()
        if not rows:
            raise NotFoundError(f"there is no review {number}. Other reviews may have been loaded; reload the list.")
        return [row[0] for row in rows], [row[1] for row in rows], _read_fields(rows[0][2])

    def file_name(self) -> str | None:
        """The name of the file whose reviews are shown."""
        with self.snapshot():
            row = self._run("SELECT name FROM loads WHERE load = ?", (self._shown_load(),)).fetchone()
        return None if row is None else str(row[0])

    def load_reviews(self, reviews: Iterable[tuple[dict[str, object], Sequence[str]]], file: str | None = None) -> None:
        """Replace the reviews, each given as its other columns and its sentences. Aspects and examples are kept."""
        with self._action("load reviews", "reviews"):
            load = self._begin_load()
            if file:
                self._run("INSERT INTO loads VALUES (?, ?)", (load, clean(file)[: self.limits.file_name]))
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
        for table in ("reviews", "loads"):
            self._run(f"DELETE FROM {table} WHERE load > ? OR load < ?", (shown, oldest))
        truncate_history(self._connection, oldest - 1)
        self._run("UPDATE loaded SET load = ?", (shown + 1,))
        return shown + 1


def _read_fields(text: str) -> dict[str, object]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise ProjectUnavailableError("the columns of the reviews are damaged. Load the reviews again.") from None
