"""Votes, notes and dismissed suggestions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from awatt.errors import plural
from awatt.server.errors import ServiceError
from awatt.server.limits import check_count, check_length
from awatt.server.review_store import ReviewStore, clean


class RemarkStore(ReviewStore):
    """Votes, notes and dismissed suggestions."""

    # -- votes: what each person said of an example

    def _votes(self, aspects: Sequence[int]) -> dict[int, dict[str, list[int]]]:
        """By example and person; of these aspects, since others may have been removed."""
        known, votes = set(aspects), dict[int, dict[str, list[int]]]()
        for example, person, text in self._run("SELECT example, person, aspects FROM votes ORDER BY id"):
            votes.setdefault(example, {})[person] = [key for key in _read_ids(text) if key in known]
        return votes

    def _vote(self, example: int, person: str, aspects: Sequence[int]) -> None:
        """Replace what the person said of this example; what was said last has the highest id."""
        said = json.dumps(sorted(aspects))
        last = "SELECT person, aspects FROM votes WHERE example = ? ORDER BY id DESC"
        if self._run(last, (example,)).fetchone() == (person, said):
            return
        if not self._run("SELECT 1 FROM votes WHERE person = ? ORDER BY id DESC", (person,)).fetchone():
            self._check_new_person()
        self._remove_vote(example, person)
        self._run("INSERT INTO votes (example, person, aspects) VALUES (?, ?, ?)", (example, person, said))
        check_count(self._count("votes"), self.limits.votes, "labels by people")

    def _remove_vote(self, example: int, person: str) -> None:
        self._run("DELETE FROM votes WHERE example = ? AND person = ?", (example, person))

    def _check_new_person(self) -> None:
        """Here and not when the file is opened: an earlier awatt had no limit, and wrote more of them."""
        count, limit = self._run("SELECT count(DISTINCT person) FROM votes").fetchone()[0], self.limits.people
        if count >= limit:
            raise ServiceError(
                f"{plural(count, 'person', 'people')} label this project already, but at most {limit:,} can. "
                "Label under one of their names.",
                "person",
            )

    def _voters(self, example: int) -> list[str]:
        return [person for (person,) in self._run("SELECT person FROM votes WHERE example = ? ORDER BY id", (example,))]

    def _said(self, example: int) -> list[list[int]]:
        """What people have said of the example, the last first."""
        query = "SELECT aspects FROM votes WHERE example = ? ORDER BY id DESC"
        return [_read_ids(text) for (text,) in self._run(query, (example,)).fetchall()]

    def _last_vote(self, example: int) -> list[int] | None:
        return next(iter(self._said(example)), None)

    def _person(self, name: str) -> str:
        return check_length(" ".join(clean(name).split()), self.limits.name, "the name of the person")

    # -- notes

    def _notes(self) -> dict[str, str]:
        return dict(self._run("SELECT text, note FROM notes ORDER BY id").fetchall())

    def set_note(self, text: str, note: str) -> None:
        """Write a note on a sentence; an empty one removes it."""
        text, note = clean(text), check_length(clean(note), self.limits.note, "the note")
        with self._transaction(), self._action("write a note"):
            if self._notes().get(text, "") == note:
                return
            self._run("DELETE FROM notes WHERE text = ?", (text,))
            if note:
                self._run("INSERT INTO notes (text, note) VALUES (?, ?)", (text, note))
            check_count(self._count("notes"), self.limits.notes, "notes")

    # -- suggested aspects

    def dismissed(self) -> set[str]:
        """The names of suggested aspects that are not to be suggested again."""
        with self.snapshot():
            return {str(name) for (name,) in self._run("SELECT name FROM dismissed")}

    def dismiss(self, names: Iterable[str]) -> None:
        """Do not suggest these aspects again."""
        wanted = [clean(name)[: self.limits.name] for name in names]
        with self._transaction(), self._action(f"dismiss {', '.join(wanted)}"[: self.limits.name]):
            for name in wanted:
                self._run("INSERT OR IGNORE INTO dismissed (name) VALUES (?)", (name,))
            check_count(self._count("dismissed"), self.limits.examples, "dismissed suggestions")


def _read_ids(text: str) -> list[int]:
    """The ids of a vote; none if someone else has written something different there."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [key for key in found if type(key) is int] if isinstance(found, list) else []
