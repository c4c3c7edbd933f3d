"""Gate: the user of a request, and whether the request is allowed."""

from __future__ import annotations

from ..access.authenticator import Authenticator, impersonate, read_impersonation
from ..access.authorizer import AccessQuestion, Authorizer, forbidden_error
from ..access.users import ClusterUser
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
        """Check that everything that is asked is allowed; raises StatusError (403)."""
        for question in questions:
            decision = self._authorizer.decide(user, question)
            if not decision.allowed:
                raise forbidden_error(user, question, decision.reason)
