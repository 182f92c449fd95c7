"""Connections that send no complete request: they are closed after a while, and make room for others."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # for the headers of a request to arrive, after the connection was made or the last response sent
MAX_CONNECTIONS = 512  # at a time; beyond that, the one that has been waiting longest is closed


class TimedProtocol(H11Protocol):
    """HTTP/1.1, with a limit on the time without a request."""

    header_seconds: ClassVar[float] = HEADER_SECONDS
    max_connections: ClassVar[int] = MAX_CONNECTIONS
    #: connections without a request, the oldest first, with the timer that closes each
    waiting: ClassVar[dict[TimedProtocol, asyncio.TimerHandle]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; if there are too many connections, close the oldest that waits."""
        if len(self.connections) >= self.max_connections and self.waiting:
            next(iter(self.waiting)).give_up()
        super().connection_made(transport)
        self._update()

    def data_received(self, data: bytes) -> None:
        """Stop waiting once the headers are complete."""
        super().data_received(data)
        self._update()

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
