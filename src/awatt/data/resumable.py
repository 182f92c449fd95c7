"""Records out that survive a kill: rows gather in ``FILE.part``, and a journal says how much of it counts.

A run that is stopped, by whatever means, goes on from the last commit: what was written after it is cut off and made
again, so that no row is lost and none comes twice. ``FILE`` itself appears whole when everything is done.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self, cast

from awatt.data.formats import Row, UnfitError, format_of, reason
from awatt.data.writer import WRITERS
from awatt.errors import AwattError
from awatt.files import write_text

RESUMABLE = ("jsonl", "csv", "tsv")
EVERY = 1.0  # seconds between two commits: little to do again, and no time lost with syncing


class ResumableWriter:
    """Writes rows to a file of lines, as `RecordWriter` does, and can go on after a kill.

    ``settings`` are what the rows depend on: a run goes on only with the same. ``rows`` are those already written
    and ``state`` is what the last `write` noted beside them.
    """

    def __init__(
        self,
        path: str | Path,
        settings: Mapping[str, object],
        *,
        overwrite: bool = False,
        resume: bool = False,
        format: str | None = None,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self.settings = json.loads(json.dumps(settings))
        self.rows, self.state = 0, dict[str, Any]()
        self._kind, self._compressed = format_of(str(path), format)
        if self._kind not in RESUMABLE:
            advice = "Write .jsonl, .csv or .tsv."
            raise AwattError(f"{path}: a run that writes .{self._kind} cannot be resumed. {advice}")
        if not self.path.parent.is_dir():
            raise AwattError(f"{path}: there is no folder '{self.path.parent}'. Create it first.")
        if self.path.exists() and not self.path.is_file():
            raise AwattError(f"{path}: this is not a plain file. Name a file, or '-' for stdout.")
        self.part = self.path.with_name(f"{self.path.name}.part")
        self.journal = self.path.with_name(f"{self.path.name}.part.json")
        self._begun = self._read_journal() if resume and self.part.exists() and self.journal.exists() else None
        self.complete = resume and self.path.exists() and self._begun is None
        if not overwrite and not resume and self.part.exists():
            advice = "Use --resume to go on with it, or --overwrite to begin anew."
            raise AwattError(f"{self.part}: a run was stopped here. {advice}")
        if not overwrite and not resume and self.path.exists():
            raise AwattError(f"{path}: the file exists. Use --overwrite to replace it, or another name.")

    def _read_journal(self) -> dict[str, Any]:
        begun: dict[str, Any] = json.loads(self.journal.read_text("utf-8"))
        for name, value in begun["settings"].items():
            if self.settings.get(name) != value:
                advice = "Give the same again, or begin anew with --overwrite."
                raise AwattError(f"{self.part}: this run was begun with another {name}. {advice}")
        return begun

    def __enter__(self) -> Self:
        with self._write_faults():
            self._raw = self.part.open("r+b" if self._begun else "wb")
            self._stream: IO[bytes] = self._raw
            columns: list[str] = []
            if self._begun:
                self.rows, self.state, columns = (self._begun[name] for name in ("rows", "state", "columns"))
                self._raw.truncate(self._begun["bytes"])
                self._raw.seek(0, os.SEEK_END)
            self._writer = WRITERS[self._kind](self._raw)
            self._writer.columns = dict.fromkeys(columns)
            self._commit()
        return self

    def write(self, records: Sequence[Row], state: Mapping[str, Any]) -> None:
        """Add rows; ``state`` is noted with them."""
        with self._write_faults():
            if self._compressed and self._stream is self._raw:
                zipped = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, compresslevel=6, mtime=0)
                self._stream = self._writer.stream = cast("IO[bytes]", zipped)
            if records:
                self._writer.write(records)
            self.rows += len(records)
            self.state = dict(state)
            if time.monotonic() - self._committed >= EVERY:
                self._commit()

    def _commit(self) -> None:
        """From here on, everything written so far counts."""
        if self._stream is not self._raw:
            self._stream.close()  # a gzip file may consist of several parts
            self._stream = self._writer.stream = self._raw
        self._raw.flush()
        os.fsync(self._raw.fileno())
        note = {
            "rows": self.rows,
            "bytes": self._raw.tell(),
            "columns": list(self._writer.columns),
            "state": self.state,
            "settings": self.settings,
        }
        write_text(self.journal, json.dumps(note))
        self._committed = time.monotonic()

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        try:
            if failure is None:
                with self._write_faults():
                    self._commit()
                    self._raw.close()
                    os.replace(self.part, self.path)
                    self.journal.unlink()
        finally:
            with suppress(OSError):
                self._raw.close()
            if failure is not None and not self._has_rows():
                self.part.unlink(missing_ok=True)
                self.journal.unlink(missing_ok=True)

    def _has_rows(self) -> bool:
        with suppress(OSError, ValueError):
            return bool(json.loads(self.journal.read_text("utf-8"))["rows"])
        return False

    @contextmanager
    def _write_faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            advice = "Free some space, then go on with --resume."
            raise AwattError(f"{self.path}: cannot be written ({reason(error)}). {advice}") from error
        except UnfitError as error:
            raise AwattError(f"{self.path}: {error}") from None
        except UnicodeEncodeError:
            raise AwattError(f"{self.path}: half a character (a lone surrogate) in a row.") from None
