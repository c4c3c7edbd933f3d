"""Cross site: requests of another site's page are never handled.

A web page that the user has open can send requests to the loopback. It can send them under a host
name of its own that was pointed at this machine (DNS rebinding), or from its own origin. Neither is
accepted, whether or not the server asks for a token.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from ...cluster.host_names import host_of, is_unforgeable
from ..registry.status_errors import StatusError
from .http_requests import WholeRequest


class RequestAccess:
    """Checks where requests come from. `hosts` are names that the server has besides its addresses and
    localhost; `has_token` says whether requests must carry one."""

    def __init__(self, has_token: bool = False, hosts: Collection[str] = ()) -> None:
        self._has_token = has_token
        self._hosts = frozenset(host.lower() for host in hosts)

    def check_sender(self, request: WholeRequest) -> None:
        """Reject what the page of another site sent; raises StatusError (403)."""
        if not self._is_ours(request.host):
            raise StatusError(403, "Forbidden", f'host "{request.host}" is not this server')
        origin = request.header("origin")
        if request.has_header("origin") and not self._may_send(origin, request.host):
            raise StatusError(403, "Forbidden", f'origin "{origin}" may not use this server')

    def _may_send(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may use the server: its own, and with a token also another
        server of this machine, such as `kubectl proxy`."""
        try:
            sender = urlsplit(origin).netloc
        except ValueError:
            return False
        return sender.lower() == host.lower() or (self._has_token and self._is_ours(sender))

    def _is_ours(self, host: str) -> bool:
        """Whether this is an address, localhost or a name of the server; the port is ignored."""
        name = host_of(host)
        return name in self._hosts or is_unforgeable(name)
