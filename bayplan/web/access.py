"""Access: whether a request is allowed."""

from __future__ import annotations

from typing import Any, Protocol
from urllib.parse import urlsplit

from aiohttp import web

from ..cluster.certificates import host_of, is_unforgeable


class Access(Protocol):
    """Decides about requests before they reach a route."""

    async def refusal(self, request: web.Request) -> web.Response | None:
        """None when the request is allowed, else the response to send instead."""


READING = frozenset({"GET", "HEAD", "OPTIONS", "POST"})
"""Methods without side effects; questions of the page are posted."""


class LocalAccess:
    """For a server on the loopback: any local user may read.

    A PUT changes the server, so `writers` decides about it; without them none is allowed.
    A web page from elsewhere is not allowed: its browser could use a host name that was pointed at this
    machine (DNS rebinding), so only addresses and `localhost` are accepted as host.
    """

    def __init__(self, writers: Access | None = None) -> None:
        self._writers = writers

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Return 403 when the request names another host; 401 or 403 for a change by a user who may not make it."""
        if is_unforgeable(host_of(request.host)):
            if request.method in READING:
                return None
            if self._writers is not None:
                return await self._writers.refusal(request)
            return status_response(403, "Forbidden", f"{request.method} is not allowed here")
        return status_response(403, "Forbidden", f"host {request.host!r} is not this machine")


def status_tree(code: int, reason: str, message: str) -> dict[str, Any]:
    """A rejection in the form of Kubernetes: a Status object."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def status_response(code: int, reason: str, message: str) -> web.Response:
    """A rejection as a Status object in JSON."""
    response = web.json_response(status_tree(code, reason, message), status=code)
    if code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


PAGE_HEADER = "X-Bayplan-Page"


def foreign_reason(request: web.Request) -> str:
    """Reason why the request is not one of the page; empty when it is."""
    if request.headers.get(PAGE_HEADER) != "1":
        return f"expected the header {PAGE_HEADER}: 1; got none"
    if request.content_type != "application/json":
        return f"expected a body of application/json; got {request.content_type}"
    origin = request.headers.get("Origin")
    if origin is not None and _site(origin) != request.host.lower():
        return f"expected a request of this page; got one of {origin!r}"
    fetched = request.headers.get("Sec-Fetch-Site", "same-origin")
    if fetched != "same-origin":
        return f"expected a request of this page; got one that is {fetched}"
    return ""


def _site(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
