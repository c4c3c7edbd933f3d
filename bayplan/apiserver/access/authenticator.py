"""Authenticator: the user of a request, from its token and its impersonation headers.

Mirrors k8s.io/apiserver/pkg/endpoints/filters/impersonation.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from ..registry.status_errors import StatusError, bad_request
from .authorizer import (
    ACCOUNTS,
    ADMIN,
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    AccessQuestion,
    ClusterUser,
    account_of,
)
from .rbac import RbacAuthorizer
from .service_tokens import ServiceTokens

_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"


class Impersonation(NamedTuple):
    """The user that a request is to be made as."""

    name: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()


class Authenticator:
    """Finds the users of requests. Without a `token` for the administrator, all are the administrator.

    With `anonymous`, a request without a token is made by system:anonymous.
    """

    def __init__(self, token: str, service_tokens: ServiceTokens, anonymous: bool = False) -> None:
        self._token = token.encode()
        self.service_tokens = service_tokens
        self._anonymous = anonymous

    def user_of(self, authorization: str) -> ClusterUser:
        """The user of the header `Authorization`; raises StatusError (401)."""
        if not self._token:
            return ADMIN
        if not authorization and self._anonymous:
            return ANONYMOUS
        scheme, _, given = authorization.partition(" ")
        found = self.user_of_token(given.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return found

    def user_of_token(self, text: str, audiences: tuple[str, ...] = ()) -> ClusterUser | None:
        """The user of a token; None when it is not valid."""
        given = text.encode(errors="surrogateescape")
        if not self._token or hmac.compare_digest(given, self._token):
            return ADMIN
        if audiences:
            return self.service_tokens.user_of(text, audiences)
        return self.service_tokens.user_of(text)


def read_impersonation(headers: Iterable[tuple[str, str]]) -> Impersonation | None:
    """The headers, in lower case, as one value, None without any; raises StatusError (400)."""
    name, uid, groups, extra = "", "", [], []
    for header, value in headers:
        if not header.startswith("impersonate-"):
            continue
        match header:
            case "impersonate-user":
                name = value
            case "impersonate-uid":
                uid = value
            case "impersonate-group":
                groups.append(value)
            case _ if header.startswith(_EXTRA):
                extra.append((unquote(header.removeprefix(_EXTRA)), value))
    if not name and (uid or groups or extra):
        raise bad_request("requested impersonation without impersonating a user")
    return Impersonation(name, tuple(groups), uid, tuple(extra)) if name else None


def impersonate(
    user: ClusterUser, wanted: Impersonation, authorizer: RbacAuthorizer
) -> ClusterUser:
    """The user that `user` impersonates; raises StatusError (403) when that is not allowed."""
    for question in _questions(wanted):
        authorizer.check(user, question)
    groups = list(wanted.groups)
    account = account_of(wanted.name)
    if account is not None and not groups:
        groups = [ACCOUNTS, f"{ACCOUNTS}:{account[0]}"]
    everyone = UNAUTHENTICATED if wanted.name == ANONYMOUS.name else AUTHENTICATED
    if AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups.append(everyone)
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in wanted.extra:
        extra[key] = (*extra.get(key, ()), value)
    return ClusterUser(wanted.name, tuple(groups), wanted.uid, extra)


def _questions(wanted: Impersonation) -> Iterator[AccessQuestion]:
    """Permissions that the user needs."""
    account = account_of(wanted.name)
    if account is not None:
        yield AccessQuestion("impersonate", account[0], "", "serviceaccounts", "", account[1])
    else:
        yield AccessQuestion("impersonate", "", "", "users", "", wanted.name)
    for group in wanted.groups:
        yield AccessQuestion("impersonate", "", "", "groups", "", group)
    if wanted.uid:
        yield AccessQuestion("impersonate", "", _AUTHENTICATION, "uids", "", wanted.uid)
    for key, value in wanted.extra:
        yield AccessQuestion("impersonate", "", _AUTHENTICATION, "userextras", key, value)
