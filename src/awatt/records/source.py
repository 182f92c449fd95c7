"""What is read: a file, a part of it or a stream; and the blocks of rows that readers make of it."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, NamedTuple, cast

from awatt.errors import DataError
from awatt.records.bounds import CountedStream, Meter
from awatt.records.formats import STANDARD_STREAM, list_columns, reason


class Block(NamedTuple):
    """Rows, the line at which each begins, and about how many bytes they have together (0: counted with the next)."""

    lines: Sequence[int]
    rows: list[dict[str, object]]
    size: int


OnError = Callable[[DataError], None]


def raise_error(error: DataError) -> None:
    """An ``on_error`` that stops at the first error."""
    raise error


@dataclass(frozen=True, slots=True)
class OpenPart:
    """A part of a file to read: its bytes or, of Parquet, the ``row_groups``. ``at_start``: it begins with the file."""

    stream: IO[bytes]
    at_start: bool = True
    row_groups: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What every reader needs."""

    path: str
    compressed: bool
    text_column: str
    batch_size: int
    on_error: OnError
    on_columns: Callable[[Sequence[str]], None]
    part: OpenPart | None = None
    opened: ExitStack = field(default_factory=ExitStack)  # closed after the last batch, or earlier
    meter: Meter | None = None

    def open(self) -> IO[bytes]:
        """The bytes of the file, decompressed."""
        stream: IO[bytes]
        if self.part is not None:
            stream = self.part.stream
        elif self.path == STANDARD_STREAM:
            stream = sys.stdin.buffer
        else:
            try:
                stream = self.opened.enter_context(open(self.path, "rb"))  # noqa: SIM115 (the stack closes it)
            except OSError as error:
                raise self.read_error(error) from error
        if self.compressed:
            stream = cast("IO[bytes]", self.opened.enter_context(gzip.GzipFile(mode="rb", fileobj=stream)))
            return stream if self.meter is None else cast("IO[bytes]", CountedStream(stream, self.meter))
        return stream

    def error(self, message: str, line: int | None = None, column: str | None = None) -> DataError:
        """An error at a place in this file."""
        return DataError(message, "stdin" if self.path == STANDARD_STREAM else self.path, line, column)

    def read_error(self, error: Exception, line: int | None = None) -> DataError:
        """The error for bytes that cannot be read or decompressed."""
        if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
            advice = "Download the file again, or remove '.gz' from its name if it is not compressed."
            return self.error(f"the gzip data is cut short or broken ({error}). {advice}", line)
        return self.error(f"cannot be read ({reason(error)}). Check its permissions and the disk.", line)

    def check_names(self, names: Sequence[str], line: int) -> None:
        """Raise if a name occurs twice."""
        for name, count in Counter(names).items():
            if count > 1:
                raise self.error("this column name occurs more than once. Rename one of them.", line, name)

    def check_columns(self, names: Sequence[str], line: int) -> None:
        """Raise if a name occurs twice or the text column is missing."""
        self.check_names(names, line)
        if self.text_column not in names:
            advice = "Name the one that holds the text with --text-column."
            if len(names) == 1 and ";" in names[0]:  # which some spreadsheets write as CSV
                advice = "The cells seem to be separated by ';'. Save the file with commas, or with tabs as .tsv."
            raise self.error(
                f"no such column; the columns are: {list_columns(names)}. {advice}", line, self.text_column
            )
