"""The projects that one server serves: the one it was started with and, if it was given a folder, the others in it.

Each project has an application of its own. A request says by a header which project the page shows, so two tabs can
show two of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from fastapi.datastructures import Headers, State

from awatt.errors import AwattError
from awatt.server.body import Receive, Scope, Send
from awatt.server.direct import DirectDetection
from awatt.server.errors import ConflictError, ServiceError
from awatt.server.service import PROJECT_HEADER, Service

SUFFIX = ".sqlite"
NAME = re.compile(r"[^\W_][\w .-]{0,79}")
MAX_OPEN = 20  # each keeps its scores in memory
MAX_LISTED = 200


class Projects:
    """Passes each request on to the application of its project."""

    def __init__(self, folder: Path | None, make_app: Callable[[Path], DirectDetection]) -> None:
        self.folder, self._make_app = folder, make_app
        self._apps: dict[str, DirectDetection] = {}  # by the project's id; the server was started with the first
        self._opening = asyncio.Lock()

    def add(self, app: DirectDetection) -> Service:
        """Serve one more project."""
        service = app.service
        same = self._apps.setdefault(service.store.project_id, app)
        if same is not app:  # a request could not say which of them it means
            service.store.close()
            name = service.store.path.stem
            raise ConflictError(f"'{name}' is a copy of '{same.service.store.path.stem}', which is open.")
        return service

    @property
    def first(self) -> DirectDetection:
        """The application of the project that the server was started with."""
        return next(iter(self._apps.values()))

    @property
    def state(self) -> State:
        """The state of the first application."""
        state: State = self.first.app.state
        return state

    def names(self) -> list[str]:
        """The projects that can be opened."""
        if self.folder is None:
            return [self.first.service.store.path.stem]
        found = (path.name.removesuffix(SUFFIX) for path in self.folder.glob(f"*{SUFFIX}") if path.is_file())
        return sorted(filter(NAME.fullmatch, found), key=str.casefold)[:MAX_LISTED]

    async def open(self, name: str) -> Service:
        """The project with this name; it is created if there is none."""
        for app in self._apps.values():
            if app.service.store.path.stem == name:
                return app.service
        if self.folder is None:
            raise ConflictError("this server has a single project. Start awatt serve with a folder to have several.")
        if not NAME.fullmatch(name) or name != name.strip(" ."):
            raise ServiceError("a name has letters, digits, spaces, dots, - and _, at most 80. Choose another.", "name")
        path = self.folder / f"{name}{SUFFIX}"
        async with self._opening:
            for app in self._apps.values():  # opened by another request meanwhile
                if app.service.store.path.stem == name:
                    return app.service
            if len(self._apps) >= MAX_OPEN:
                raise ConflictError(f"{MAX_OPEN} projects are open already. Start awatt serve again.")
            try:  # looking through the file can take seconds
                opened = await asyncio.to_thread(self._make_app, path)
            except AwattError as error:
                raise ServiceError(str(error).replace(str(path), path.name)) from None
            service = self.add(opened)
            service.start()
            return service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or start and stop everything."""
        if scope["type"] == "lifespan":
            await self._run(receive, send)
            return
        session = scope.get("awatt.session")
        restricted = session.project if session else ""
        wanted = restricted or Headers(scope=scope).get(PROJECT_HEADER, "")
        await self._apps.get(wanted, self.first)(scope, receive, send)

    async def _run(self, receive: Receive, send: Send) -> None:
        await receive()
        self.first.service.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for app in self._apps.values():
            await app.service.close()
        await send({"type": "lifespan.shutdown.complete"})
