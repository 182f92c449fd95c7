"""Whether a resumed run reads the rows that it read before it was stopped."""

from __future__ import annotations

import hashlib

from awatt.errors import AwattError, plural
from awatt.records.resumable import START_OVER


class RowDigest:
    """A running hash of all rows read so far.

    The size and the time of a file are not enough: both can stay the same while its content changes.
    """

    def __init__(self) -> None:
        self._hash, self.rows = hashlib.sha256(), 0

    def add(self, content: bytes, rows: int) -> None:
        """Add the content of some rows."""
        self._hash.update(content)
        self.rows += rows

    def __str__(self) -> str:
        return self._hash.hexdigest()

    def check(self, read_before: object, rows: int, source: str) -> None:
        """Raise if these are not the ``rows`` rows with the hash ``read_before``."""
        if (str(self), self.rows) != (read_before, rows):
            found = f"{plural(rows, 'row')} already read {'has' if rows == 1 else 'have'} changed"
            raise AwattError(f"{source}: {found} since the run was started. Use the file as it was, or {START_OVER}")
