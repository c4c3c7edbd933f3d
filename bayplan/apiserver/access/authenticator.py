"""Authenticator: the user of a request, from its token and its impersonation headers; tokens of service accounts.

Mirrors k8s.io/apiserver/pkg/endpoints/filters/impersonation.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Iterator
from hashlib import sha256
from secrets import token_hex
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from ...clock import Clock
from ..registry.status_errors import StatusError, bad_request
from ..store.store import Store
from .authorizer import (
    ACCOUNTS,
    ADMIN,
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    AccessQuestion,
    ClusterUser,
    account_of,
    account_user,
)
from .rbac import RbacAuthorizer

_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"
ISSUER = "https://kubernetes.default.svc"
AUDIENCE = "https://kubernetes.default.svc"
DEFAULT_S = 3600
_HEAD = {"alg": "HS256", "typ": "JWT"}


class SignedToken(NamedTuple):
    """A token, and its end in seconds since 1970."""

    text: str
    ends: int


class ServiceTokens:
    """Makes and reads tokens with one key: JSON web tokens (HS256) with the claims of kube-apiserver's.

    A token is valid until its end, and while its service account is the one that it was made for.
    """

    def __init__(self, key: bytes, store: Store, clock: Clock) -> None:
        self._key = key
        self._store = store
        self._clock = clock

    def make(
        self, namespace: str, name: str, uid: str, seconds: int, audiences: tuple[str, ...]
    ) -> SignedToken:
        """A new token for a service account."""
        now = int(self._clock.timestamp())
        claims = {
            "iss": ISSUER,
            "sub": account_user(namespace, name).name,
            "aud": list(audiences or (AUDIENCE,)),
            "iat": now,
            "nbf": now,
            "exp": now + seconds,
            "jti": token_hex(16),
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": uid},
            },
        }
        signed = b".".join(_plain(msgspec.json.encode(part)) for part in (_HEAD, claims))
        return SignedToken((signed + b"." + self._signature(signed)).decode(), now + seconds)

    def user_of(self, text: str, audiences: tuple[str, ...] = (AUDIENCE,)) -> ClusterUser | None:
        """The user of a token for one of the audiences; None unless it is valid."""
        claims = self._claims(text)
        if claims is None:
            return None
        try:
            about = claims["kubernetes.io"]
            namespace, account = about["namespace"], about["serviceaccount"]
            is_current = claims["exp"] > self._clock.timestamp()
            is_for_us = bool(set(claims["aud"]) & set(audiences))
        except (KeyError, TypeError):
            return None
        record = self._store.get("serviceaccounts", (namespace, account["name"]))
        if not is_current or not is_for_us or record is None or record.uid != account["uid"]:
            return None
        return account_user(namespace, account["name"], record.uid)

    def _claims(self, text: str) -> dict[str, Any] | None:
        """The claims of a token that this server has signed."""
        signed, dot, signature = text.encode(errors="surrogateescape").rpartition(b".")
        if not dot or not hmac.compare_digest(signature, self._signature(signed)):
            return None
        try:
            body = signed.partition(b".")[2]
            found = msgspec.json.decode(base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4)))
        except (binascii.Error, msgspec.DecodeError):
            return None
        return found if isinstance(found, dict) else None

    def _signature(self, signed: bytes) -> bytes:
        return _plain(hmac.new(self._key, signed, sha256).digest())


def make_key(token: str) -> bytes:
    """The key of a server whose administrator has this token: with the same token, the same after a restart."""
    return sha256(b"service accounts\0" + (token or token_hex(32)).encode()).digest()


def _plain(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


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
