"""Access reviews: authentication and authorization reviews, and tokens of service accounts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...api.rules.field_causes import invalid_value
from ...api.rules.security_rules import token_time_faults
from ...clock import rfc3339
from ..registry.object_registry import ObjectRegistry
from ..registry.resource_table import BY_STORAGE, ApiResource
from ..registry.status_errors import invalid
from .authenticator import AUDIENCE, DEFAULT_S, Authenticator
from .authorizer import AccessQuestion, ClusterUser
from .rbac import RbacAuthorizer

Tree = dict[str, Any]
ACCOUNTS = BY_STORAGE["serviceaccounts"]
_TOKEN_REQUESTS = ApiResource(
    "authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", "authentication.v1.TokenRequest"
)
TOKEN_REQUEST = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}


class AccessReviews:
    """Answers reviews of users."""

    def __init__(self, authenticator: Authenticator, authorizer: RbacAuthorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def answer(self, resource: ApiResource, tree: Tree, user: ClusterUser, namespace: str) -> Tree:
        """The review with its result as status."""
        spec = tree.get("spec") or {}
        match resource.kind:
            case "TokenReview":
                status = self._token_status(spec)
            case "SelfSubjectReview":
                status = {"userInfo": user.as_tree()}
            case "SelfSubjectRulesReview":
                status = self._authorizer.rules(user, str(spec.get("namespace") or ""))
            case "SelfSubjectAccessReview":
                status = self._access_status(user, spec, "")
            case _:
                about = ClusterUser(
                    str(spec.get("user") or ""),
                    tuple(map(str, spec.get("groups") or ())),
                    str(spec.get("uid") or ""),
                )
                status = self._access_status(about, spec, namespace)
        return {**tree, "metadata": tree.get("metadata") or {}, "status": status}

    def _token_status(self, spec: Mapping[str, Any]) -> Tree:
        audiences = tuple(map(str, spec.get("audiences") or ()))
        user = self._authenticator.user_of_token(str(spec.get("token") or ""), audiences)
        if user is None:
            return {"authenticated": False}
        heard = list(audiences or (AUDIENCE,))
        return {"authenticated": True, "user": user.as_tree(), "audiences": heard}

    def _access_status(self, user: ClusterUser, spec: Mapping[str, Any], namespace: str) -> Tree:
        decision = self._authorizer.decide(user, question_of_review(spec, namespace))
        status: Tree = {"allowed": decision.allowed}
        return {**status, "reason": decision.reason} if decision.reason else status

    def make_token(
        self, registry: ObjectRegistry, namespace: str, name: str, body: Mapping[str, Any]
    ) -> Tree:
        """A new token of a service account, as a TokenRequest; raises StatusError."""
        record = registry.get(ACCOUNTS, namespace, name)
        spec = body.get("spec") or {}
        seconds = spec.get("expirationSeconds")
        seconds = DEFAULT_S if seconds is None else int(seconds)
        for fault in token_time_faults(seconds):
            cause = invalid_value("spec.expirationSeconds", seconds, fault)
            raise invalid(_TOKEN_REQUESTS, "", [cause])
        audiences = tuple(map(str, spec.get("audiences") or (AUDIENCE,)))
        tokens = self._authenticator.service_tokens
        made = tokens.make(namespace, name, record.uid, seconds, audiences)
        ends = rfc3339(datetime.fromtimestamp(made.ends, UTC))
        metadata = {"name": name, "namespace": namespace, "creationTimestamp": registry.now()}
        given = {**spec, "audiences": list(audiences), "expirationSeconds": seconds}
        status = {"token": made.text, "expirationTimestamp": ends}
        return {**TOKEN_REQUEST, "metadata": metadata, "spec": given, "status": status}


def question_of_review(spec: Mapping[str, Any], namespace: str) -> AccessQuestion:
    """The question of a review."""
    path = spec.get("nonResourceAttributes")
    if path:
        return AccessQuestion(str(path.get("verb") or ""), path=str(path.get("path") or ""))
    asked = spec.get("resourceAttributes") or {}

    def text(name: str) -> str:
        return str(asked.get(name) or "")

    return AccessQuestion(
        text("verb"),
        text("namespace") or namespace,
        text("group"),
        text("resource"),
        text("subresource"),
        text("name"),
    )
