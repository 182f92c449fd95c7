"""Writes records so that an interrupted run can be resumed: rows go to ``FILE.part``, commits to a journal beside it.

A run that was stopped, even by a kill, continues from the last commit: what was written after it is cut off and
written again, so that no row is lost or doubled. ``FILE`` itself appears whole, at the end. One run at a time writes.
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
from awatt.files import FileLock, file_advice, write_text
from awatt.records.format_writers import WRITERS
from awatt.records.formats import OUT_FORMATS, InvalidValueError, Row, format_of, reason
from awatt.records.tables import JsonLines, Table, to_tables

RESUMABLE = ("jsonl", "csv", "tsv", "excel")
JOURNAL_FIELDS = {"rows": int, "bytes": int, "columns": list, "state": dict, "settings": dict}
START_OVER = "start over with --overwrite, without --resume."
COMMIT_INTERVAL = 1.0  # seconds: little work to repeat, and little time spent on syncing


class ResumableWriter:
    """Writes rows to a JSONL, CSV or TSV file, as `RecordWriter` does, and can resume after a kill.

    ``settings`` are what the rows depend on: a run is resumed only with the same ones. ``rows`` is the number of rows
    already written, and ``state`` what the last `write` stored with them. ``complete``: there is no run to resume, but
    a finished file, written with whatever settings.
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
        self.name, self.path = str(path), Path(os.path.realpath(path))
        self.settings = json.loads(json.dumps(settings))
        self.rows, self.state = 0, dict[str, Any]()
        self._kind, self._compressed = format_of(str(path), format, OUT_FORMATS)
        if self._kind not in RESUMABLE:
            advice = "Write .jsonl, .csv or .tsv."
            raise AwattError(f"{path}: a run that writes .{self._kind} cannot be resumed. {advice}")
        if not self.path.parent.is_dir():
            raise AwattError(f"{path}: there is no folder '{self.path.parent}'. Create it first.")
        if self.path.exists() and not self.path.is_file():
            raise AwattError(f"{path}: this is not a regular file. Name a file, or '-' for stdout.")
        self.part = self.path.with_name(f"{self.path.name}.part")
        self.journal = self.path.with_name(f"{self.path.name}.part.json")
        with self._write_errors():
            self._lock = FileLock(self.path)
        try:
            self._look_for_a_run(overwrite, resume)
        except BaseException:
            self._lock.release()
            raise
        if self.complete:
            self._lock.release()

    def _look_for_a_run(self, overwrite: bool, resume: bool) -> None:
        self._resumed = self._read_journal() if resume and self.part.exists() and self.journal.exists() else None
        self.complete = resume and not overwrite and self.path.exists() and self._resumed is None
        if not overwrite and not resume and self.part.exists():
            advice = "Use --resume to continue it, or --overwrite to start over."
            raise AwattError(f"{self.part}: left by a run that was stopped. {advice}")
        if not overwrite and not resume and self.path.exists():
            raise AwattError(f"{self.name}: the file already exists. Use --overwrite to replace it, or another name.")

    def _read_journal(self) -> dict[str, Any]:
        journal = self._load_journal()
        if journal is None:
            raise AwattError(f"{self.journal}: this file is broken, so the run cannot be resumed: {START_OVER}")
        for name, value in self.settings.items():
            if journal["settings"].get(name) != value:
                raise AwattError(
                    f"{self.part}: this run was started with another {name}. Use the same again, or {START_OVER}"
                )
        if (size := self.part.stat().st_size) < journal["bytes"]:
            raise AwattError(f"{self.part}: has {size:,} bytes, but {journal['bytes']:,} were written: {START_OVER}")
        return journal

    def __enter__(self) -> Self:
        try:
            with self._write_errors():
                if not self._resumed:
                    self.journal.unlink(missing_ok=True)  # of another run, whose rows are discarded
                self._raw = self.part.open("r+b" if self._resumed else "wb")
                self._begin()
        except BaseException:
            self._clean_up()
            raise
        return self

    def _begin(self) -> None:
        self._stream: IO[bytes] = self._raw
        self._writer = WRITERS[self._kind](self._raw)
        if self._resumed:
            self.rows, self.state = self._resumed["rows"], self._resumed["state"]
            self._writer.columns = dict.fromkeys(self._resumed["columns"])
            self._raw.truncate(self._resumed["bytes"])
            self._raw.seek(0, os.SEEK_END)
        self._commit()

    def write(self, records: Sequence[Row], state: Mapping[str, Any]) -> None:
        """Add rows; ``state`` is stored with them."""
        self.write_tables(to_tables(records), state)

    def write_tables(self, tables: Sequence[Table] | Sequence[JsonLines], state: Mapping[str, Any]) -> None:
        """Add the rows of tables; ``state`` is stored with them."""
        with self._write_errors():
            self._start_gzip_member()
            if tables:
                self._writer.write(tables)
            self.rows += sum(table.n_rows for table in tables)
            self.state = dict(state)
            if time.monotonic() - self._committed >= COMMIT_INTERVAL:
                self._commit()

    def write_header(self, row: Row) -> None:
        """As `RecordWriter.write_header`."""
        with self._write_errors():
            self._start_gzip_member()
            self._writer.write_header(row)

    def _start_gzip_member(self) -> None:
        """Start a member of the gzip file, which may have several; a commit ends it."""
        if self._compressed and self._stream is self._raw:
            zipped = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, compresslevel=6, mtime=0)
            self._stream = self._writer.stream = cast("IO[bytes]", zipped)

    def _commit(self) -> None:
        """Write a journal: a resumed run continues from here."""
        if self._stream is not self._raw:
            self._stream.close()
            self._stream = self._writer.stream = self._raw
        self._raw.flush()
        os.fsync(self._raw.fileno())
        journal = {
            "rows": self.rows,
            "bytes": self._raw.tell(),
            "columns": list(self._writer.columns),
            "state": self.state,
            "settings": self.settings,
        }
        write_text(self.journal, json.dumps(journal))
        self._committed = time.monotonic()

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        try:
            if failure is None:
                with self._write_errors():
                    self._commit()
                    self._raw.close()
                    if not self.part.exists():
                        raise AwattError(
                            f"{self.part}: was deleted during the run, and the rows with it. Run it again."
                        )
                    os.replace(self.part, self.path)
                    self.journal.unlink()
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        """Keep the files only if a run can be resumed from them."""
        with suppress(OSError, AttributeError):  # it may not have been opened
            self._raw.close()
        if not self._has_rows():
            with suppress(OSError):
                self.part.unlink(missing_ok=True)
                self.journal.unlink(missing_ok=True)
        with suppress(OSError):
            self._lock.release()

    def _has_rows(self) -> bool:
        journal = self._load_journal()
        return journal is not None and journal["rows"] > 0 and self.part.exists()

    def _load_journal(self) -> dict[str, Any] | None:
        """The content of the journal; None if it is broken or missing."""
        with suppress(OSError, ValueError):
            journal = json.loads(self.journal.read_bytes())
            if isinstance(journal, dict) and all(
                isinstance(journal.get(name), kind) for name, kind in JOURNAL_FIELDS.items()
            ):
                return journal
        return None

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Turn errors of writing into one line."""
        try:
            yield
        except OSError as error:
            then = "then continue with --resume" if self._has_rows() else "or choose another place"
            raise AwattError(
                f"{self.path}: cannot be written ({reason(error)}). {file_advice(error)}, {then}."
            ) from error
        except InvalidValueError as error:
            raise AwattError(f"{self.path}: {error}") from None
        except UnicodeEncodeError:
            raise AwattError(f"{self.path}: a row contains an unpaired surrogate.") from None
