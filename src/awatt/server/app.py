"""The application: routes, errors as JSON, the page, and the guard in front of them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from awatt import __version__
from awatt.detector.models import FAST
from awatt.errors import AwattError, DataError
from awatt.records.formats import short_repr
from awatt.server import api, label_api, project_api, projects_api
from awatt.server.access import Access
from awatt.server.body import UPLOADS
from awatt.server.direct import DirectDetection
from awatt.server.errors import ServiceError
from awatt.server.limits import Limits
from awatt.server.projects import Projects
from awatt.server.requests import LinkBody
from awatt.server.responses import ERRORS, describe_error, error_json
from awatt.server.security import KEY_HEADER, PUBLIC_PATHS, Guard
from awatt.server.service import Service
from awatt.server.store import ProjectStore

STATIC = Path(__file__).parent / "static"
RETRY_AFTER = "1"  # seconds: the queue holds a few seconds' work

_log = logging.getLogger(__name__)


def create_app(
    store: ProjectStore,
    access: Access,
    limits: Limits | None = None,
    model: str | Path = FAST,
    folder: Path | None = None,
) -> Guard:
    """The whole server as an ASGI application; with a ``folder``, it serves the other projects there, too."""
    limits = limits or Limits()

    def make(store: ProjectStore) -> DirectDetection:
        service = Service(store, access, limits, model)
        return DirectDetection(_make_app(service, projects), service)

    projects = Projects(folder, lambda path: make(ProjectStore(path, limits)))
    projects.add(make(store))
    return Guard(projects, access, limits)


def _make_app(service: Service, projects: Projects) -> FastAPI:
    """The application of one project."""
    # /docs would load scripts from a CDN, which the page's security policy forbids; /openapi.json remains.
    unread = [Depends(_check_unread_body)]
    app = FastAPI(title="awatt", version=__version__, docs_url=None, redoc_url=None, dependencies=unread)
    app.include_router(api.make_routes(service))
    app.include_router(project_api.make_routes(service))
    app.include_router(label_api.make_routes(service))
    app.include_router(projects_api.make_routes(projects, service))
    _add_plain_routes(app, service)
    _add_errors(app)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.state.service = service
    _complete_document(app, service.access)
    return app


async def _check_unread_body(request: Request) -> None:
    """Broken JSON is an error where no body is read, too."""
    if request.scope["route"].body_field is None and request.url.path not in UPLOADS:
        body = await request.body()
        try:
            json.loads(body or b"null")
        except (ValueError, RecursionError):
            raise HTTPException(400) from None


def _complete_document(app: FastAPI, access: Access) -> None:
    """Add to the OpenAPI document what errors look like, and how to authenticate: by the token, or as the page does."""
    describe = app.openapi

    def document() -> dict[str, Any]:
        found = describe()
        found["components"]["schemas"]["Error"] = describe_error()
        found["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "The token of the server."},
            "cookie": {"type": "apiKey", "in": "cookie", "name": access.cookie, "description": "Set by a link."},
            "key": {"type": "apiKey", "in": "header", "name": KEY_HEADER, "description": "In the address of the page."},
        }
        found["security"] = [{"token": []}, {"cookie": [], "key": []}]
        for path in PUBLIC_PATHS:
            found["paths"][path]["get"]["security"] = []
        return found

    app.openapi = document  # type: ignore[method-assign]


def _add_plain_routes(app: FastAPI, service: Service) -> None:
    @app.get("/health/live", tags=["health"], responses=ERRORS)
    async def live() -> dict[str, str]:
        """Whether the process responds."""
        return {"status": "live"}

    @app.get("/health/ready", tags=["health"], responses=ERRORS)
    async def ready() -> dict[str, str]:
        """Whether the project can be read and changed; the model has been loaded by then."""
        await service.run(service.store.check_ready)
        return {"status": "ready", "version": __version__}

    @app.post("/v1/link", tags=["health"], responses=ERRORS, dependencies=[Depends(service.check_project)])
    async def link(body: LinkBody | None = None) -> dict[str, str]:
        """Create another link that opens the page: once, within an hour; or a read-only one, for a week."""
        wanted = body or LinkBody(view="")
        view = f"&view={quote(wanted.view, safe='')}" if wanted.view else ""
        store = service.store
        token = service.access.new_link(wanted.read_only, store.project_id, store.path.stem)
        return {"path": f"/?token={token}{view}"}

    @app.get("/v1/session", tags=["health"], responses=ERRORS)
    async def session(request: Request) -> dict[str, bool]:
        """Whether the browser that asks is signed in by a read-only link."""
        found = request.scope.get("awatt.session")
        return {"read_only": found is not None and found.read_only}

    @app.delete("/v1/session", tags=["health"], responses=ERRORS)
    async def sign_out(request: Request, response: Response) -> dict[str, str]:
        """Sign out the browser that asks; asked with the token, sign out all browsers."""
        session = request.scope.get("awatt.session")
        service.access.end_sessions(session and session.cookie)
        response.headers["set-cookie"] = service.access.set_cookie(None)
        return {"status": "signed out"}

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(AwattError)
    async def user_error(_: Request, error: AwattError) -> Response:
        if isinstance(error, DataError):
            return _error(422, "invalid_file", str(error), error.column, error.line)
        if isinstance(error, ServiceError):
            return _error(error.status, error.code, str(error), error.field)
        return _error(422, "invalid", str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid_request(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return _error(400, "malformed", f"the body is not valid JSON ({first['ctx']['error']}). See /openapi.json.")
        field = ".".join(str(part) for part in first["loc"] if part != "body") or None
        found = "" if first["type"] == "missing" else f", found {short_repr(first.get('input'))}"
        message = first["msg"].removeprefix("Value error, ").partition(" after validation")[0].rstrip(".")
        return _error(422, "invalid", f"{field or 'the body'}: {message[0].lower()}{message[1:]}{found}.", field)

    @app.exception_handler(400)
    async def malformed_body(_: Request, error: Exception) -> Response:
        return _error(400, "malformed", "the body is not valid JSON. See /openapi.json.")

    @app.exception_handler(404)
    async def not_found(request: Request, _: Exception) -> Response:
        return _error(404, "no_such_path", f"there is no {request.url.path[:100]!r} here. See /openapi.json.")

    @app.exception_handler(405)
    async def method_not_allowed(request: Request, error: Exception) -> Response:
        message = f"the method {request.method} is not allowed here. See /openapi.json."
        response = _error(405, "no_such_method", message)
        response.headers["allow"] = (getattr(error, "headers", None) and error.headers.get("Allow", "")) or ""  # type: ignore[attr-defined]
        return response

    @app.exception_handler(Exception)
    async def internal_error(_: Request, error: Exception) -> Response:
        _log.error("a request failed: %s", type(error).__name__)  # the message may contain review text
        return _error(500, "internal", "internal error. The server's log names its type; please report it.")


def _error(status: int, code: str, message: str, field: str | None = None, line: int | None = None) -> Response:
    response = Response(error_json(message, code, field, line), status, media_type="application/json")
    if status == 503:
        response.headers["retry-after"] = RETRY_AFTER
    return response
