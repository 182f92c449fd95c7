"""A project: reviews, aspects, examples, labels and settings, read from and written to its file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import EllipsisType

from awatt.detector.examples import normal_form
from awatt.errors import AwattError, plural
from awatt.server.content import Aspect, Content, Example
from awatt.server.errors import ConflictError, NotFoundError
from awatt.server.journal import last_title
from awatt.server.limits import Limits, check_count, check_length
from awatt.server.remark_store import RemarkStore
from awatt.server.review_store import clean

MAX_LISTED = 20  # sentences that an error lists
QUOTED = 60  # characters of a sentence in the title of an action


class ProjectStore(RemarkStore):
    """Reads and writes a project."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        super().__init__(path, limits)
        try:
            self._check_counts()
        except BaseException:
            self.close()
            raise

    def _check_counts(self) -> None:
        with self.snapshot():  # someone else may have made the file
            check_count(self._count("aspects"), self.limits.aspects, "aspects in the project")
            check_count(self._count("examples"), self.limits.examples, "examples in the project")
            check_count(self._sizes()[0], self.limits.sentences, "sentences in the project")
            check_count(self._count("notes"), self.limits.notes, "notes in the project")
            check_count(self._count("votes"), self.limits.votes, "labels by people in the project")

    # -- reading

    def content(self) -> Content:
        """Everything but the reviews, at one moment."""
        with self.snapshot():
            mentions: dict[int, list[int]] = {}
            for example, aspect in self._run(
                "SELECT example, aspect FROM mentions WHERE aspect IN (SELECT id FROM aspects) ORDER BY aspect"
            ):
                mentions.setdefault(example, []).append(aspect)
            examples = self._run("SELECT id, text, corrected, made FROM examples ORDER BY id").fetchall()
            settings = dict(self._run("SELECT name, value FROM settings").fetchall())
            aspects = [Aspect(*row) for row in self._run("SELECT id, name, threshold FROM aspects ORDER BY id")]
            votes = self._votes([aspect.id for aspect in aspects])
            n_sentences, n_reviews = self._sizes()
            return Content(
                **vars(self.version()),
                aspects=aspects,
                examples=[
                    Example(key, text, tuple(mentions.get(key, ())), bool(corrected), made, votes.get(key, {}))
                    for key, text, corrected, made in examples
                ],
                threshold=settings.get("threshold"),
                n_sentences=n_sentences,
                n_reviews=n_reviews,
                file=self.file_name(),
                notes=self._notes(),
                undo=last_title(self._connection, undone=False),
                redo=last_title(self._connection, undone=True),
            )

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

    def add_aspects(self, names: Iterable[str]) -> None:
        """Add aspects by their names alone; those that exist already stay as they are. Undone together."""
        wanted: dict[str, str] = {}
        for name in filter(None, map(_one_line, names)):
            wanted.setdefault(normal_form(name), name)
        if not wanted:
            raise AwattError("there is no name. Give at least one, such as 'food'.")
        with self._transaction():
            known = {normal_form(aspect.name) for aspect in self.content().aspects}
            new = [name for form, name in wanted.items() if form not in known]
            if len(new) == 1:
                self.add_aspect(new[0])
            elif new:
                with self._action(f"add {len(new)} aspects"):
                    for name in new:
                        self.add_aspect(name)

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
            if (name := _one_line(name)) == old:
                return
            name = self._check_new_name(name, key)
            with self._action(f"rename {old} to {name}", "learned"):
                self._run("UPDATE aspects SET name = ? WHERE id = ?", (name, key))

    def remove_aspect(self, key: int) -> None:
        """Remove an aspect, and the examples that mention no other aspect."""
        with self._transaction(), self._action(f"remove aspect {self._aspect_name(key)}", "learned"):
            only = "SELECT example FROM mentions GROUP BY example HAVING count(*) = 1 AND max(aspect) = ?"
            known = {other for (other,) in self._run("SELECT id FROM aspects")} - {key}
            for (example,) in self._run(only, (key,)).fetchall():  # what someone else has said of it counts then
                for aspect in next(filter(None, map(known.intersection, self._said(example))), ()):
                    self._run("INSERT INTO mentions (example, aspect) VALUES (?, ?)", (example, aspect))
            self._run(f"DELETE FROM votes WHERE example IN ({only})", (key,))
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
            self._run("INSERT INTO settings VALUES ('threshold', ?)", (value,))

    def _aspect_name(self, key: int) -> str:
        row = self._run("SELECT name FROM aspects WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no aspect with the id {key}. It may have been removed; reload the list.")
        return str(row[0])

    def _check_new_name(self, name: str, key: int = 0) -> str:
        """The name in one line; raise if an aspect other than ``key`` has it, perhaps in another case."""
        name = _one_line(name)
        if not name:
            raise AwattError("the aspect has no name. Give it one, such as 'food'.")
        check_length(name, self.limits.name, "the name of the aspect")
        for (known,) in self._run("SELECT name FROM aspects WHERE id != ?", (key,)):
            if normal_form(known) == normal_form(name):
                found = f"there is an aspect '{known}' already"
                if known != name:
                    found += f", which differs from '{name}' only in case"
                raise ConflictError(f"{found}. Add examples to it, or choose another name.")
        return name

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
        person: str | None = None,
    ) -> None:
        """Label a sentence with exactly these aspects, possibly none. It becomes an example.

        Each person's vote is kept; the latest vote is the label.

        ``seen`` is the label that the user last saw (None: no label; ``...``: not checked). If the label has changed
        since, the new one is refused: it would silently overwrite another user's.
        """
        wanted = sorted(set(aspects))
        with self._transaction():
            names = ", ".join(self._aspect_name(aspect) for aspect in wanted) or "none"
            self._check_seen(text, seen)
            with self._action(f"label {_quote(text)}: {names}", "learned"):
                key = self._get_or_add_example(text, corrected)
                for aspect in set(self._label(text) or ()).difference(wanted):
                    self._run("DELETE FROM mentions WHERE example = ? AND aspect = ?", (key, aspect))
                for aspect in wanted:
                    self._run("INSERT OR IGNORE INTO mentions (example, aspect) VALUES (?, ?)", (key, aspect))
                if person is not None:
                    self._vote(key, self._person(person), wanted)
                check_count(self._count("examples"), self.limits.examples, "examples")

    def label_sentences(
        self,
        labels: Sequence[tuple[int, Sequence[int] | None, Sequence[int] | EllipsisType | None]],
        person: str | None = None,
    ) -> None:
        """Label several sentences, each given by its id, its aspects (None: no label) and ``seen``. Undone together.

        If the label of any has changed since it was seen, none is changed. Labels that only others can remove stay.
        """
        with self._action(f"label {plural(len(labels), 'sentence')}"):
            texts = [self.sentence_text(key) for key, _, _ in labels]
            # Before the first change: sentences with the same text share a label.
            conflicts = [
                key for text, (key, _, seen) in zip(texts, labels, strict=True) if self._has_changed(text, seen)
            ]
            if conflicts:
                raise ConflictError(_describe_conflicts(conflicts))
            for text, (_, aspects, _) in zip(texts, labels, strict=True):
                if aspects is not None:
                    self.label_sentence(text, aspects, person=person)
                else:
                    with suppress(ConflictError):
                        self.remove_label(text, person=person)

    def import_examples(self, labelled: Iterable[tuple[str, Sequence[str]]], file: str) -> int:
        """Add labelled sentences, and the aspects that are missing; returns how many sentences. Undone together."""
        count = 0
        with self._transaction(), self._action(f"import {file}"[: self.limits.name]):
            keys = {aspect.name: aspect.id for aspect in self.content().aspects}
            forms = {normal_form(name): name for name in keys}
            for text, names in labelled:
                for name in map(_one_line, names):
                    if name not in keys:
                        if (known := forms.setdefault(normal_form(name), name)) != name:
                            found = f"the file has the aspect '{name}', but there is '{known}', too"
                            raise ConflictError(f"{found}, which differs only in case. Write both the same way.")
                        keys[name] = self.add_aspect(name)
                self.label_sentence(text, [keys[_one_line(name)] for name in names], corrected=False)
                count += 1
        return count

    def accept_suggestion(self, name: str, texts: Sequence[str], groups: Sequence[str]) -> None:
        """Add a suggested aspect with its examples; ``groups`` are the suggestions it consists of. Undone together."""
        with self._transaction(), self._action(f"add aspect {_one_line(name)}"[: self.limits.name]):
            self.add_aspect(name, texts)
            self.dismiss(groups)

    def _has_changed(self, text: str, seen: Iterable[int] | EllipsisType | None) -> bool:
        """Whether the label is no longer what was seen."""
        return seen is not ... and self._label(text) != (None if seen is None else sorted(set(seen)))

    def _check_seen(self, text: str, seen: Iterable[int] | EllipsisType | None) -> None:
        if self._has_changed(text, seen):
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
                for table in ("mentions", "votes"):
                    self._run(f"DELETE FROM {table} WHERE example = ?", (key,))
                self._run("DELETE FROM examples WHERE id = ?", (key,))

    def remove_label(
        self, text: str, seen: Iterable[int] | EllipsisType | None = ..., person: str | None = None
    ) -> None:
        """Remove the label of a sentence, which is then no longer an example. ``seen`` as in `label_sentence`.

        If a person withdraws a vote, the latest remaining vote becomes the label. Nobody can remove another person's
        vote alone (`remove_example` removes all of them); anyone can remove an anonymous one.
        """
        with self._transaction():
            self._check_seen(text, seen)
            row = self._run("SELECT id FROM examples WHERE text = ?", (clean(text),)).fetchone()
            if row is None:
                return
            voters = self._voters(row[0])
            own = name if (name := self._person(person or "")) in voters else ""
            if voters and own not in voters:
                advice = "Only they can remove it. To change it, label the sentence yourself."
                raise ConflictError(f"this is the label of {', '.join(voters)}. {advice}")
            with self._action(f"remove the label of {_quote(text)}", "learned"):
                self._remove_vote(row[0], own)
                said = self._last_vote(row[0])
                if said is None:
                    self.remove_example(row[0])
                else:
                    known = {key for (key,) in self._run("SELECT id FROM aspects")}
                    self.label_sentence(text, known.intersection(said))

    def _get_or_add_example(self, text: str, corrected: bool) -> int:
        text = check_length(clean(text), self.limits.characters, "the example")
        if not text:
            raise AwattError("an example is blank. Fill it in or remove it.")
        row = self._run("SELECT id FROM examples WHERE text = ?", (text,)).fetchone()
        if row is not None:
            return int(row[0])
        values = text, int(corrected), int(time.time())
        added = self._run("INSERT INTO examples (text, corrected, made) VALUES (?, ?, ?)", values)
        return int(added.lastrowid or 0)

    def _example_text(self, key: int) -> str:
        row = self._run("SELECT text FROM examples WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no example with the id {key}. It may have been removed; reload the list.")
        return str(row[0])

    # -- everything

    def load_sample(
        self,
        reviews: Iterable[tuple[dict[str, object], Sequence[str]]],
        examples: dict[str, list[str]],
        file: str | None = None,
    ) -> None:
        """Replace everything with a sample."""
        with self._action("load the sample"):
            self._delete_aspects()
            for name, texts in examples.items():
                self.add_aspect(name, texts)
            self.load_reviews(reviews, file)

    def clear(self) -> None:
        """Empty the project; nothing happens if it is empty."""
        found = self.content()
        if not (found.aspects or found.examples or found.n_sentences or found.notes or found.threshold is not None):
            return
        with self._action("start over"):
            self._delete_aspects()
            self.load_reviews(())

    def _delete_aspects(self) -> None:
        """With their examples and thresholds."""
        for table in ("aspects", "examples", "mentions", "settings", "votes", "notes", "dismissed"):
            self._run(f"DELETE FROM {table}")
        self._increase("learned")


def _describe_conflicts(keys: Sequence[int]) -> str:
    listed = ", ".join(map(str, keys[:MAX_LISTED])) + (" …" if len(keys) > MAX_LISTED else "")
    if len(keys) == 1:
        found = f"the label of a sentence has been changed since it was shown (id {listed})"
    else:
        found = f"the labels of {len(keys):,} sentences have been changed since they were shown (ids {listed})"
    return f"{found}. Nothing was saved. Look again, then decide."


def _quote(text: str) -> str:
    """A sentence in the title of an action; of a long one the beginning."""
    text = _one_line(text)
    return f"“{text}”" if len(text) <= QUOTED else f"“{text[: QUOTED - 1].rstrip()}…”"


def _one_line(name: str) -> str:
    return " ".join(clean(name).split())
