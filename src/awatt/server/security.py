"""Access control, applied to every request before any route. Plain ASGI middleware, so that nothing bypasses it.

It checks, in this order: the number of requests at once, Host against an exact list (DNS rebinding), the token or the
sign-in, Origin on every change, and the size, duration and type of the body. There is no CORS: no other page may read a
response.
"""

from __future__ import annotations

from contextlib import suppress
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import parse_qs, quote

from awatt.server.access import Access, is_equal
from awatt.server.body import (
    UPLOADS,
    App,
    BodyError,
    Disconnected,
    Message,
    Receive,
    Scope,
    Send,
    check_type,
    deliver,
    read_body,
)
from awatt.server.limits import Limits
from awatt.server.responses import error_json

PUBLIC_PATHS = ("/health/live", "/health/ready")  # a supervisor has no token
#: what the page that asks for the token consists of; anyone can read these in the package
SIGN_IN_PATHS = ("/static/sign-in.js", "/static/style.css", "/static/icon.svg")
SIGN_IN = Template((Path(__file__).parent / "static" / "sign-in.html").read_text(encoding="utf-8"))
PAGE_PATHS = ("/", "/static/")  # a browser requests these without the page's key; they contain no data
SAFE_METHODS = ("GET", "HEAD")
#: requests besides those that a read-only sign-in may send: they change nothing of the project
READ_ONLY_REQUESTS = (("POST", "/v1/project/words"), ("DELETE", "/v1/session"))
KEY_HEADER = "x-awatt-key"
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
_ENCODED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
LINK_USED = (
    "This link has been used already, has expired, or belongs to an earlier start of awatt serve. A link opens the "
    "page once, in one browser. Restart awatt serve, or request another link: POST /v1/link with the token."
)
NEEDS_TOKEN = "a token is needed. Open the link that awatt serve printed, or send Authorization: Bearer TOKEN."
WRONG_TOKEN = (
    "the token is wrong. Send Authorization: Bearer TOKEN with the one that awatt serve printed at its start, "
    "or that AWATT_TOKEN had then."
)

Refusal = tuple[int, str, str]  # status, code, message


class ClosedError(Exception):
    """Nothing can be sent any more."""


class Guard:
    """Passes on the requests that are allowed, and adds the security headers to every response."""

    def __init__(self, app: App, access: Access, limits: Limits) -> None:
        self.app, self.access, self.limits = app, access, limits
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            return
        send = _with_security_headers(send)
        if self._running >= self.limits.requests:
            await respond(
                send, 503, "busy", f"{self._running} requests are being served already. Try again in a moment."
            )
            return
        self._running += 1
        try:
            await self._serve(scope, receive, send)
        except ClosedError:
            pass
        finally:
            self._running -= 1

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        refusal = await self._refusal(scope, headers)
        signed_out = refusal is not None and refusal[0] == 401
        again = refusal is None and _parameter(scope, "sign-in") is not None
        if (signed_out or again) and _asks_for_page(scope, headers):
            await respond_sign_in(send, "This page needs a token.")
            return
        if refusal is not None:
            await respond(send, *refusal)
            return
        link = _link(scope)
        if link is not None:
            await self._open_page(send, link, scope, headers)
            return
        max_bytes = self.limits.body if scope["path"] in UPLOADS else self.limits.json_body
        try:
            declared = headers.get("content-length", "0")
            body = await read_body(receive, declared, max_bytes, self.limits.body_seconds)
            check_type(scope["path"], headers.get("content-type", ""), body)
        except BodyError as error:
            await respond(send, error.status, error.code, str(error))
        except Disconnected:
            pass
        else:
            # The app has logged the type and responded; uvicorn would log the message, which may quote a review.
            with suppress(Exception):
                await self.app(scope, deliver(body, receive), send)

    async def _refusal(self, scope: Scope, headers: dict[str, str]) -> Refusal | None:
        host, path, method, access = headers.get("host", ""), scope["path"], scope["method"], self.access
        if host.lower() not in access.hosts:
            known = ", ".join(sorted(access.hosts))
            message = f"the request is for the host {host[:100]!r}, but this server accepts {known}. See --allow-host."
            return 421, "wrong_host", message
        if path in PUBLIC_PATHS + SIGN_IN_PATHS or _link(scope) is not None:
            return None
        given = headers.get("authorization", "")
        bearer = is_equal(given, f"Bearer {access.token}")
        session = None if bearer else access.find_session(_cookie(headers, access.cookie))
        key = headers.get(KEY_HEADER, "")
        is_page = path == PAGE_PATHS[0] or path.startswith(PAGE_PATHS[1])
        if not bearer and (session is None or not (is_page or is_equal(key, session.key))):
            if given and not await access.slow_down():
                return 429, "too_many_guesses", "too many wrong tokens. Try again in a minute."
            return 401, "unauthorized", WRONG_TOKEN if given else NEEDS_TOKEN
        origin = headers.get("origin")
        if method not in SAFE_METHODS and origin not in access.origins and not (bearer and origin is None):
            message = f"the request comes from {str(origin)[:100]!r}, which is not this server's origin."
            return 403, "wrong_origin", f"{message} Behind a proxy, name it with --public-url."
        if session and session.read_only and method not in SAFE_METHODS and (method, path) not in READ_ONLY_REQUESTS:
            return 403, "read_only", "this link is read-only: it shows the project, but changes nothing."
        if "\0" in path:  # which the file system takes for the end of a name
            return 404, "no_such_path", f"there is no {path[:100]!r} here. See /openapi.json."
        scope["awatt.session"] = session
        return None

    async def _open_page(self, send: Send, link: str, scope: Scope, headers: dict[str, str]) -> None:
        present = self.access.find_session(_cookie(headers, self.access.cookie))
        in_browser = _asks_for_page(scope, headers)
        used = self.access.use_link(link, present)
        if used is None:
            if not await self.access.slow_down():
                await respond(send, 429, "too_many_guesses", "too many wrong links. Try again in a minute.")
            elif in_browser:
                await respond_sign_in(send, LINK_USED)
            else:
                await respond(send, 401, "link_used", LINK_USED)
            return
        # The part after # stays in the browser, and only pages of this origin, port included, can read it there.
        # A browser that is signed in already has its key, which nobody else is told.
        session, name = used
        project, view = name or _parameter(scope, "project"), _parameter(scope, "view")
        parts = [] if session is present else [f"key={session.key}"]
        given = "&".join([*parts, *([f"view={quote(view, safe='')}"] if view else [])])
        cookie = [] if session is present else [(b"set-cookie", self.access.set_cookie(session).encode())]
        shown = f"?project={quote(project, safe='')}" if project else ""
        await respond(send, 303, "", "", [(b"location", f"/{shown}#{given}".encode()), *cookie])


def _link(scope: Scope) -> str | None:
    """The token of a link that opens the page. Only GET uses it: programs that check links send HEAD."""
    return _parameter(scope, "token") if (scope["method"], scope["path"]) == ("GET", "/") else None


def _parameter(scope: Scope, name: str) -> str | None:
    given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True).get(name, [])
    return given[0] if given else None


def _asks_for_page(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether a browser opens the page, rather than a program that wants JSON."""
    return scope["path"] == "/" and scope["method"] == "GET" and "text/html" in headers.get("accept", "")


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _cookie(headers: dict[str, str], name: str) -> str:
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for key, _, value in pairs if key == name), "")


def _with_security_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            present = {name.lower() for name, _ in given}
            message = {**message, "headers": given + [pair for pair in _ENCODED if pair[0] not in present]}
        try:
            await send(message)
        except Exception as error:  # the protocol has already answered: the rest of the request was not valid HTTP
            raise ClosedError from error

    return wrapped


async def respond(
    send: Send, status: int, code: str, message: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send an error, or with an empty message nothing but headers."""
    body = error_json(message, code) if message else b""
    sent = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *(headers or [])]
    sent += [(b"connection", b"close")] if status in (408, 413) else []  # the rest of the body is not read
    sent += {503: [(b"retry-after", b"1")], 429: [(b"retry-after", b"60")]}.get(status, [])
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def respond_sign_in(send: Send, reason: str) -> None:
    """Send the page that asks for the token."""
    body = SIGN_IN.substitute(reason=escape(reason)).encode()
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
