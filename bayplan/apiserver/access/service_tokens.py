"""Service tokens: tokens of service accounts, signed by the server, with an end.

They are JSON web tokens (HS256) with the claims of kube-apiserver's. A token is valid until its end,
and while its service account is the one that it was made for.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from hashlib import sha256
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

from ...clock import Clock
from ..store.store import Store
from .authorizer import ClusterUser, account_user

ISSUER = "https://kubernetes.default.svc"
AUDIENCE = "https://kubernetes.default.svc"
DEFAULT_S = 3600
_HEAD = {"alg": "HS256", "typ": "JWT"}


class SignedToken(NamedTuple):
    """A token, and its end in seconds since 1970."""

    text: str
    ends: int


class ServiceTokens:
    """Makes and reads tokens with one key."""

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
