"""Uploaded files that are small and become large: cases for the tests and for ``benchmarks/attacks.py``.

Each is made for the number of bytes that it becomes. The server must respond, with an error or not, and stay small.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from typing import Any


def parquet(table: Any, **options: Any) -> bytes:
    """The bytes of a Parquet file."""
    from pyarrow.parquet import write_table

    stream = io.BytesIO()
    write_table(table, stream, compression="zstd", **options)
    return stream.getvalue()


def _one_text_often(size: int) -> bytes:
    import pyarrow as pa

    text = "a" * min(1_000_000, size // 100)
    indices = pa.array([0] * (size // len(text)), pa.int32())
    return parquet(pa.table({"text": pa.DictionaryArray.from_arrays(indices, pa.array([text]))}))


def _one_list_often(size: int) -> bytes:
    import pyarrow as pa

    text = "a" * min(1_000_000, size // 100)
    rows = size // len(text)
    often = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    tags = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), often)
    return parquet(pa.table({"text": ["a"] * rows, "tags": tags}))


def _one_long_list(size: int) -> bytes:
    import pyarrow as pa

    items = pa.ListArray.from_arrays([0, size // 8], pa.nulls(size // 8, pa.int8()))
    return parquet(pa.table({"text": ["a"], "items": items}))


def _many_rows(size: int) -> bytes:
    import pyarrow as pa

    return parquet(pa.table({"text": pa.nulls(min(size // 8, 20_000_000), pa.string())}))


def _long_value(size: int) -> bytes:
    import pyarrow as pa

    return parquet(pa.table({"text": ["a" * min(size, 1_000_000_000)]}))


def _one_long_list_of_numbers(size: int) -> bytes:
    import pyarrow as pa

    numbers = pa.repeat(pa.scalar(0.5), min(size // 8, 2**26))
    return parquet(pa.table({"text": ["a"], "items": pa.ListArray.from_arrays([0, len(numbers)], numbers)}))


def _same_bytes_often(size: int) -> bytes:
    """Values of one length, of which Arrow decodes 1,024 at once."""
    import pyarrow as pa

    width = min(1_000_000, size // 100)
    values = pa.array([b"a" * width], pa.binary(width))
    often = pa.DictionaryArray.from_arrays(pa.array([0] * (size // width), pa.int32()), values)
    return parquet(pa.table({"text": pa.nulls(len(often), pa.string()), "bytes": often}), store_schema=False)


def _growing_texts(size: int) -> bytes:
    """Each text is the one before and a letter more, and only the letter is stored."""
    import pyarrow as pa

    width = min(1_000_000, size // 100)
    texts = ["a" * width + "b" * number for number in range(min(size, 1_000_000_000) // width)]
    return parquet(pa.table({"text": texts}), use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})


def _damaged(size: int) -> bytes:
    content = bytearray(_one_text_often(size))
    content[len(content) // 3] ^= 0xFF
    content[-20] ^= 0xFF
    return bytes(content)


def _zip(part: bytes, size: int, head: bytes = b"") -> bytes:
    """Many times the same part, compressed."""
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=6, mtime=0) as zipped:
        zipped.write(head)
        block = part * max(1, 2**20 // len(part))
        for _ in range(max(1, size // len(block))):
            zipped.write(block)
    return stream.getvalue()


def _columns(count: int) -> bytes:
    return b",".join(b"c%d" % number for number in range(count)) + b"\n1\n"


#: the format, and what makes the file
UPLOADS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "Parquet, one text in every row": ("parquet", _one_text_often),
    "Parquet, one list in every row": ("parquet", _one_list_often),
    "Parquet, one list of all values": ("parquet", _one_long_list),
    "Parquet, rows of nothing": ("parquet", _many_rows),
    "Parquet, one long text": ("parquet", _long_value),
    "Parquet, one list of numbers": ("parquet", _one_long_list_of_numbers),
    "Parquet, the same bytes in every row": ("parquet", _same_bytes_often),
    "Parquet, texts that grow": ("parquet", _growing_texts),
    "Parquet, damaged": ("parquet", _damaged),
    "Parquet in gzip": ("parquet.gz", lambda size: gzip.compress(_one_text_often(size))),
    "zeros as Parquet in gzip": ("parquet.gz", lambda size: _zip(b"\0", size)),
    "CSV in gzip": ("csv.gz", lambda size: _zip(b"aaaaaaa,b\n", size, b"text,more\n")),
    "CSV in gzip, a quote never closed": ("csv.gz", lambda size: _zip(b"aaaaaaa,b\n", size, b'text,more\n"')),
    "CSV in gzip, rows too short": ("csv.gz", lambda size: _zip(b"a\n", size, b"text,more\n")),
    "CSV in gzip, blank rows": ("csv.gz", lambda size: _zip(b"\n", size, b"text,more\n")),
    "CSV in gzip, a header without end": ("csv.gz", lambda size: _zip(b"a", size)),
    "CSV, very many columns": ("csv", lambda size: _columns(min(size // 8, 2_000_000))),
    "CSV, one column very often": ("csv", lambda size: b"text," * min(size // 5, 2_000_000) + b"x\n1\n"),
    "text in gzip, one line": ("txt.gz", lambda size: _zip(b"a", size)),
    "text in gzip, blank lines": ("txt.gz", lambda size: _zip(b"\n", size)),
    "text in gzip, short lines": ("txt.gz", lambda size: _zip(b"a b.\n", size)),
    "text, zipped twice": ("txt.gz", lambda size: gzip.compress(_zip(b"a b.\n", size))),
    "JSONL in gzip, no JSON": ("jsonl.gz", lambda size: _zip(b"x\n", size, b'{"text": "a"}\n')),
    "JSONL in gzip, numbers": ("jsonl.gz", lambda size: _zip(b'{"text": 5}\n', size)),
    "JSONL, deeply nested": ("jsonl", lambda size: b'{"text": "a", "x": ' + b"[" * min(size, 500_000) + b"\n"),
    "JSONL, nested within limits": ("jsonl", lambda size: b'{"text": "a", "x": ' + b"[" * 900 + b"]" * 900 + b"}\n"),
    "JSONL, very many keys": (
        "jsonl",
        lambda size: json.dumps({"text": "a", **{str(n): n for n in range(min(size // 16, 500_000))}}).encode() + b"\n",
    ),
    "gzip, cut short": ("csv.gz", lambda size: _zip(b"aaaaaaa,b\n", size, b"text,more\n")[:-20]),
}
