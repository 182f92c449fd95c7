"""Access control, applied to every request before any route. Plain ASGI middleware, so that nothing bypasses it.

It checks, in this order: Host against an exact list (DNS rebinding), the token or the cookie, Origin on every change,
and the size and duration of the body. There is no CORS: no other page may read a response.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from awatt.server.limits import Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PUBLIC_PATHS = ("/health/live", "/health/ready")  # a supervisor has no token
SAFE_METHODS = ("GET", "HEAD")
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LINK_USED = (
    "This link has been used already, or belongs to an earlier start of awatt serve. A link opens the page once, in "
    "one browser. Restart awatt serve, or request another link: POST /v1/link with the token."
)


@dataclass
class Access:
    """The secrets of one start of the server, and the host names that it accepts."""

    token: str  # of the API
    hosts: frozenset[str]  # "127.0.0.1:8377"
    cookie: str = "awatt"  # its name: a host's ports share cookies, so it contains the port
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    links: set[str] = field(default_factory=set)

    def new_link(self) -> str:
        """A secret that opens the page once."""
        link = secrets.token_urlsafe(24)
        self.links.add(link)
        return link

    def use_link(self, given: str) -> bool:
        """Whether the link is valid. It works once."""
        for link in self.links:
            if hmac.compare_digest(link.encode(), given.encode()):
                self.links.discard(link)
                return True
        return False


class Guard:
    """Passes on the requests that are allowed, and adds the security headers to every response."""

    def __init__(self, app: App, access: Access, limits: Limits) -> None:
        self.app, self.access, self.limits = app, access, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            return
        send = _with_security_headers(send)
        headers = _headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _respond(send, *refusal)
            return
        link = _link(scope)
        if link is not None:
            await self._open_page(send, link)
            return
        upload = headers.get("content-type", "").startswith("application/octet-stream")
        max_bytes = self.limits.body if upload else self.limits.json_body
        # The app has logged the type and responded; uvicorn would log the message, which may quote a review.
        with suppress(Exception):
            await _BodyReader(self.app, max_bytes, self.limits.body_seconds)(scope, headers, receive, send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host, path, method = headers.get("host", ""), scope["path"], scope["method"]
        if host not in self.access.hosts:
            known = ", ".join(sorted(self.access.hosts))
            return (
                421,
                f"the request is for the host {host[:100]!r}, but this server accepts {known}. See --allow-host.",
            )
        if path in PUBLIC_PATHS or _link(scope) is not None:
            return None
        bearer = _equal(headers.get("authorization", ""), f"Bearer {self.access.token}")
        if not bearer and not _equal(_cookie(headers, self.access.cookie), self.access.session):
            return (
                401,
                "a token is needed. Open the link that awatt serve printed, or send Authorization: Bearer TOKEN.",
            )
        origin = headers.get("origin")
        if method not in SAFE_METHODS and origin not in self._origins() and not (bearer and origin is None):
            return 403, f"the request comes from {str(origin)[:100]!r}, which is not this server's origin."
        return None

    def _origins(self) -> set[str]:
        return {f"http://{host}" for host in self.access.hosts}

    async def _open_page(self, send: Send, link: str) -> None:
        if not self.access.use_link(link):
            await _respond(send, 401, LINK_USED)
            return
        cookie = f"{self.access.cookie}={self.access.session}; HttpOnly; SameSite=Strict; Path=/"
        await _respond(send, 303, "", [(b"location", b"/"), (b"set-cookie", cookie.encode())])


def _link(scope: Scope) -> str | None:
    """The token of a link that opens the page."""
    given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    return given[0] if scope["path"] == "/" and given else None


class _BodyReader:
    """Passes a request on if its body is small enough and arrives in time."""

    def __init__(self, app: App, max_bytes: int, seconds: float) -> None:
        self.app, self.max_bytes, self.seconds = app, max_bytes, seconds

    async def __call__(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> None:
        declared = headers.get("content-length", "0")
        if not declared.isdigit():
            await _respond(send, 400, f"Content-Length is {declared[:40]!r}, but must be a number.")
            return
        if int(declared) > self.max_bytes:
            await _respond(send, 413, self._too_large())
            return
        # The body is read completely before the route runs, so that a refusal can still be sent as a response.
        loop = asyncio.get_running_loop()
        end = loop.time() + self.seconds
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                message = await asyncio.wait_for(receive(), max(0.0, end - loop.time()))
            except TimeoutError:
                await _respond(send, 408, f"the body did not arrive within {self.seconds:g} seconds.")
                return
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.max_bytes:
                await _respond(send, 413, self._too_large())
                return
            if not message.get("more_body", False):
                break
        body = b"".join(parts)
        delivered = False

        async def receive_body() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, receive_body, send)

    def _too_large(self) -> str:
        return f"the body is larger than {self.max_bytes:,} bytes, the limit. Send it in parts."


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _cookie(headers: dict[str, str], name: str) -> str:
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for key, _, value in pairs if key == name), "")


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _with_security_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", [])}
            extra = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in present]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return wrapped


async def _respond(send: Send, status: int, error: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    body = json.dumps({"error": error}).encode() if error else b""
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    closing = [(b"connection", b"close")] if status in (408, 413) else []  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *closing, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
