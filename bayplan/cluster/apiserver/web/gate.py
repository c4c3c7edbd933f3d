"""Gate: the user of a request, and whether the request is allowed."""

from __future__ import annotations

from ..access.authenticator import Authenticator, impersonate, read_impersonation
from ..access.authorizing import AccessQuestion, Authorizer, forbidden_error
from ..access.users import ClusterUser
from .http_requests import WholeRequest
from .requests import Options, Target

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


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

    def check_path(self, user: ClusterUser, request: WholeRequest) -> None:
        """Check a request for something that is no resource; raises StatusError (403)."""
        verb = _VERBS.get(request.method, request.method.lower())
        self.check(user, AccessQuestion(verb, path=request.path))

    def check(self, user: ClusterUser, *questions: AccessQuestion) -> None:
        """Check that everything that is asked is allowed; raises StatusError (403)."""
        for question in questions:
            decision = self._authorizer.decide(user, question)
            if not decision.allowed:
                raise forbidden_error(user, question, decision.reason)


def question_of(method: str, target: Target, options: Options) -> AccessQuestion:
    """What a request for objects asks."""
    resource, name = target.resource, target.name
    verb = _VERBS.get(method, method.lower())
    if method == "GET":
        verb = "get" if name else "list"
        if options.is_watch and not target.subresource:
            verb = "watch"
    elif method == "DELETE" and not name:
        verb = "deletecollection"
    if not name and method in ("GET", "DELETE"):
        name = _selected_name(options.fields)
    namespace = target.namespace
    if resource.storage == "namespaces":
        namespace = target.name
    return AccessQuestion(
        verb, namespace, resource.group, resource.plural, target.subresource, name
    )


def _selected_name(fields: str) -> str:
    """The name that a field selector asks for."""
    for part in fields.split(","):
        key, _, value = part.replace("==", "=").partition("=")
        if key.strip() == "metadata.name":
            return value.strip()
    return ""
