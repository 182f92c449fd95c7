"""Excel's .xlsx: the first sheet as JSONL, read in a stream and within bounds.

Only what a table of reviews needs, so no library: the file is a zip of XML, of which cells, shared texts and formats of
dates are read. A library would load it whole, and nothing would stop a small file that becomes gigabytes.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple
from xml.parsers import expat

from awatt.errors import AwattError
from awatt.records.bounds import CountedStream, Meter
from awatt.records.formats import to_json

Attributes = Mapping[str, str]
Cell = str | int | float | bool | None

WORKBOOK, RELATIONS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
STRINGS, STYLES = "xl/sharedStrings.xml", "xl/styles.xml"
#: numbers of the built-in formats that show dates or times
DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
NOT_A_DATE = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')  # parts of a format that are shown as they are, and colours
COLUMN = re.compile(r"[A-Z]+")
MAX_COLUMNS = 16_384  # Excel's
EPOCHS = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}
PORTION = 2**16  # bytes that are parsed at a time
MAX_DEPTH = 100  # of elements within each other: Excel needs some ten


class _BadFileError(Exception):
    """The file is not what it says it is."""


class _Workbook(NamedTuple):
    sheet: str  # the part with the first sheet
    from_1904: bool  # how dates are counted


def xlsx_to_jsonl(content: bytes, meter: Meter, most_rows: int | None = None) -> bytes:
    """The rows of the first sheet, one JSON object per line; the first row has the names of the columns.

    A column without a name is called ``column 3``, by its place, if a row has a value in it.
    """
    names: list[str] = []
    blocks: list[_Block] = []
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for number, row in enumerate(_table(archive, meter), 1):
                line = to_json(row).encode("utf-8", errors="replace") + b"\n"
                meter.add(rows=1, size=len(line))  # many columns make a long line of a short row
                if len(names) < len(row):
                    names = list(row)
                    blocks.append(_Block(len(names)))
                blocks[-1].add(line)
                if number == most_rows:
                    break
    except (_BadFileError, expat.ExpatError, ValueError, OverflowError) as error:
        raise AwattError(f"the file cannot be read as .xlsx ({error}). Save it again, or as CSV.") from None
    except (zipfile.BadZipFile, KeyError, zlib.error, EOFError, RuntimeError):  # encrypted, or packed in another way
        problem = "it is damaged, protected by a password, or no workbook"
        raise AwattError(f"the file cannot be read as .xlsx ({problem}). Save it again, or as CSV.") from None
    return b"".join(block.complete(names, meter) for block in blocks)


class _Block:
    """Consecutive lines that have the first ``n_columns`` of all columns; later ones were found after them."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns, self.n_lines, self.lines = n_columns, 0, io.BytesIO()

    def add(self, line: bytes) -> None:
        self.n_lines += 1
        self.lines.write(line)

    def complete(self, names: list[str], meter: Meter) -> bytes:
        """The lines with all columns, so that every format can store them."""
        missing = "".join(f", {to_json(name)}: null" for name in names[self.n_columns :]).encode(errors="replace")
        meter.add(size=len(missing) * self.n_lines)
        # A text in JSON has no line break of its own, so this is found at the end of each line only.
        return self.lines.getvalue().replace(b"}\n", missing + b"}\n")


def _table(archive: zipfile.ZipFile, meter: Meter) -> Iterator[dict[str, Cell]]:
    """Each row with text as an object of all columns found so far."""
    book = _read_workbook(archive, meter)
    names = set(archive.namelist())
    strings = _read_strings(archive, meter) if STRINGS in names else []
    dates = _read_date_styles(archive, meter) if STYLES in names else []
    header: dict[int, str] = {}
    for row in _rows(archive, book, strings, dates, meter):
        if not header:
            header = _name_columns(row)
            continue
        if unnamed := row.keys() - header.keys():
            header |= _name_columns(dict.fromkeys(unnamed, ""), header.values())
        yield {name: row.get(column) for column, name in header.items()}


def _name_columns(row: Mapping[int, Cell], known: Iterable[str] = ()) -> dict[int, str]:
    """By their places; a name that occurs again, or is ``known``, gets a number."""
    header: dict[int, str] = {}
    taken, times = set(known), Counter[str]()
    for column in sorted(row):
        name = wanted = " ".join(str(row[column]).split()) or f"column {column + 1}"
        while name in taken:
            times[wanted] += 1
            name = f"{wanted} {times[wanted] + 1}"
        taken.add(name)
        header[column] = name
    return header


def _parse(
    archive: zipfile.ZipFile,
    part: str,
    meter: Meter,
    start: Callable[[str, Attributes], None] = lambda name, attributes: None,
    end: Callable[[str], None] = lambda name: None,
    text: Callable[[str, str], None] = lambda name, data: None,
) -> Iterator[None]:
    """Parse a part of the archive; gives control back after each portion. Names come without their prefix.

    ``text`` is called with the name of the element, but not for phonetic guides (rPh), which repeat the text beside
    them.
    """
    inside: list[str] = []

    def open_element(name: str, attributes: Attributes) -> None:
        inside.append(name.rpartition(":")[2])
        if len(inside) > MAX_DEPTH:
            raise _BadFileError(f"more than {MAX_DEPTH} elements are nested")
        start(inside[-1], attributes)

    def read_text(data: str) -> None:
        if "rPh" not in inside:
            text(inside[-1], data)

    def refuse(*_: object) -> None:  # a document type could define texts that grow without end
        raise _BadFileError("it declares a document type")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = open_element
    parser.EndElementHandler = lambda name: end(inside.pop())
    parser.CharacterDataHandler = read_text
    with archive.open(part) as stream:
        counted = CountedStream(stream, meter)
        while data := counted.read(PORTION):
            parser.Parse(data)
            yield
        parser.Parse(b"", True)
        yield


def _read_workbook(archive: zipfile.ZipFile, meter: Meter) -> _Workbook:
    sheets: list[str] = []
    targets: dict[str, str] = {}
    from_1904 = [False]

    def start(name: str, attributes: Attributes) -> None:
        if name == "sheet" and attributes.get("state", "visible") == "visible":
            sheets.extend(value for key, value in attributes.items() if key.rpartition(":")[2] == "id")
        elif name == "workbookPr":
            from_1904[0] = attributes.get("date1904", "0") in ("1", "true")
        elif name == "Relationship":
            targets[attributes.get("Id", "")] = attributes.get("Target", "")

    for part in (WORKBOOK, RELATIONS):
        for _ in _parse(archive, part, meter, start):
            pass
    if not sheets or sheets[0] not in targets:
        raise _BadFileError("it has no sheet")
    target = targets[sheets[0]]
    return _Workbook(target[1:] if target.startswith("/") else f"xl/{target}", from_1904[0])


def _read_strings(archive: zipfile.ZipFile, meter: Meter) -> list[str]:
    """The texts that cells refer to, of several pieces with different fonts."""
    strings: list[str] = []
    pieces: list[str] = []

    def text(name: str, data: str) -> None:
        if name == "t":
            pieces.append(data)

    def end(name: str) -> None:
        if name == "si":
            strings.append("".join(pieces))
            pieces.clear()

    for _ in _parse(archive, STRINGS, meter, end=end, text=text):
        pass
    return strings


def _read_date_styles(archive: zipfile.ZipFile, meter: Meter) -> list[bool]:
    """Whether each style of a cell shows a date."""
    dates, styles, inside = set(DATE_FORMATS), list[int](), [""]

    def start(name: str, attributes: Attributes) -> None:
        if name == "numFmt":
            shown = NOT_A_DATE.sub("", attributes.get("formatCode", "")).lower()
            if any(letter in shown for letter in "ymdhs") and "general" not in shown:
                dates.add(int(attributes.get("numFmtId", "-1")))
        elif name in ("cellXfs", "cellStyleXfs"):
            inside[0] = name
        elif name == "xf" and inside[0] == "cellXfs":
            styles.append(int(attributes.get("numFmtId", "0")))

    for _ in _parse(archive, STYLES, meter, start):
        pass
    return [style in dates for style in styles]


def _rows(
    archive: zipfile.ZipFile, book: _Workbook, strings: list[str], dates: list[bool], meter: Meter
) -> Iterator[dict[int, Cell]]:
    """The cells of each row that has any, by their places."""
    ready: list[dict[int, Cell]] = []
    row: dict[int, Cell] = {}
    pieces: list[str] = []
    cell: list[str] = ["", ""]  # type and style
    place = [-1]

    def start(name: str, attributes: Attributes) -> None:
        if name == "row":
            row.clear()
            place[0] = -1
        elif name == "c":
            place[0] = _column(attributes.get("r", ""), place[0] + 1)
            cell[:] = attributes.get("t", "n"), attributes.get("s", "0")
            pieces.clear()

    def text(name: str, data: str) -> None:
        if name in ("v", "t"):
            pieces.append(data)

    def end(name: str) -> None:
        if name == "c":
            value = _value("".join(pieces), cell[0], strings, _is_date(cell[1], dates), book.from_1904)
            if value is not None and value != "":
                row[place[0]] = value
        elif name == "row" and row:
            ready.append(dict(row))

    for _ in _parse(archive, book.sheet, meter, start, end, text):
        yield from ready
        ready.clear()


def _column(reference: str, following: int) -> int:
    """From "C7" the number 2; without a reference, the place after the last cell."""
    letters = COLUMN.match(reference[:4])
    if letters is None:
        return min(following, MAX_COLUMNS)
    number = 0
    for letter in letters[0]:
        number = 26 * number + ord(letter) - 64
    return min(number, MAX_COLUMNS) - 1


def _is_date(style: str, dates: list[bool]) -> bool:
    number = int(style)
    return 0 <= number < len(dates) and dates[number]


def _value(text: str, kind: str, strings: list[str], is_date: bool, from_1904: bool) -> Cell:
    if kind == "s" and text.strip():
        number = int(text)
        if not 0 <= number < len(strings):
            raise _BadFileError(f"there is no text {number}")
        return strings[number]
    if kind in ("str", "inlineStr", "d"):
        return text
    if kind == "b":
        return text == "1"
    if kind in ("e", "s") or not text.strip():
        return None
    value = float(text)
    if is_date:
        with suppress(OverflowError):  # beyond the calendar: the number itself
            return _date(value, from_1904)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _date(days: float, from_1904: bool) -> str:
    """A day as 2024-05-31, a moment as 2024-05-31 18:30:00, a time of day as 18:30:00."""
    moment = EPOCHS[from_1904] + timedelta(seconds=round(days * 86_400))
    if 0 <= days < 1:
        return moment.time().isoformat()
    return moment.date().isoformat() if days == int(days) else moment.isoformat(" ")
