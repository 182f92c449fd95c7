"""Lines of a text file, and the rows of CSV and TSV that they make up.

A quoted cell may span lines, so a quote that is never closed would swallow every row after it. A row that cannot be
right therefore costs its first line only: the lines that it took are read again, each as the beginning of a row.
"""

from __future__ import annotations

import csv
from collections import deque
from functools import partial
from itertools import islice
from typing import NamedTuple, TextIO

from awatt.records.formats import MAX_LINE, InvalidValueError

_PORTION = 16  # lines that are read before their size is looked at
MAX_ROW_LINES = 1000  # of a row; a longer one has a quote that is never closed
SWALLOWED = 10  # delimiters that must agree before a long cell counts as rows with an open quote before them
_QUOTES = 'A cell that begins with " must end with ", and a " within it is written twice.'
_OPEN = f"the row cannot be split into cells (a quoted cell does not end where it should). {_QUOTES}"


class Line(NamedTuple):
    """A line with its line end. ``problem`` says why it cannot be used.

    ``skipped``: bytes of the previous line that were dropped.
    """

    text: str
    problem: str | None = None
    skipped: int = 0


class LineReader:
    """The lines of a text: one by one, or many at once where none of them needs a closer look."""

    def __init__(self, text: TextIO) -> None:
        self.count = 0  # lines given so far
        self._text, self._ahead = text, deque[str]()
        self._cut, self._skipped = False, 0  # whether the latest line goes on, and bytes of it that were left out

    def __iter__(self) -> LineReader:
        return self

    def __next__(self) -> Line:
        """The next line, also if it cannot be used: not UTF-8 (decoded with surrogateescape), or cut for its length."""
        self._skip_rest()
        if not (line := self._read()):
            raise StopIteration
        self.count += 1
        skipped, self._skipped = self._skipped, 0
        if len(line) < MAX_LINE:
            return Line(line, None if line.isascii() else _not_utf8(line), skipped)
        self._cut = not line.endswith(("\n", "\r"))
        return Line(line, f"longer than {MAX_LINE:,} characters. Does the suffix match the file?", skipped)

    def _read(self) -> str:
        """A line, or the next part of one that is cut."""
        return self._ahead.popleft() if self._ahead else self._text.readline(MAX_LINE)

    def _skip_rest(self) -> None:
        """Skip the rest of an overlong line; done lazily because it may never end."""
        while self._cut and (line := self._read()):
            self._skipped += len(line.encode(errors="surrogateescape"))
            self._cut = not line.endswith(("\n", "\r"))

    def take(self, most: int) -> list[str]:
        """At most so many lines, none of which has a problem; empty if the next ones must be read one by one."""
        if self._ahead or self._cut:
            return []
        lines, size, begin = list[str](), 0, -1
        following = iter(partial(self._text.readline, MAX_LINE), "")
        try:
            while begin < len(lines) < most and size < MAX_LINE:
                begin = len(lines)
                lines.extend(islice(following, min(_PORTION, most - begin)))
                size += sum(map(len, lines[begin:]))
        finally:
            self.count += len(lines)  # also if they cannot be read any further: so that this is reported at its line
        if size >= MAX_LINE or not _is_utf8("".join(lines)):
            self.give_back(lines)
            return []
        return lines

    def give_back(self, lines: list[str]) -> None:
        """Read the latest lines again, one by one."""
        self._ahead.extendleft(reversed(lines))
        self.count -= len(lines)

    @property
    def one_by_one(self) -> bool:
        """Whether the next line is one that was given back."""
        return bool(self._ahead)


def _is_utf8(text: str) -> bool:
    return text.isascii() or _not_utf8(text) is None


def _not_utf8(line: str) -> str | None:
    try:
        line.encode()
    except UnicodeEncodeError as error:
        byte, place = ord(line[error.start]) - 0xDC00, len(line[: error.start].encode()) + 1
        return f"byte {place} of the line is 0x{byte:02x}, which is not UTF-8. Save the file as UTF-8."
    return None


class SplitRow(NamedTuple):
    """A row of cells, the line where it begins (from 1) and its lines; no cells if blank or if there is a problem."""

    number: int
    lines: list[Line]
    cells: list[str]
    problem: str | None


class RowSplitter:
    """The rows of CSV or TSV, in order; every line belongs to one. The first row with cells is the header."""

    def __init__(self, lines: LineReader, delimiter: str) -> None:
        self._lines, self._feed, self._delimiter = lines, _Feed(lines), delimiter
        self._reader = csv.reader(self._feed, delimiter=delimiter, strict=True)
        self._number, self._width = 1, 0

    def __iter__(self) -> RowSplitter:
        return self

    def __next__(self) -> SplitRow:
        """One row, also if it cannot be split."""
        taken = self._feed.taken = []
        cells, problem = list[str](), None
        try:
            cells = next(self._reader)
        except (csv.Error, InvalidValueError) as error:
            problem = f"the row cannot be split into cells ({error}). {_QUOTES}"
            if len(taken) > 1 or self._feed.ended:
                problem = _OPEN
        if len(taken) > 1:
            if problem is None and _is_swallowed(taken, self._width, self._delimiter):
                problem = _OPEN
            if problem is not None:
                self._feed.again.extendleft(reversed(taken[1:]))
                del taken[1:]
        for line in taken:
            if line.problem is not None:
                problem = line.problem
                break
        if problem is not None:
            cells = []
        found = SplitRow(self._number, taken, cells, problem)
        self._number += len(taken)
        self._width = self._width or len(cells)
        return found

    def take(self, most: int) -> tuple[int, list[list[str]]]:
        """The cells of at most so many rows, each of one line, and the line of the first; none if they must be read
        one by one."""
        first, lines = self._number, list[str]()
        if not self._feed.again:
            lines = self._lines.take(most)
        if not lines:
            return first, []
        try:
            rows = list(csv.reader(lines, delimiter=self._delimiter, strict=True))
        except csv.Error:
            rows = []
        if len(rows) < len(lines):  # a cell of several lines, or one that does not end
            self._lines.give_back(lines)
            return first, []
        self._number += len(lines)
        return first, rows


class _Feed:
    """Gives lines to a csv reader; ``taken`` are those of the current row, ``again`` those to read once more."""

    def __init__(self, lines: LineReader) -> None:
        self.lines, self.taken, self.again = lines, list[Line](), deque[Line]()
        self.ended = False

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if len(self.taken) == MAX_ROW_LINES:
            raise InvalidValueError
        line = self.again.popleft() if self.again else next(self.lines, None)
        self.ended = line is None
        if line is None:
            raise StopIteration
        self.taken.append(line)
        return line.text


def _is_swallowed(lines: list[Line], width: int, delimiter: str) -> bool:
    """Whether a row of several lines is rather many rows after an open quote, which a stray quote happens to close."""
    if len(lines) < 2 or len(lines) * (width - 1) < SWALLOWED:
        return False
    return all(len(line.text.split(delimiter)) == width for line in lines)
