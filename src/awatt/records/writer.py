"""Writes records to JSONL, CSV, TSV, Parquet and plain text, each also gzipped; a file appears whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Self, cast

from awatt.errors import AwattError
from awatt.files import FileLock, file_advice
from awatt.records.format_writers import WRITERS
from awatt.records.formats import (
    OUT_FORMATS,
    STANDARD_STREAM,
    InvalidValueError,
    Row,
    format_of,
    import_pyarrow,
    reason,
    short_repr,
)
from awatt.records.tables import JsonLines, Table, to_tables


class RecordWriter:
    """Writes rows to a file, whole or not at all: it appears when the ``with`` block ends without an exception.

    Until then no other process can write the same file: that one gets an error.
    JSONL accepts any rows; a table (CSV, TSV, Parquet) has the columns of its first rows; plain text has one column. In
    CSV and TSV a list is written as ``a|b`` (as JSON if a name contains ``|``, ``;`` or ``,``), an object as JSON.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False, format: str | None = None) -> None:
        self.path = str(path)
        self._kind, self._compressed = format_of(self.path, format, OUT_FORMATS)
        if self._kind == "parquet":
            import_pyarrow()  # now, not after the work
        self._target: Path | None = None
        if self.path != STANDARD_STREAM:
            self._target = Path(os.path.realpath(path))  # a symbolic link stays, and points to the new file
            if not self._target.parent.is_dir():
                raise AwattError(f"{path}: there is no folder '{self._target.parent}'. Create it first.")
            if self._target.exists() and not self._target.is_file():
                raise AwattError(f"{path}: this is not a regular file. Name a file, or '-' for stdout.")
            with self._write_errors():
                self._lock = FileLock(self._target)
            if self._target.exists() and not overwrite:
                self._lock.release()
                raise AwattError(f"{path}: the file already exists. Use --overwrite to replace it, or another name.")
            self._temporary = self._target.with_name(f".{self._target.name}.tmp")

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._clean_up()
            raise
        return self

    def _open(self) -> None:
        with self._write_errors(), ExitStack() as stack:
            if self._target is None:
                stream: IO[bytes] = sys.stdout.buffer
                stack.callback(stream.flush)
            else:
                stream = stack.enter_context(open(self._temporary, "wb"))
            if self._compressed:  # without name and time, so that the same rows give the same bytes
                zipped = gzip.GzipFile(filename="", mode="wb", fileobj=stream, compresslevel=6, mtime=0)
                stream = cast("IO[bytes]", stack.enter_context(zipped))
            self._writer = WRITERS[self._kind](stream)
            self._streams = stack.pop_all()

    def write(self, records: Sequence[Row]) -> None:
        """Add rows."""
        self.write_tables(to_tables(records))

    def write_tables(self, tables: Sequence[Table] | Sequence[JsonLines]) -> None:
        """Add the rows of tables; lines of JSON only to JSONL."""
        if tables:
            with self._write_errors():
                self._writer.write(tables)

    def write_header(self, row: Row) -> None:
        """Write the column names of a table that has no rows; ``row`` is an example of one and is not written."""
        with self._write_errors():
            self._writer.write_header(row)

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        try:
            if failure is None:
                with self._write_errors():
                    self._writer.close()
                    self._streams.close()
                    if self._target is not None:
                        os.replace(self._temporary, self._target)
        finally:  # nothing to do after success; after a failure, errors of closing do not matter
            with suppress(Exception):
                self._writer.abandon()
            with suppress(Exception):
                self._streams.close()
            self._clean_up()

    def _clean_up(self) -> None:
        if self._target is not None:
            self._temporary.unlink(missing_ok=True)
            self._lock.release()

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Turn errors of writing into one line."""
        name = "stdout" if self._target is None else self.path
        try:
            yield
        except BrokenPipeError:  # whoever reads stdout has stopped: left to the command line
            raise
        except OSError as error:
            advice = f"{file_advice(error)}, or choose another place."
            raise AwattError(f"{name}: cannot be written ({reason(error)}). {advice}") from error
        except InvalidValueError as error:
            raise AwattError(f"{name}: {error}") from None
        except UnicodeEncodeError as error:
            text = short_repr(error.object[max(0, error.start - 20) : error.end])
            raise AwattError(f"{name}: a row contains an unpaired surrogate, at the end of {text}.") from None
