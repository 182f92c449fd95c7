"""The API of the list of projects."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from awatt.server.projects import Projects
from awatt.server.requests import ProjectBody
from awatt.server.responses import ERRORS, OpenedProject, ProjectList, describe_json, json_response
from awatt.server.service import Service


def make_routes(projects: Projects, service: Service) -> APIRouter:
    """The routes under ``/v1/projects``."""
    router = APIRouter(prefix="/v1/projects", tags=["project"], responses=ERRORS, default_response_class=Response)

    @router.get("", responses=describe_json(ProjectList))
    async def list_projects(request: Request) -> Response:
        """List the projects of this server; a read-only sign-in sees the one that its link was made for."""
        session = request.scope.get("awatt.session")
        if session and session.read_only:
            return json_response(ProjectList([service.store.path.stem], False))
        names = await service.run(projects.names)
        return json_response(ProjectList(names, projects.folder is not None))

    @router.post("", responses=describe_json(OpenedProject))
    async def open_project(body: ProjectBody) -> Response:
        """Open a project, created if there is none; send its id with requests for it, in the header x-awatt-project."""
        opened = await projects.open(body.name)
        return json_response(OpenedProject(opened.store.path.stem, opened.store.project_id))

    return router
