"""Connections: the time without a request and the size of its headers are limited, as the parser limits neither."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0  # for the headers of a request to arrive, after the connection was made or the last response sent
MAX_CONNECTIONS = 512  # at a time; beyond that, the one that has been waiting longest is closed
MAX_HEADERS = 64 * 1024  # bytes of a request's address and headers


class TimedProtocol(HttpToolsProtocol):
    """HTTP/1.1, with limits on the time without a request and on its headers."""

    header_seconds: ClassVar[float] = HEADER_SECONDS
    max_connections: ClassVar[int] = MAX_CONNECTIONS
    #: connections without a request, the oldest first, with the timer that closes each
    waiting: ClassVar[dict[TimedProtocol, asyncio.TimerHandle]] = {}
    _n_headers: int | None = None  # bytes of the headers so far; None between requests and in a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; if there are too many connections, close the oldest that waits."""
        if len(self.connections) >= self.max_connections and self.waiting:
            next(iter(self.waiting)).give_up()
        super().connection_made(transport)
        self._update()

    def data_received(self, data: bytes) -> None:
        """Stop waiting once the headers are complete; refuse them if they are too large."""
        before = self._n_headers
        super().data_received(data)
        if before is not None and self._n_headers is not None:  # nothing but headers, maybe a part of one
            self._n_headers = max(self._n_headers, before + len(data))
        if (self._n_headers or 0) > MAX_HEADERS and not self.transport.is_closing():
            self.send_400_response("The headers are too large.")
        self._update()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._n_headers = 0

    def on_url(self, url: bytes) -> None:
        """Count the address, or a part of it."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request."""
        self._n_headers = None
        super().on_headers_complete()

    def _count(self, n_bytes: int) -> None:
        self._n_headers = (self._n_headers or 0) + n_bytes
        if self._n_headers > MAX_HEADERS:
            raise ValueError("the headers are too large")  # the parser stops, and the response is 400

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._update()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection without a response: no request has arrived."""
        self._stop_waiting()
        self.transport.close()  # what was written already is still sent

    def _update(self) -> None:
        serving = self.cycle is not None and not self.cycle.response_complete
        if serving or self.transport.is_closing():
            self._stop_waiting()
        elif self not in self.waiting:
            self.waiting[self] = self.loop.call_later(self.header_seconds, self.give_up)

    def _stop_waiting(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()
