"""Access: whether a request is allowed."""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from ..cluster.host_names import host_of, is_unforgeable


class Access(Protocol):
    """Decides about requests before they reach a route."""

    async def refusal(self, request: web.Request) -> web.Response | None:
        """None when the request is allowed, else the response to send instead."""


class LocalAccess:
    """For a server on the loopback: any local user is allowed.

    A web page from elsewhere is not: its browser could use a host name that was pointed at this
    machine (DNS rebinding), so only addresses and `localhost` are accepted as host.
    """

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Return 403 when the request names another host."""
        if is_unforgeable(host_of(request.host)):
            return None
        return status_response(403, "Forbidden", f"host {request.host!r} is not this machine")


def status_response(code: int, reason: str, message: str) -> web.Response:
    """A rejection in the form of Kubernetes: a Status object."""
    tree = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    response = web.json_response(tree, status=code)
    if code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
