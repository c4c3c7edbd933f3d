"""Client certificates: who a client is, by its certificate or by the headers of a trusted proxy.

Mirrors staging/src/k8s.io/apiserver/pkg/authentication/request/{x509,headerrequest}: a proxy whose certificate is
signed by the proxies' authority names the user in headers; otherwise the common name of a certificate that the clients'
authority signed is the user, its organizations are the groups.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import web

Tree = dict[str, Any]


class ClientAuthorities(msgspec.Struct):
    """Authorities of clients and of proxies, and the headers in which proxies name the user.

    `context` is the server's; it requests a certificate of clients once there is an authority.
    """

    context: ssl.SSLContext
    names: Sequence[str] = ()
    """Common names of proxies; empty for any that the authority signed."""
    user_headers: Sequence[str] = ()
    uid_headers: Sequence[str] = ()
    group_headers: Sequence[str] = ()
    extra_prefixes: Sequence[str] = ()
    _clients: set[bytes] = msgspec.field(default_factory=set)
    _proxies: set[bytes] = msgspec.field(default_factory=set)

    def trust_clients(self, pem: str) -> None:
        """Accept certificates signed by these authorities; ssl.SSLError or ValueError when it is not PEM."""
        self._clients |= self._load(pem)

    def trust_proxies(self, pem: str) -> None:
        """Accept proxies whose certificate these authorities signed."""
        self._proxies |= self._load(pem)

    def _load(self, pem: str) -> set[bytes]:
        self.context.load_verify_locations(cadata=pem)
        self.context.verify_mode = ssl.CERT_OPTIONAL
        probe = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        probe.load_verify_locations(cadata=pem)
        return set(probe.get_ca_certs(binary_form=True))

    def user(self, request: web.Request) -> Tree | None:
        """The user, as in the spec of a SubjectAccessReview; None without a certificate that counts."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport else None
        if connection is None:
            return None
        chain = _verified_chain(connection)
        if not chain:
            return None
        subject = _subject(connection.getpeercert())
        if self._proxies.intersection(chain):
            return self._by_headers(request, subject)
        if self._clients.intersection(chain):
            name = subject.get("commonName", [""])[0]
            groups = [*subject.get("organizationName", []), "system:authenticated"]
            return {"user": name, "groups": groups} if name else None
        return None

    def _by_headers(self, request: web.Request, subject: dict[str, list[str]]) -> Tree | None:
        name = subject.get("commonName", [""])[0]
        if self.names and name not in self.names:
            return None
        user = _first(request, self.user_headers)
        if not user:
            return None
        groups = [
            value for header in self.group_headers for value in request.headers.getall(header, [])
        ]
        found: Tree = {"user": user, "groups": [*groups, "system:authenticated"]}
        uid = _first(request, self.uid_headers)
        if uid:
            found["uid"] = uid
        extra: dict[str, list[str]] = {}
        for header, value in request.headers.items():
            for prefix in self.extra_prefixes:
                if header.lower().startswith(prefix.lower()):
                    extra.setdefault(unquote(header[len(prefix) :].lower()), []).append(value)
        if extra:
            found["extra"] = extra
        return found


def _first(request: web.Request, headers: Sequence[str]) -> str:
    return next((request.headers[one] for one in headers if request.headers.get(one)), "")


def _subject(certificate: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in (certificate or {}).get("subject", ()):
        for name, value in part:
            found.setdefault(name, []).append(value)
    return found


def _verified_chain(connection: Any) -> list[bytes]:
    """The certificates of the client's chain, up to the authority, DER; empty without a certificate."""
    if hasattr(connection, "get_verified_chain"):  # since Python 3.13
        chain: list[bytes] = connection.get_verified_chain()
        return chain
    found = connection._sslobj.get_verified_chain() or []
    return [ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in found]
