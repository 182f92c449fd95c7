"""A reader for each format: it yields blocks of rows, and reports or raises errors, all in the order of the file."""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice, repeat

from awatt.errors import plural
from awatt.files import parse_json
from awatt.records.formats import (
    DELIMITERS,
    STANDARD_STREAM,
    InvalidValueError,
    allow_long_cells,
    short_repr,
    to_json,
)
from awatt.records.lines import LineReader, RowSplitter
from awatt.records.parquet import read_parquet
from awatt.records.source import Block, Source

CORRECT = "Correct it, or remove the row."
_FIRST_LINES = 3  # of a pipe, which show whether it is JSON
_BETWEEN = int.from_bytes(os.urandom(8))
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # written as JSON escapes; one alone is an error


@contextmanager
def _open_lines(source: Source) -> Iterator[LineReader]:
    # surrogateescape: a bad byte affects its own line only; newline="": line ends within cells are kept
    encoding = "utf-8-sig" if source.part is None or source.part.at_start else "utf-8"
    text = io.TextIOWrapper(source.open(), encoding=encoding, errors="surrogateescape", newline="")
    source.opened.callback(text.detach)  # otherwise closing it would close stdin
    lines = LineReader(text)
    try:
        yield lines
    except (OSError, EOFError, zlib.error) as error:
        raise source.read_error(error, lines.count + 1) from error


def _line_blocks(source: Source) -> Iterator[tuple[Sequence[int], list[str]]]:
    """Lines with their numbers; a line that cannot be used is reported."""
    with _open_lines(source) as lines:
        while True:
            first = lines.count + 1
            block = lines.take(source.batch_size)
            if block:
                yield range(first, first + len(block)), block
                continue
            for line in lines:
                if line.problem:
                    source.on_error(source.error(line.problem, lines.count))
                else:
                    yield [lines.count], [line.text]
                if not lines.one_by_one:
                    break
            else:
                return


def _read_text(source: Source) -> Iterator[Block]:
    for numbers, lines in _line_blocks(source):
        rows = [(number, line) for number, line in zip(numbers, lines, strict=True) if not line.isspace()]
        yield Block(
            [number for number, _ in rows],
            [{source.text_column: line.rstrip("\r\n")} for _, line in rows],
            sum(map(len, lines)),
        )


def _read_json(source: Source) -> Iterator[Block]:
    begins = source.path == STANDARD_STREAM and source.part is None
    for numbers, lines in _line_blocks(source):
        if begins:
            _check_beginning(source, lines)
            begins = False
        size, good, rows = sum(map(len, lines)), list[int](), list[dict[str, object]]()
        together = _parse_together(lines)
        if together is not None:
            yield Block(numbers, together, size)
            continue
        for number, line in zip(numbers, lines, strict=True):
            advice = "Each line must be one JSON object."
            try:
                row = parse_json(line)
                if not isinstance(row, dict):
                    raise InvalidValueError('this is JSON, but not an object such as {"text": "Good food."}')
                if "\\u" in line:
                    to_json(row).encode()  # fails for an unpaired surrogate, which tokenizers do not accept
            except json.JSONDecodeError as error:
                if line.isspace():
                    continue
                problem = f"invalid JSON at character {error.colno} ({error.msg})"
            except UnicodeEncodeError as error:
                problem = f"contains an unpaired surrogate ({error.object[error.start]!r})"
                advice = CORRECT
            except InvalidValueError as error:
                problem = str(error)
            except (ValueError, RecursionError) as error:
                problem, advice = str(error), CORRECT
            else:
                good.append(number)
                rows.append(row)
                continue
            yield Block(good, rows, 0)
            good, rows = [], []
            source.on_error(source.error(f"{problem}: {short_repr(line.strip())}. {advice}", number))
        yield Block(good, rows, size)


def _check_beginning(source: Source, lines: Sequence[str]) -> None:
    """Raise if none of the first lines of a pipe can be an object: rather one clear error than one per line."""
    first = list(islice(filter(None, map(str.strip, lines)), _FIRST_LINES))
    if first and not any(line.startswith("{") for line in first):
        kind = next((kind for kind, delimiter in DELIMITERS.items() if delimiter in first[0]), "txt")
        found = f"the input begins with {short_repr(first[0])}, which is not a JSON object"
        raise source.error(f"{found}. Add --format {kind} if that is its format.")


def _parse_together(lines: list[str]) -> list[dict[str, object]] | None:
    """All lines with one call, which is faster; None if they must be looked at one by one.

    A number that no file can contain on purpose stands between them: broken lines cannot complete each other.
    """
    text = f",{_BETWEEN},".join(lines)
    if _SURROGATE.search(text):
        return None
    try:
        found = parse_json(f"[{text}]")
    except (ValueError, RecursionError):
        return None
    rows: list[dict[str, object]] = found[::2]
    whole = found[1::2] == [_BETWEEN] * (len(lines) - 1) and len(rows) == len(lines)
    return rows if whole and set(map(type, rows)) == {dict} else None


def _read_delimited(source: Source, delimiter: str) -> Iterator[Block]:
    source.opened.enter_context(allow_long_cells())
    with _open_lines(source) as lines:
        rows = RowSplitter(lines, delimiter)
        header = next((row for row in rows if row.cells or row.problem), None)
        if header is None:
            raise source.error("the file is empty, but its first line must name the columns.", 1)
        if header.problem:  # raise: no row can be read without the header
            raise source.error(header.problem, header.number)
        names = header.cells
        source.check_columns(names, header.number)
        source.on_columns(names)
        while True:
            first, block = rows.take(source.batch_size)
            if block:
                yield from _rows_of_cells(source, names, range(first, first + len(block)), block, delimiter)
                continue
            for number, taken, cells, problem in rows:
                if problem:
                    bad = next((place for place, line in enumerate(taken) if line.problem), 0)
                    source.on_error(source.error(problem, number + bad))
                else:
                    yield from _rows_of_cells(source, names, [number], [cells], delimiter)
                if not lines.one_by_one:
                    break
            else:
                return


def _rows_of_cells(
    source: Source, names: list[str], numbers: Sequence[int], block: list[list[str]], delimiter: str
) -> Iterator[Block]:
    """The rows of a table that have as many cells as the header; blank ones are skipped, others are reported."""
    width, size = len(names), sum(map(len, chain.from_iterable(block)))
    if set(map(len, block)) == {width}:
        yield Block(numbers, list(map(dict, map(zip, repeat(names), block))), size)
        return
    lines, rows = list[int](), list[dict[str, object]]()
    for number, cells in zip(numbers, block, strict=True):
        if len(cells) == width:
            lines.append(number)
            rows.append(dict(zip(names, cells, strict=True)))
        elif cells:
            yield Block(lines, rows, 0)
            lines, rows = [], []
            found = f"found {plural(len(cells), 'cell')}, but the header names {plural(width, 'column')}"
            advice = f"Put a cell that contains {delimiter!r} in double quotes."
            if len(cells) < width:
                advice = "Add the missing cells, or remove the row."
            source.on_error(source.error(f"{found}: {short_repr(delimiter.join(cells))}. {advice}", number))
    yield Block(lines, rows, size)


READERS: dict[str, Callable[[Source], Iterator[Block]]] = {
    "jsonl": _read_json,
    **{kind: partial(_read_delimited, delimiter=delimiter) for kind, delimiter in DELIMITERS.items()},
    "parquet": read_parquet,
    "txt": _read_text,
}
