"""Requests that must be refused, or must do no harm: cases for the tests and for ``benchmarks/attacks.py``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

JSON = {"content-type": "application/json"}
BYTES = "application/octet-stream"
NASTY = (
    "'; DROP TABLE aspects; --",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "%00",
    "\r\nSet-Cookie: a=b",
    "{{7*7}}",
    "${jndi:ldap://127.0.0.1/a}",
    "‮" * 50,
    "a" * 100,
)


@dataclass(frozen=True)
class Attack:
    """A request, and the statuses that it may get. TOKEN, HOST and ORIGIN in headers stand for the server's own."""

    name: str
    method: str
    path: str
    statuses: tuple[int, ...]
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _allowed(name: str, method: str, path: str, statuses: tuple[int, ...], body: bytes = b"", **more: str) -> Attack:
    """With the token."""
    headers = {"authorization": "Bearer TOKEN", **JSON, **{key.replace("_", "-"): value for key, value in more.items()}}
    return Attack(name, method, path, statuses, headers, body)


PRIVATE = (
    "/",
    "/v1/project",
    "/v1/project/export/results.csv",
    "/static/app.js",
    "/openapi.json",
    "/v1/project/version",
)
CHANGES = (("POST", "/v1/aspects"), ("DELETE", "/v1/project"), ("POST", "/v1/project/undo"), ("POST", "/v1/link"))
FOREIGN_HOSTS = ("evil.example", "127.0.0.1", "127.0.0.1:80", "HOST.evil.example", "", "127.0.0.1:99999", "[::]:0")
FOREIGN_ORIGINS = ("http://evil.example", "null", "https://HOST", "http://HOST.evil.example", "http://127.0.0.1:1", "")
TRAVERSALS = (
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/app.py",
    "/static/%2e%2e%2f%2e%2e%2frun.py",
    "/static//etc/passwd",
    "/static/%5c..%5capp.py",
    "/static/app.js%00.css",
    "/v1/project/export/..%2f..%2fproject.sqlite",
    "/v1/project/export/project.sqlite",
    "/v1/%2e%2e/health",
    "//v1/project",
    "/.git/config",
)
BAD_JSON = (b"{", b"\xff", b"[" * 9000, b"{'texts': []}", b'{"texts": ["a"],}', b"NaN,", b'{"texts": ["a"] "b"}', b"\0")
BAD_BODIES: tuple[Any, ...] = (
    {},
    [],
    None,
    5,
    {"texts": None},
    {"texts": "a"},
    {"texts": [None]},
    {"texts": [["a"]]},
    {"texts": ["a"], "threshold": -1},
    {"texts": ["a"], "threshold": 1e400},
    {"texts": ["a"], "threshold": [0.5]},
    {"texts": ["a"], "threshold": {"food": None}},
    {"texts": ["a"], "words": "perhaps"},
    {"texts": ["a"], "__proto__": {}},
    {"texts": ["\ud800"]},
    {"texts": ["a" * 20_001]},
    {"texts": ["a"] * 2_001},
)
TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "")

REQUESTS = [
    *(Attack(f"host {host!r}", "GET", path, (400, 421), {"host": host, "authorization": "Bearer TOKEN"})
      for host in FOREIGN_HOSTS for path in ("/", "/v1/project", "/health/live", "/?token=x")),
    *(Attack(f"no token for {path}", "GET", path, (401,)) for path in PRIVATE),
    *(Attack(f"no token for {path}", method, path, (401,), {"origin": "ORIGIN"}) for method, path in CHANGES),
    *(Attack(f"wrong secret {name}", "GET", "/v1/project", (401, 429), {name: value}) for name, value in (
        ("authorization", "Bearer wrong"), ("authorization", "TOKEN"), ("authorization", "bearer TOKENx"),
        ("authorization", "Basic dTpw"), ("cookie", "awatt_8377="), ("cookie", "awatt_8377=x; awatt=TOKEN"),
        ("x-awatt-key", "TOKEN"))),
    Attack("a link that was guessed", "GET", "/?token=guess", (401, 429)),
    *(_allowed(f"{method} {path} from {origin!r}", method, path, (403,), origin=origin)
      for method, path in CHANGES for origin in FOREIGN_ORIGINS),
    _allowed("a preflight", "OPTIONS", "/v1/aspects", (403,), origin="http://evil.example"),
    *(_allowed(f"path {path}", "GET", path, (404,)) for path in TRAVERSALS),
    *(_allowed(f"broken JSON {body[:12]!r}", "POST", "/v1/detect", (400,), body) for body in BAD_JSON),
    *(_allowed(f"body {str(body)[:40]}", "POST", "/v1/detect", (400, 422), _json(body)) for body in BAD_BODIES),
    *(_allowed(f"type {kind!r}", "POST", "/v1/detect", (415,), b'{"texts": []}', content_type=kind) for kind in TYPES),
    *(_allowed(f"an upload as {kind!r}", "POST", "/v1/project/reviews?format=txt", (413, 415), b"a", content_type=kind)
      for kind in TYPES),
    *(_allowed(f"an aspect named {text[:20]!r}", "POST", "/v1/aspects", (200, 409), _json({"name": text}))
      for text in NASTY),
    *(_allowed(f"an aspect's id {key}", "PATCH", f"/v1/aspects/{key}", (404, 422), b'{"name": "x"}')
      for key in ("0", "-1", "999", "9" * 40, "1e3", "x", "1;drop", "%F0%9F%98%80")),
    *(_allowed(f"an export {kind}", "GET", f"/v1/project/export/{kind}", (404,)) for kind in ("x", "%2e", "a" * 500)),
    *(_allowed(f"a format {kind}", "POST", f"/v1/project/columns?format={kind}", (422,), b"a", content_type=BYTES)
      for kind in ("exe", "../../etc/passwd", "csv.gz.gz", "%00", "a" * 500)),
    _allowed("a body larger than the limit", "POST", "/v1/detect", (413,), b" " * (8 * 2**20 + 1)),
    _allowed("a length that is no number", "POST", "/v1/detect", (400,), content_length="-5"),
    _allowed("a length that is not true", "POST", "/v1/detect", (400, 413), content_length="9" * 30),
    _allowed("words of no sentence", "POST", "/v1/project/words", (422,), _json({"ids": [1] * 501})),
]  # fmt: skip

#: Bytes that are no request: an error or a closed connection.
RAW = (
    b"\0" * 1000,
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    b"GET http://127.0.0.1/v1/project HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n",
    b"POST /v1/detect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /v1/project HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,  # TLS
)
