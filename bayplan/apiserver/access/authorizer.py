"""Authorizer: users, the questions whether they may do something, and kube-apiserver's refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ..registry.status_errors import StatusError


class AccessQuestion(NamedTuple):
    """Whether a verb is allowed: on a resource, or on a path when there is no resource."""

    verb: str
    namespace: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class AccessDecision(NamedTuple):
    """The answer; the reason may be empty."""

    allowed: bool
    reason: str = ""


EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
EVERY_PATH = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def forbidden_error(user: ClusterUser, question: AccessQuestion, reason: str) -> StatusError:
    """The refusal in kube-apiserver's words."""
    if not question.resource:
        text = f'forbidden: User "{user.name}" cannot {question.verb} path "{question.path}"'
        return StatusError(403, "Forbidden", text + (f": {reason}" if reason else ""))
    where = (
        f'in the namespace "{question.namespace}"' if question.namespace else "at the cluster scope"
    )
    what = f'resource "{question.full_resource}" in API group "{question.group}" {where}'
    text = f'User "{user.name}" cannot {question.verb} {what}' + (f": {reason}" if reason else "")
    qualified = f"{question.resource}.{question.group}" if question.group else question.resource
    about = f'{qualified} "{question.name}"' if question.name else qualified
    details = {"name": question.name, "group": question.group, "kind": question.resource}
    found = {key: value for key, value in details.items() if value}
    return StatusError(403, "Forbidden", f"{about} is forbidden: {text}", found)


MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ACCOUNT_PREFIX = "system:serviceaccount:"
ACCOUNTS = "system:serviceaccounts"


class ClusterUser(msgspec.Struct, frozen=True):
    """A user of the cluster."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    def as_tree(self) -> dict[str, Any]:
        """The user as reviews show it."""
        tree: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            tree["uid"] = self.uid
        if self.extra:
            tree["extra"] = {key: list(values) for key, values in self.extra.items()}
        return tree


ADMIN = ClusterUser("bayplan-admin", (MASTERS, AUTHENTICATED))
ANONYMOUS = ClusterUser("system:anonymous", (UNAUTHENTICATED,))


def account_user(namespace: str, name: str, uid: str = "") -> ClusterUser:
    """The user of a service account."""
    groups = (ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED)
    return ClusterUser(f"{ACCOUNT_PREFIX}{namespace}:{name}", groups, uid)


def account_of(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account with this user name; None for other users."""
    if not name.startswith(ACCOUNT_PREFIX):
        return None
    namespace, colon, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
    return (namespace, account) if namespace and colon and account else None
