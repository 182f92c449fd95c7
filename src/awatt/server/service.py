"""What the routes share: the project, the batcher and the thread pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Request, Response

from awatt.detector.models import FAST
from awatt.errors import AwattError
from awatt.server.access import Access
from awatt.server.batching import Batcher, Pool
from awatt.server.detection_json import JsonDetector
from awatt.server.errors import ConflictError
from awatt.server.limits import Limits, check_count, check_length
from awatt.server.responses import Project, json_response
from awatt.server.security import SAFE_METHODS
from awatt.server.store import ProjectStore
from awatt.server.workbench import Workbench

Result = TypeVar("Result")

PROJECT_HEADER = "x-awatt-project"  # the id of the project that the page shows
BACKUP_SECONDS = 600.0  # between backups of a project that is being changed


class Service:
    """One project, served at one address."""

    def __init__(self, store: ProjectStore, access: Access, limits: Limits, model: str | Path = FAST) -> None:
        self.store, self.access, self.limits = store, access, limits
        self.workbench = Workbench(store, model)
        self._detector: JsonDetector | None = None  # the latest
        self.batcher = Batcher(self._freeze, limits)
        self._small = Pool("small", 4, limits.actions)
        self._large = Pool("large", 2, limits.jobs)
        self._backups: asyncio.Task[None] | None = None

    def _freeze(self) -> JsonDetector:
        detector = self.workbench.detector()
        if self._detector is None or self._detector.detector is not detector:
            self._detector = JsonDetector(detector)
        return self._detector

    def start(self) -> None:
        """Begin to write backups; within the event loop only."""
        self._backups = asyncio.create_task(self._back_up_regularly())

    async def run(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """The result of a small call, which takes milliseconds, run off the event loop."""
        return await self._small.run(call, *arguments)

    async def compute(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """The result of a call that may take seconds. It runs beside the small ones, never in front of them."""
        return await self._large.run(call, *arguments)

    def check_texts(self, texts: Sequence[str], field: str = "texts") -> list[str]:
        """The texts, if they are within the limits of a request; ``field`` is their name in it."""
        check_count(len(texts), self.limits.texts, "texts in one request", field)
        limit = self.limits.characters
        return [check_length(text, limit, f"{field}[{n}]", f"{field}.{n}") for n, text in enumerate(texts)]

    async def check_project(self, request: Request) -> None:
        """Refuse requests from a page that shows another project, served at this address before.

        The requests with which the page detects this are still answered. Async only because FastAPI would run a plain
        function in a thread.
        """
        shown = request.headers.get(PROJECT_HEADER, self.store.project_id)
        noticing = request.method in SAFE_METHODS and request.url.path in ("/v1/project", "/v1/project/version")
        if shown != self.store.project_id and not noticing:
            raise ConflictError("another project is served here now. Load the page again.")

    def project(self) -> Project:
        """The project as it is now."""
        content = self.store.content()
        by_name, unlearned = self.workbench.without_examples(content)
        return Project(
            **vars(content),
            project=self.store.project_id,
            name=self.store.path.stem,
            model=str(self.workbench.model_name),
            auto_threshold=self.workbench.auto_threshold(content),
            by_name=by_name,
            unlearned=unlearned,
        )

    async def change(self, call: Callable[..., object], *arguments: Any) -> Response:
        """Change the project, and respond with its new state."""

        def change_and_read() -> Project:
            call(*arguments)
            return self.project()

        return json_response(await self.run(change_and_read))

    async def _back_up_regularly(self) -> None:
        """Write a backup of what has changed every few minutes."""
        while True:
            await asyncio.sleep(BACKUP_SECONDS)
            with suppress(AwattError):  # it is tried again later
                await self.compute(self.store.back_up)

    async def close(self) -> None:
        """Finish what is running, without the rest of a load, then close the project's file."""
        self.workbench.progress.end()
        if self._backups is not None:
            self._backups.cancel()
        await self.batcher.close()
        self._large.close()
        self._small.close()
        with suppress(AwattError):
            self.store.back_up()
        self.store.close()
