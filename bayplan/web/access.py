"""Access: whether a request is answered at all."""

from __future__ import annotations

import ipaddress
from typing import Protocol

from aiohttp import web


class Access(Protocol):
    """Decides about requests before they reach a route."""

    async def refusal(self, request: web.Request) -> web.Response | None:
        """None when the request may pass, else what to answer in its place."""


class LocalAccess:
    """For a server on the loopback: whoever is on the machine may look.

    A web page from elsewhere may not: its browser would come by a name that was made to mean this machine, so only
    addresses and `localhost` are taken as host.
    """

    async def refusal(self, request: web.Request) -> web.Response | None:
        """403 when the request was meant for another host."""
        if _is_local_name(request.host):
            return None
        return status_response(403, "Forbidden", f"host {request.host!r} is not this machine")


def status_response(code: int, reason: str, message: str) -> web.Response:
    """A refusal in the form of Kubernetes: a Status object."""
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


def _is_local_name(host: str) -> bool:
    """Whether a Host header names an address, or localhost; the port, if any, does not matter."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.removeprefix("[").removesuffix("]")
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
