"""Status errors: errors in the form of Kubernetes, metav1.Status.

Mirrors k8s.io/apimachinery/pkg/api/errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...api.rules.field_causes import Cause
from ...api.rules.object_validation import refusal_text
from ...errors import BayplanError
from .resource_table import ApiResource


class StatusError(BayplanError):
    """An error: its HTTP code, its reason in one word, its message, and its object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = dict(details or {})
        self.retry_after_s = retry_after_s
        if retry_after_s is not None:
            self.details["retryAfterSeconds"] = retry_after_s

    def as_status(self) -> dict[str, Any]:
        """The error as clients get it."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        return {key: value for key, value in status.items() if value or key == "metadata"}


def _about(resource: ApiResource, name: str, **more: Any) -> dict[str, Any]:
    details = {"name": name, "group": resource.group, "kind": resource.plural, **more}
    return {key: value for key, value in details.items() if value}


def _quoted(resource: ApiResource, name: str) -> str:
    return f'{resource.name} "{name}"'


def not_found(resource: ApiResource, name: str) -> StatusError:
    """The object does not exist."""
    message = f"{_quoted(resource, name)} not found"
    return StatusError(404, "NotFound", message, _about(resource, name))


def no_such_path() -> StatusError:
    """The path does not exist."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: ApiResource, name: str) -> StatusError:
    """The name is taken."""
    message = f"{_quoted(resource, name)} already exists"
    return StatusError(409, "AlreadyExists", message, _about(resource, name))


def conflict(resource: ApiResource, name: str, problem: str) -> StatusError:
    """The operation conflicts with the object's state."""
    message = f"Operation cannot be fulfilled on {_quoted(resource, name)}: {problem}"
    return StatusError(409, "Conflict", message, _about(resource, name))


def stale(resource: ApiResource, name: str) -> StatusError:
    """The object changed since the client read it."""
    problem = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, problem)


def forbidden(
    resource: ApiResource, name: str, problem: str, causes: Sequence[Cause] = ()
) -> StatusError:
    """The operation is forbidden for everyone."""
    message = f"{_quoted(resource, name)} is forbidden: {problem}"
    found = [cause.as_dict() for cause in causes]
    return StatusError(403, "Forbidden", message, _about(resource, name, causes=found))


def bad_request(message: str) -> StatusError:
    """The request is malformed."""
    return StatusError(400, "BadRequest", message)


def invalid(resource: ApiResource, name: str, causes: Sequence[Cause]) -> StatusError:
    """The object is invalid, at these fields."""
    message = refusal_text(resource.api_version, resource.kind, name, causes)
    details = _about(resource, name) | {
        "kind": resource.kind,
        "causes": [cause.as_dict() for cause in causes],
    }
    return StatusError(422, "Invalid", message, details)


def gone(message: str) -> StatusError:
    """The requested version has expired."""
    return StatusError(410, "Expired", message)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """The media type of the body is not supported."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> StatusError:
    """The body of the request is too large."""
    message = f"Request entity too large: limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", message)


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    """The client accepts no supported media type."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return StatusError(406, "NotAcceptable", message)


def method_not_allowed() -> StatusError:
    """The method is not supported there."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message)


def too_many_requests(
    message: str, causes: Sequence[Cause], retry_after_s: int | None
) -> StatusError:
    """The request may be retried later."""
    found = [cause.as_dict() for cause in causes]
    return StatusError(429, "TooManyRequests", message, {"causes": found}, retry_after_s)


def internal(message: str) -> StatusError:
    """The server failed."""
    text = f"Internal error occurred: {message}"
    causes = [{"message": message}]
    return StatusError(500, "InternalError", text, {"causes": causes})
