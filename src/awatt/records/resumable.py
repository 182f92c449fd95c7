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

from awatt.errors import AwattError
from awatt.files import write_text
from awatt.records.formats import Row, UnfitError, format_of, reason
from awatt.records.writer import WRITERS, mend

RESUMABLE = ("jsonl", "csv", "tsv")
NOTED = {"rows": int, "bytes": int, "columns": list, "state": dict, "settings": dict}  # in the journal
ANEW = "begin anew with --overwrite, without --resume."
EVERY = 1.0  # seconds between two commits: little to do again, and no time lost with syncing


class ResumableWriter:
    """Writes rows to a file of lines, as `RecordWriter` does, and can go on after a kill.

    ``settings`` are what the rows depend on: a run goes on only with the same. ``rows`` are those already written
    and ``state`` is what the last `write` noted beside them. ``complete``: there is nothing to go on with, but a
    finished file, of whatever settings.
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
        self.complete = resume and not overwrite and self.path.exists() and self._begun is None
        if not overwrite and not resume and self.part.exists():
            advice = "Use --resume to go on with it, or --overwrite to begin anew."
            raise AwattError(f"{self.part}: a run was stopped here. {advice}")
        if not overwrite and not resume and self.path.exists():
            raise AwattError(f"{path}: the file exists. Use --overwrite to replace it, or another name.")

    def _read_journal(self) -> dict[str, Any]:
        begun = self._noted()
        if begun is None:
            raise AwattError(f"{self.journal}: this is broken, so the run cannot go on: {ANEW}")
        for name, value in self.settings.items():
            if begun["settings"].get(name) != value:
                raise AwattError(f"{self.part}: this run was begun with another {name}. Give the same again, or {ANEW}")
        if (size := self.part.stat().st_size) < begun["bytes"]:
            raise AwattError(f"{self.part}: has {size:,} bytes, but {begun['bytes']:,} were written: {ANEW}")
        return begun

    def __enter__(self) -> Self:
        with self._write_faults():
            if not self._begun:
                self.journal.unlink(missing_ok=True)  # of another run, whose rows end here
            self._raw = self.part.open("r+b" if self._begun else "wb")
            try:
                self._begin()
            except BaseException:
                self._leave()
                raise
        return self

    def _begin(self) -> None:
        self._stream: IO[bytes] = self._raw
        self._writer = WRITERS[self._kind](self._raw)
        if self._begun:
            self.rows, self.state = self._begun["rows"], self._begun["state"]
            self._writer.columns = dict.fromkeys(self._begun["columns"])
            self._raw.truncate(self._begun["bytes"])
            self._raw.seek(0, os.SEEK_END)
        self._commit()

    def write(self, records: Sequence[Row], state: Mapping[str, Any]) -> None:
        """Add rows; ``state`` is noted with them."""
        with self._write_faults():
            self._compress()
            if records:
                self._writer.write(records)
            self.rows += len(records)
            self.state = dict(state)
            if time.monotonic() - self._committed >= EVERY:
                self._commit()

    def write_header(self, row: Row) -> None:
        """As `RecordWriter.write_header`."""
        with self._write_faults():
            self._compress()
            self._writer.write_header(row)

    def _compress(self) -> None:
        """Begin a part of a gzip file, which may have several; a commit ends it."""
        if self._compressed and self._stream is self._raw:
            zipped = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, compresslevel=6, mtime=0)
            self._stream = self._writer.stream = cast("IO[bytes]", zipped)

    def _commit(self) -> None:
        """From here on, everything written so far counts."""
        if self._stream is not self._raw:
            self._stream.close()
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
            self._leave()

    def _leave(self) -> None:
        """Keep what can be gone on with, and nothing else."""
        with suppress(OSError):
            self._raw.close()
        if not self._has_rows():
            with suppress(OSError):
                self.part.unlink(missing_ok=True)
                self.journal.unlink(missing_ok=True)

    def _has_rows(self) -> bool:
        noted = self._noted()
        return noted is not None and noted["rows"] > 0

    def _noted(self) -> dict[str, Any] | None:
        """What the journal says; None if it is broken or not there."""
        with suppress(OSError, ValueError):
            noted = json.loads(self.journal.read_bytes())
            if isinstance(noted, dict) and all(isinstance(noted.get(name), NOTED[name]) for name in NOTED):
                return noted
        return None

    @contextmanager
    def _write_faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            then = "then go on with --resume" if self._has_rows() else "or choose another place"
            raise AwattError(f"{self.path}: cannot be written ({reason(error)}). {mend(error)}, {then}.") from error
        except UnfitError as error:
            raise AwattError(f"{self.path}: {error}") from None
        except UnicodeEncodeError:
            raise AwattError(f"{self.path}: half a character (a lone surrogate) in a row.") from None
