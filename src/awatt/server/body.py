"""Reading the body of a request: its size, its duration and its content type are limited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from awatt.server.errors import ServiceError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON, BYTES = "application/json", "application/octet-stream"
UPLOADS = tuple(
    f"/v1/project/{name}" for name in ("columns", "reviews", "examples")
)  # take the bytes of a file; all others take JSON


class BodyError(ServiceError):
    """The body cannot be accepted."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Disconnected(Exception):  # noqa: N818 (nothing went wrong)
    """The client is gone."""


async def read_body(receive: Receive, declared: str, max_bytes: int, seconds: float) -> bytes:
    """The whole body, so that a refusal can still be sent as a response."""
    if not (declared.isascii() and declared.isdigit()):
        raise BodyError(400, "malformed", f"Content-Length is {declared[:40]!r}, but must be a number.")
    too_large = BodyError(
        413, "too_large", f"the body is larger than {max_bytes:,} bytes, the limit. Send it in parts."
    )
    if len(declared) > 18 or int(declared) > max_bytes:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Disconnected
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > max_bytes:
                    raise too_large
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise BodyError(408, "timeout", f"the body did not arrive within {seconds:g} seconds.") from None


def check_type(path: str, content_type: str, body: bytes) -> None:
    """Raise if the body is of another type than the route takes. An empty body needs no type."""
    wanted = BYTES if path in UPLOADS else JSON
    found = content_type.partition(";")[0].strip().lower()
    if body and found != wanted:
        message = f"the Content-Type is {found[:60]!r}, but {path[:60]} takes {wanted}."
        raise BodyError(415, "content_type", message)


def deliver(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body, then whatever follows it."""
    delivered = False

    async def receive_body() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_body
