"""The application: routes, errors as JSON, the page, and the guard in front of them."""

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
from awatt.server.responses import ERRORS, Error, json_response
from awatt.server.security import Access, Guard
from awatt.server.service import Service
from awatt.server.store import ProjectStore

STATIC = Path(__file__).parent / "static"
RETRY_AFTER = "1"  # seconds: the queue holds a few seconds' work

_log = logging.getLogger(__name__)


def create_app(store: ProjectStore, access: Access, limits: Limits | None = None, model: Path | None = None) -> Guard:
    """The whole server as an ASGI application."""
    limits = limits or Limits()
    service = Service(store, access, limits, model)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    # /docs would load scripts from a CDN, which the page's security policy forbids; /openapi.json remains.
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
        """Whether the process responds."""
        return {"status": "live"}

    @app.get("/health/ready", tags=["health"], responses=ERRORS)
    async def ready() -> dict[str, str]:
        """Whether the project can be read; the model has been loaded by then."""
        await service.run(service.store.check_file)
        await service.run(service.store.version)
        return {"status": "ready", "version": __version__}

    @app.post("/v1/link", tags=["health"], responses=ERRORS)
    async def link() -> dict[str, str]:
        """Create another link that opens the page once."""
        return {"path": f"/?token={service.access.new_link()}"}

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(AwattError)
    async def user_error(_: Request, error: AwattError) -> Response:
        statuses = {NotFoundError: 404, ConflictError: 409, BusyError: 503}
        status = next((code for kind, code in statuses.items() if isinstance(error, kind)), 422)
        response = json_response(Error(str(error)), status)
        if status == 503:
            response.headers["retry-after"] = RETRY_AFTER
        return response

    @app.exception_handler(RequestValidationError)
    async def invalid_request(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
        found = "" if first["type"] in ("missing", "json_invalid") else f", found {short_repr(first.get('input'))}"
        message = f"{place}: {first['msg'].rstrip('.').lower()}{found}. See /openapi.json."
        return json_response(Error(message.encode("utf-8", "replace").decode()), 422)

    @app.exception_handler(400)
    async def malformed_body(_: Request, error: Exception) -> Response:
        return json_response(Error("the body is not valid JSON. See /openapi.json."), 400)

    @app.exception_handler(404)
    async def not_found(request: Request, _: Exception) -> Response:
        return json_response(Error(f"there is no {request.url.path[:100]!r} here. See /openapi.json."), 404)

    @app.exception_handler(405)
    async def method_not_allowed(request: Request, error: Exception) -> Response:
        response = json_response(Error(f"the method {request.method} is not allowed here. See /openapi.json."), 405)
        response.headers["allow"] = (getattr(error, "headers", None) and error.headers.get("Allow", "")) or ""  # type: ignore[attr-defined]
        return response

    @app.exception_handler(Exception)
    async def internal_error(_: Request, error: Exception) -> Response:
        _log.error("a request failed: %s", type(error).__name__)  # the message may contain review text
        return json_response(Error("internal error. The server's log names its type; please report it."), 500)
