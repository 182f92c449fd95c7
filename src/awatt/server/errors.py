"""Errors of the service: each kind has an HTTP status, and a code that clients can rely on."""

from __future__ import annotations

from awatt.errors import AwattError


class ServiceError(AwattError):
    """Input that the service cannot accept; ``field`` names the part of the request, such as ``texts.3``."""

    status, code = 422, "invalid"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class NotFoundError(ServiceError):
    """The project has nothing with this id."""

    status, code = 404, "not_found"


class ConflictError(ServiceError):
    """The change conflicts with the current state of the project."""

    status, code = 409, "conflict"


class TooLargeError(ServiceError):
    """A file contains more than can be read."""

    status, code = 413, "too_large"


class BusyError(ServiceError):
    """Too much work is waiting already."""

    status, code = 503, "busy"


class ProjectUnavailableError(ServiceError):
    """The project's file is locked, moved, damaged or cannot be read."""

    status, code = 503, "project_unavailable"


class DiskFullError(ServiceError):
    """There is no space left for the project's file."""

    status, code = 507, "disk_full"
