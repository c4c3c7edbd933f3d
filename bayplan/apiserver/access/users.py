"""Users: who sends a request, with the groups that follow from the name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

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
