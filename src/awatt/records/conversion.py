"""Convert other encodings, delimiters, JSON arrays and Excel into formats the readers accept."""

from __future__ import annotations

import codecs
import csv
import io

from awatt.errors import AwattError
from awatt.files import parse_json
from awatt.records.bounds import Meter
from awatt.records.formats import DELIMITERS, MAX_LINE, allow_long_cells, to_json
from awatt.records.parquet_jsonl import parquet_to_jsonl
from awatt.records.xlsx import xlsx_to_jsonl

CANDIDATES = (",", ";", "\t", "|")  # delimiters; of equally good ones the first
SNIFFED = 2**16  # characters at the beginning, from which the delimiter is guessed
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def to_readable(content: bytes, format: str, meter: Meter, most_rows: int | None = None) -> tuple[bytes, str]:
    """Convert text to UTF-8, a table to the delimiter of its format, and JSON arrays, Excel and Parquet to JSONL.

    Returns the bytes and their new format. Converts at most ``most_rows`` rows of Excel or Parquet. Other gzipped
    files are returned as they are.
    """
    if format == "xlsx":
        return xlsx_to_jsonl(content, meter, most_rows), "jsonl"
    if format in ("parquet", "parquet.gz"):
        return parquet_to_jsonl(content, format.endswith(".gz"), meter, most_rows), "jsonl"
    if format.endswith(".gz"):
        return content, format
    if format == "json":
        return _from_array(to_utf8(content)), "jsonl"
    content = to_utf8(content)
    if format not in DELIMITERS:
        return content, format
    return _with_delimiter(content, DELIMITERS[format]), format


def to_utf8(content: bytes) -> bytes:
    """The text in UTF-8. UTF-16 has a mark; what is not UTF-8 is read as Windows-1252, Latin-1 included.

    A few broken characters in a file that is otherwise UTF-8 stay as they are: the reader names their lines.
    """
    if content.startswith(UTF16):
        return content.decode("utf-16", errors="replace").encode()
    try:
        content.decode("utf-8")
        return content
    except UnicodeDecodeError:
        tried = content.decode("utf-8", errors="replace")
    letters = len(tried) - len(tried.encode("ascii", errors="ignore"))  # not of ASCII
    if letters > 2 * tried.count("\ufffd"):
        return content
    return content.decode("cp1252", errors="replace").encode()


def sniff_delimiter(text: str, usual: str) -> str:
    """The delimiter that splits the header into most columns, and nearly all rows into as many."""
    head = text[:SNIFFED]
    if len(text) > SNIFFED:
        head = head.rpartition("\n")[0] or head
    best, most = usual, 1
    for delimiter in (usual, *CANDIDATES):
        rows = _rows(head, delimiter)
        columns = len(rows[0]) if rows else 0
        if columns > most and sum(len(row) == columns for row in rows) >= 0.8 * len(rows):
            best, most = delimiter, columns
    return best


def _rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        with allow_long_cells():
            return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error:
        return []


def _with_delimiter(content: bytes, wanted: str) -> bytes:
    """The same table with another delimiter; unchanged if it has this one already."""
    text = content.decode("utf-8-sig", errors="surrogateescape")
    found = sniff_delimiter(text, wanted)
    if found == wanted:
        return content
    out = io.StringIO(newline="")
    try:
        with allow_long_cells():
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=found)
            csv.writer(out, delimiter=wanted, lineterminator="\n").writerows(rows)
    except csv.Error:  # the reader says which line
        return content
    return out.getvalue().encode("utf-8", errors="surrogateescape")


def _from_array(content: bytes) -> bytes:
    """The objects or texts of a JSON array, one per line."""
    if len(content) > MAX_LINE:
        size = f"{len(content) / 2**20:.0f} MB of JSON, but at most {MAX_LINE // 2**20} can be read at once"
        raise AwattError(f"the file has {size}. Write one object per line: jq -c '.[]' in.json > out.jsonl")
    try:
        found = parse_json(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise AwattError(f"the file is not JSON ({' '.join(str(error).split())}). Correct it.") from None
    if isinstance(found, dict):  # the array is often the only list of an object
        lists = [each for each in found.values() if isinstance(each, list)]
        found = lists[0] if len(lists) == 1 else found
    if not isinstance(found, list):
        raise AwattError('the file has no array of reviews. Write [{"text": "Good food."}, …], or one object per line.')
    rows = [{"text": each} if isinstance(each, str) else each for each in found]
    return "".join(to_json(row) + "\n" for row in rows).encode("utf-8", errors="replace")
