"""The application: routes, errors as JSON, the page, and the guard around all of it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from awatt import __version__
from awatt.errors import AwattError
from awatt.records.formats import short_repr
from awatt.server import api, project_api
from awatt.server.limits import BusyError, ConflictError, Limits, NotFoundError
from awatt.server.responses import ERRORS
from awatt.server.security import Access, Guard
from awatt.server.service import Service, as_json
from awatt.server.store import ProjectStore

STATIC = Path(__file__).parent / "static"
RETRY = "1"  # seconds after which to try again: the queue holds a few seconds' work

_log = logging.getLogger(__name__)


def create_app(store: ProjectStore, access: Access, limits: Limits | None = None) -> Guard:
    """The whole server as an ASGI application."""
    limits = limits or Limits()
    service = Service(store, access, limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    # The pages of /docs come from a CDN; openapi.json is enough.
    app = FastAPI(title="awatt", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.include_router(api.make_routes(service))
    app.include_router(project_api.make_routes(service))
    _add_plain_routes(app, service)
    _add_errors(app)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.state.service = service
    return Guard(app, access, limits)


def _add_plain_routes(app: FastAPI, service: Service) -> None:
    @app.get("/health/live", tags=["health"], responses=ERRORS)
    async def live() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "live"}

    @app.get("/health/ready", tags=["health"], responses=ERRORS)
    async def ready() -> dict[str, str]:
        """Whether the project can be read; the model is loaded by then."""
        await service.run(service.store.check_there)
        await service.run(service.store.version)
        return {"status": "ready", "version": __version__}

    @app.post("/v1/link", tags=["health"], responses=ERRORS)
    async def link() -> dict[str, str]:
        """Another link that opens the page once."""
        return {"path": f"/?token={service.access.new_link()}"}

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(AwattError)
    async def bad_input(_: Request, error: AwattError) -> Response:
        known = {NotFoundError: 404, ConflictError: 409, BusyError: 503}
        status = next((code for kind, code in known.items() if isinstance(error, kind)), 422)
        answer = as_json({"error": str(error)}, status)
        if status == 503:
            answer.headers["retry-after"] = RETRY
        return answer

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
        given = "" if first["type"] in ("missing", "json_invalid") else f", found {short_repr(first.get('input'))}"
        message = f"{place}: {first['msg'].rstrip('.').lower()}{given}. See /openapi.json."
        return as_json({"error": message.encode("utf-8", "replace").decode()}, 422)

    @app.exception_handler(400)
    async def unreadable(_: Request, error: Exception) -> Response:
        return as_json({"error": "the body is no JSON that can be read. See /openapi.json."}, 400)

    @app.exception_handler(404)
    async def missing(request: Request, _: Exception) -> Response:
        return as_json({"error": f"there is no {request.url.path[:100]!r} here. See /openapi.json."}, 404)

    @app.exception_handler(405)
    async def not_allowed(request: Request, error: Exception) -> Response:
        answer = as_json({"error": f"{request.method} is not possible here. See /openapi.json."}, 405)
        answer.headers["allow"] = (getattr(error, "headers", None) and error.headers.get("Allow", "")) or ""  # type: ignore[attr-defined]
        return answer

    @app.exception_handler(Exception)
    async def fault(_: Request, error: Exception) -> Response:
        _log.error("a request failed: %s", type(error).__name__)  # its message may hold review text
        return as_json({"error": "the server made a mistake. Its log names the kind."}, 500)
