"""What the routes share: the project, the batcher and the thread pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Request, Response

from awatt.server.batching import Batcher, Pool
from awatt.server.limits import ConflictError, Limits, check_count, check_length
from awatt.server.responses import Project, json_response
from awatt.server.security import SAFE_METHODS, Access
from awatt.server.store import ProjectStore
from awatt.server.workbench import Workbench

Result = TypeVar("Result")


class Service:
    """One project, served at one address."""

    def __init__(self, store: ProjectStore, access: Access, limits: Limits, model: Path | None = None) -> None:
        self.store, self.access, self.limits = store, access, limits
        self.workbench = Workbench(store, model)
        self.batcher = Batcher(self.workbench.detect, limits)
        self.pool = Pool(limits)

    async def run(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """The result of a call, run off the event loop."""
        return await self.pool.run(call, *arguments)

    def check_texts(self, texts: Sequence[str]) -> list[str]:
        """The texts, if they are within the limits of a request."""
        check_count(len(texts), self.limits.texts, "texts in one request")
        return [check_length(text, self.limits.characters, f"texts[{n}]") for n, text in enumerate(texts)]

    def check_project(self, request: Request) -> None:
        """Refuse changes from a page that shows another project, served at this address before."""
        shown = request.headers.get("x-awatt-project", self.store.project_id)
        if shown != self.store.project_id and request.method not in SAFE_METHODS:
            raise ConflictError("another project is served here now. Load the page again.")

    def project(self) -> Project:
        """The project as it is now."""
        content, auto = self.store.content(), self.workbench.auto_threshold()
        return Project(**vars(content), project=self.store.project_id, auto_threshold=auto)

    async def change(self, call: Callable[..., object], *arguments: Any) -> Response:
        """Change the project, and respond with its new state."""

        def change_and_read() -> Project:
            call(*arguments)
            return self.project()

        return json_response(await self.run(change_and_read))

    async def close(self) -> None:
        """Finish what is running, then close the project's file."""
        await self.batcher.close()
        self.pool.close()
        self.store.close()
