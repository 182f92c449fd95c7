"""``POST /v1/detect`` without the web framework, which takes longer for a single text than the detection does.

Only what succeeds is answered here. Anything else goes on to the application, which says what is wrong: there is one
place for errors, and one for the OpenAPI document.
"""

from __future__ import annotations

import json

from fastapi import FastAPI

from awatt.server.body import Message, Receive, Scope, Send, deliver
from awatt.server.detection_json import join_detections
from awatt.server.requests import DetectBody
from awatt.server.service import PROJECT_HEADER, Service

PATH = "/v1/detect"


class DirectDetection:
    """Answers detections, and passes everything else on. The body of a request must have been read already."""

    def __init__(self, app: FastAPI, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it on."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST" or _is_from_page(scope):
            await self.app(scope, receive, send)
            return
        message = await receive()
        try:
            content = await self._detect(message)
        except Exception:  # the application handles the request again and reports the error
            await self.app(scope, deliver(message.get("body", b""), receive), send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _detect(self, message: Message) -> bytes:
        body = DetectBody.model_validate(json.loads(message["body"]))
        texts = self.service.check_texts(body.texts)
        return join_detections(await self.service.batcher.submit(texts, body.threshold, body.words))


def _is_from_page(scope: Scope) -> bool:
    """The application checks which project such a request is for."""
    return any(name == PROJECT_HEADER.encode() for name, _ in scope["headers"])
