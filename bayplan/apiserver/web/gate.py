"""Gate: the user of a request, and whether the request is allowed."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from ...cluster.certificates import host_of, is_unforgeable
from ..access.authenticator import Authenticator, impersonate, read_impersonation
from ..access.authorizer import AccessQuestion, Authorizer, ClusterUser, forbidden_error
from ..registry.status_errors import StatusError
from .http_requests import WholeRequest


class RequestGate:
    """Lets requests through that their user may make."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def user_of(self, request: WholeRequest) -> ClusterUser:
        """The user of a request, who may be impersonated; raises StatusError (401, 403)."""
        user = self._authenticator.user_of(request.header("authorization"))
        wanted = read_impersonation(request.headers)
        return user if wanted is None else impersonate(user, wanted, self._authorizer)

    def check(self, user: ClusterUser, *questions: AccessQuestion) -> None:
        """Check that every question is allowed; raises StatusError (403)."""
        for question in questions:
            decision = self._authorizer.decide(user, question)
            if not decision.allowed:
                raise forbidden_error(user, question, decision.reason)


class RequestAccess:
    """Checks where requests come from. `hosts` are names that the server has besides its addresses and
    localhost; `has_token` is true if requests must carry one."""

    def __init__(self, has_token: bool = False, hosts: Collection[str] = ()) -> None:
        self._has_token = has_token
        self._hosts = frozenset(host.lower() for host in hosts)

    def check_sender(self, request: WholeRequest) -> None:
        """Reject requests of another site's page; raises StatusError (403)."""
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
