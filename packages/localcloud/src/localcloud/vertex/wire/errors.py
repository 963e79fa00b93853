"""What the service answers when it refuses: a status code, a message, and their HTTP form.

ApiError            any refusal; `code` is a name of google.rpc.Code
├── InvalidArgument the request is wrong whatever the state (400)
├── NotFound        no such resource (404)
├── AlreadyExists   the id is taken (409)
├── FailedPrecondition the state does not allow it (400)
├── Aborted         an etag or another call was faster (409)
├── PermissionDenied a project that does not exist looks like this (403)
├── Unavailable     try again (503)
└── Unimplemented   the local cloud does not offer this (501)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.rpc import code_pb2, status_pb2

from localcloud.codes import HTTP_STATUS


class ApiError(Exception):
    """A refusal with a code of google.rpc.Code, as gRPC status and as Google's error JSON."""

    code: str = "UNKNOWN"

    def __init__(self, message: str, *, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        if code is not None:
            if code not in HTTP_STATUS:
                raise ValueError(f"errors: unknown status {code!r}. Expected one of: {', '.join(HTTP_STATUS)}.")
            self.code = code

    @property
    def http_status(self) -> int:
        """HTTP status that Google's front end gives this code."""
        return HTTP_STATUS[self.code]

    def to_status(self) -> status_pb2.Status:
        """As google.rpc.Status: what an operation or a job carries in `error`."""
        return status_pb2.Status(code=code_pb2.Code.Value(self.code), message=self.message)

    def to_json(self) -> dict[str, Any]:
        """Return Google's error JSON, `{"error": {"code", "message", "status"}}`."""
        error: dict[str, Any] = {"code": self.http_status, "message": self.message, "status": self.code}
        if self.field is not None:
            violation = {"field": self.field, "description": self.message}
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
        return {"error": error}


class InvalidArgument(ApiError):
    """The request is wrong, whatever the state."""

    code = "INVALID_ARGUMENT"


class NotFound(ApiError):
    """No such resource."""

    code = "NOT_FOUND"


class AlreadyExists(ApiError):
    """The id is taken."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(ApiError):
    """The present state does not allow it."""

    code = "FAILED_PRECONDITION"


class Aborted(ApiError):
    """An etag does not match, or another call was faster."""

    code = "ABORTED"


class PermissionDenied(ApiError):
    """The caller may not, or the project does not exist (the service does not tell which)."""

    code = "PERMISSION_DENIED"


class Unavailable(ApiError):
    """Try again."""

    code = "UNAVAILABLE"


class Unimplemented(ApiError):
    """The local cloud does not offer this method or field."""

    code = "UNIMPLEMENTED"


def found_errors(findings: Sequence[tuple[str, str]]) -> InvalidArgument:
    """Return one refusal that lists every wrong field, in the service's wording.

    Args:
        findings: (field path, message) pairs, at least one.
    """
    lines = "".join(f"\t{i}.Field: {field}; Message: {message}" for i, (field, message) in enumerate(findings, 1))
    return InvalidArgument(f"List of found errors:{lines}\t", field=findings[0][0])
