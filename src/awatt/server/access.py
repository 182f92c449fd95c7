"""Who may do what: the token of the API, links that open the page once, and the sign-ins that they start.

A browser sends the cookie of 127.0.0.1 to every port of it, hence to any other program that serves a page there. So the
cookie alone opens nothing but the empty page: each request for data also needs the page's key, which the page keeps in
the storage of its origin, port included, and sends as a header.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar
from urllib.parse import urlsplit

from awatt.errors import AwattError

LINK_SECONDS = 3600.0  # for a printed link to be opened
READ_ONLY_SECONDS = 7 * 24 * 3600.0  # that a read-only link can be opened, by everyone who has it
SESSION_SECONDS = 24 * 3600.0  # that a sign-in lasts
MAX_KEPT = 200  # links, and sign-ins, at a time, and as many read-only ones; the oldest ends when there are more
FREE_GUESSES = 5  # wrong tokens per minute that are answered at once
GUESS_SECONDS = 1.0  # that each further one waits
MAX_WAITING_GUESSES = 32  # beyond that they are refused with 429
MIN_TOKEN_LENGTH = 16  # characters of a token that the user chose
MIN_DISTINCT = 8  # different characters in it


@dataclass(frozen=True)
class Session:
    """A browser that is signed in: both secrets are needed."""

    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    read_only: bool = False  # can look at everything and change nothing
    project: str = ""  # the id of the only project that a read-only sign-in sees
    ends: float = field(default_factory=lambda: time.monotonic() + SESSION_SECONDS)


@dataclass(frozen=True)
class Link:
    """A link that opens the page: once, or any number of times if it is read-only."""

    ends: float
    read_only: bool = False
    project: str = ""  # of a read-only link: its id,
    name: str = ""  # and its name


Ending = TypeVar("Ending", Session, Link)


@dataclass
class Access:
    """The secrets of one start of the server, and the names under which it is reached."""

    token: str  # of the API
    hosts: frozenset[str]  # "127.0.0.1:8377"
    port: int = 8377
    public_url: str | None = None  # "https://reviews.example.org": where users open the page, behind a proxy
    links: dict[str, Link] = field(default_factory=dict)  # by their secrets
    sessions: dict[str, Session] = field(default_factory=dict)
    guesses: list[float] = field(default_factory=list)  # the times of the last wrong tokens
    waiting: int = 0  # wrong tokens that are being slowed down

    @property
    def is_secure(self) -> bool:
        """Whether users reach the server by TLS."""
        return (self.public_url or "").startswith("https://")

    @property
    def cookie(self) -> str:
        """Its name: a host's ports share cookies, so it contains the port."""
        return f"{'__Host-' if self.is_secure else ''}awatt_{self.port}"

    @property
    def origins(self) -> set[str]:
        """The origins of our own page. Browsers omit the usual port: 80 of http, 443 of https."""
        secure = {host.removesuffix(":443") for host in self.hosts if host.endswith(":443")}
        origins = {f"http://{host}" for host in self.hosts if host not in secure or f"{host}:80" in self.hosts}
        origins |= {f"https://{name}" for name in secure}
        if self.public_url is None:
            return origins
        return origins - {f"http://{self.public_url.partition('://')[2]}"} | {self.public_url}

    def new_link(self, read_only: bool = False, project: str = "", name: str = "") -> str:
        """A secret that opens the page once, within the next hour; a read-only one for a week, and repeatedly.

        A read-only link shows this project and no other.
        """
        link = secrets.token_urlsafe(24)
        ends = time.monotonic() + (READ_ONLY_SECONDS if read_only else LINK_SECONDS)
        self.links[link] = Link(ends, read_only, project, name) if read_only else Link(ends)
        self._expire()
        return link

    def use_link(self, given: str, present: Session | None = None) -> tuple[Session, str] | None:
        """Sign in with a link: the session and the project to show ("" for the default).

        None if the link is invalid.
        ``present`` is the sign-in of the browser, which a read-only link keeps.
        """
        self._expire()
        for secret, link in self.links.items():
            if is_equal(secret, given):
                if link.read_only and present is not None and present.project in ("", link.project):
                    return present, "" if present.project else link.name
                if not link.read_only:
                    del self.links[secret]
                session = Session(read_only=link.read_only, project=link.project)
                self.sessions[session.cookie] = session
                return session, ""
        return None

    def find_session(self, cookie: str) -> Session | None:
        """The sign-in that the cookie belongs to."""
        self._expire()
        return next((each for each in self.sessions.values() if is_equal(each.cookie, cookie)), None)

    def end_sessions(self, cookie: str | None) -> None:
        """Sign out one browser, or with None all of them."""
        if cookie is None:
            self.sessions.clear()
        else:
            self.sessions.pop(cookie, None)

    def set_cookie(self, session: Session | None) -> str:
        """The Set-Cookie header that starts a sign-in, or with None ends it.

        A link may stand on a page of another site, so the browser must send the cookie after a click there. Data needs
        the key of the page besides.
        """
        value, age = (session.cookie, int(SESSION_SECONDS)) if session else ("", 0)
        secure = "; Secure" if self.is_secure else ""
        return f"{self.cookie}={value}; Max-Age={age}; HttpOnly; SameSite=Lax; Path=/{secure}"

    async def slow_down(self) -> bool:
        """Wait after a wrong token; False if too many are waiting already. A right token never waits."""
        now = time.monotonic()
        self.guesses = [*(each for each in self.guesses if each > now - 60), now][-FREE_GUESSES - 1 :]
        if len(self.guesses) <= FREE_GUESSES:
            return True
        if self.waiting >= MAX_WAITING_GUESSES:
            return False
        self.waiting += 1
        try:
            await asyncio.sleep(GUESS_SECONDS)
        finally:
            self.waiting -= 1
        return True

    def _expire(self) -> None:
        self.links, self.sessions = _latest(self.links), _latest(self.sessions)


def _latest(found: dict[str, Ending]) -> dict[str, Ending]:
    """Those that have not ended, the latest of both kinds: readers end nobody else's."""
    now = time.monotonic()
    kept = [pair for pair in found.items() if pair[1].ends > now]
    parts = [[pair for pair in kept if pair[1].read_only is read_only] for read_only in (False, True)]
    return dict(parts[0][-MAX_KEPT:] + parts[1][-MAX_KEPT:])


def is_equal(given: str, wanted: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def check_token(token: str, name: str) -> str:
    """The token, if it cannot be guessed easily and fits into a header."""
    advice = f'Set it to a random one: export {name}="$(openssl rand -hex 24)"'
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise AwattError(f"{name} must consist of letters, digits and signs of ASCII, without spaces. {advice}")
    if len(token) < MIN_TOKEN_LENGTH:
        raise AwattError(f"{name} has {len(token)} characters, but needs at least {MIN_TOKEN_LENGTH}. {advice}")
    repeats = token in (token + token)[1:-1]
    steps = sum(abs(ord(one) - ord(two)) <= 1 for one, two in pairwise(token))
    if len(set(token)) < MIN_DISTINCT or repeats or steps > len(token) / 2:
        raise AwattError(f"{name} is easy to guess: it repeats itself or counts up. {advice}")
    return token


def check_public_url(url: str) -> str:
    """The origin of a URL such as ``https://reviews.example.org``."""
    found = urlsplit(url)
    try:
        port = found.port
    except ValueError:
        port = -1
    plain = found.scheme in ("http", "https") and found.hostname and found.path in ("", "/") and port != -1
    if not plain or found.query or found.fragment or "@" in found.netloc or not url.isascii():
        raise AwattError(f"--public-url is {url!r}, but must be like https://reviews.example.org, without a path.")
    usual = {"http": 80, "https": 443}[found.scheme]
    name = f"[{found.hostname}]" if ":" in (found.hostname or "") else found.hostname
    return f"{found.scheme}://{name}" + ("" if port in (None, usual) else f":{port}")
