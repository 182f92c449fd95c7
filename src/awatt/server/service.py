"""What the routes share: the project, the batcher and the threads; and how things look as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Request, Response

from awatt.detector.results import Detection
from awatt.server.batching import Batcher, Pool
from awatt.server.content import Content
from awatt.server.limits import ConflictError, Limits, check_count, check_length
from awatt.server.security import SAFE, Access
from awatt.server.store import ProjectStore
from awatt.server.workbench import Workbench

Result = TypeVar("Result")


class Service:
    """One project at work behind one address."""

    def __init__(self, store: ProjectStore, access: Access, limits: Limits, model: Path | None = None) -> None:
        self.store, self.access, self.limits = store, access, limits
        self.workbench = Workbench(store, model)
        self.batcher = Batcher(self.workbench.detect, limits)
        self.pool = Pool(limits)

    async def run(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """Off the event loop."""
        return await self.pool.run(call, *arguments)

    def check_texts(self, texts: Sequence[str]) -> list[str]:
        """Within the limits of a request."""
        check_count(len(texts), self.limits.texts, "texts in one request")
        return [check_length(text, self.limits.characters, f"text number {n}") for n, text in enumerate(texts)]

    async def close(self) -> None:
        """Finish what is running, then let go of the file."""
        await self.batcher.close()
        self.pool.close()
        self.store.close()

    async def state(self) -> Response:
        """The project as JSON."""
        return as_json(await self.run(self._state))

    def _state(self) -> dict[str, object]:
        shown = shown_project(self.store.content(), self.workbench.auto_threshold())
        return {"project": self.store.identity, **shown}

    def check_project(self, request: Request) -> None:
        """A page that shows another project, which was served here before, must not change this one."""
        shown = request.headers.get("x-awatt-project", self.store.identity)
        if shown != self.store.identity and request.method not in SAFE:
            raise ConflictError("another project is served here now. Load the page again.")

    async def change(self, call: Callable[..., object], *arguments: Any) -> Response:
        """Change the project; gives it as it then is."""

        def both() -> dict[str, object]:
            call(*arguments)
            return self._state()

        return as_json(await self.run(both))


def as_json(value: object, status: int = 200) -> Response:
    """Plain json: pydantic would check once more what we made ourselves, and take longer than the detection."""
    return Response(json.dumps(value, ensure_ascii=False), status, media_type="application/json")


def shown_detection(found: Detection) -> dict[str, object]:
    """A detection."""
    words = {
        aspect: [{"text": word.text, "start": word.start, "end": word.end, "weight": word.weight} for word in each]
        for aspect, each in found.words.items()
    }
    return {"text": found.text, "aspects": found.aspects, "scores": found.scores, "words": words}


def shown_project(content: Content, auto: float) -> dict[str, object]:
    """Everything but the sentences."""
    shown = dataclasses.asdict(content)
    return {**shown.pop("version"), **shown, "auto_threshold": auto}
