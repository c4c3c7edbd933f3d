"""Delegated: authentication and authorization by the API server.

Mirrors staging/src/k8s.io/apiserver/pkg/{authentication/token/cache,server/options} and the webhook
plugins as kube-scheduler configures them: results are cached for ten seconds, failed requests are
not cached, members of system:masters are allowed everything, and a request without a token is
system:anonymous. When the API server does not respond, access is denied.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote

import msgspec
from aiohttp import web

from ..clock import Clock
from ..errors import BayplanError
from .access import status_response

ALWAYS_ALLOWED_PATHS = ("/healthz", "/readyz", "/livez")
KEPT_S = 10.0
REVIEW_TIMEOUT_S = 10.0
"""Timeout of a review."""
MOST_KEPT = 4096

Tree = dict[str, Any]
Value = TypeVar("Value")

log = logging.getLogger(__name__)


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


class Reviews(Protocol):
    """Sends reviews, which return with their status. Raises ApiError on failure."""

    async def review_token(self, review: Tree) -> Tree:
        """Create a TokenReview."""

    async def review_access(self, review: Tree) -> Tree:
        """Create a SubjectAccessReview."""


class ExpiringCache(Generic[Value]):
    """A cache with expiry, `kept_s` for an answer; concurrent lookups of one key share one request."""

    def __init__(self, clock: Clock, kept_s: Callable[[Value], float]) -> None:
        self._clock = clock
        self._kept_s = kept_s
        self._kept: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()
        self._asked: dict[Hashable, asyncio.Future[Value]] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[Value]]) -> Value:
        """The result for `key`. An exception of `ask` goes to all waiting callers, and is not
        cached."""
        kept = self._kept.get(key)
        if kept is not None and self._clock.monotonic() < kept[0]:
            return kept[1]
        asked = self._asked.get(key)
        if asked is None:
            asked = asyncio.ensure_future(ask())
            self._asked[key] = asked
            asked.add_done_callback(lambda future: self._keep(key, future))
        # One of the waiting callers may be cancelled: the others still need the result.
        return await asyncio.shield(asked)

    def _keep(self, key: Hashable, asked: asyncio.Future[Value]) -> None:
        self._asked.pop(key, None)
        if asked.cancelled() or asked.exception() is not None:
            return
        answer = asked.result()
        self._kept[key] = (self._clock.monotonic() + self._kept_s(answer), answer)
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


class ReviewTimes(NamedTuple):
    """Seconds that answers of the API server are cached."""

    token: float = KEPT_S
    allowed: float = KEPT_S
    denied: float = KEPT_S


DEFAULT_TIMES = ReviewTimes()


class DelegatedAccess:
    """Client certificates, bearer tokens by TokenReview, then the path by SubjectAccessReview."""

    def __init__(
        self,
        reviews: Reviews,
        clock: Clock,
        always_allowed: Sequence[str] = ALWAYS_ALLOWED_PATHS,
        authorities: ClientAuthorities | None = None,
        times: ReviewTimes = DEFAULT_TIMES,
    ) -> None:
        self._reviews = reviews
        self._always_allowed = tuple(path.removeprefix("/") for path in always_allowed)
        self._authorities = authorities
        self._users: ExpiringCache[Tree | None] = ExpiringCache(clock, lambda _: times.token)
        self._decisions: ExpiringCache[str | None] = ExpiringCache(
            clock, lambda problem: times.allowed if problem is None else times.denied
        )

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Return 401 for an invalid token, 403 for a user without access, 500 if the review of it fails."""
        if self._is_always_allowed(request.path):
            return None
        user = await self._user(request)
        if user is None:
            return status_response(401, "Unauthorized", "Unauthorized")
        if "system:masters" in user["groups"]:
            return None
        verb = request.method.lower()
        try:
            problem = await self._problem(user, verb, request.path)
        except (BayplanError, TimeoutError) as error:
            reason = str(error) or "the API server did not answer in time"
            log.error("unable to review the access to %s: %s", request.path, reason)
            text = f'Internal Server Error: "{request.path}": {reason}\n'
            return web.Response(status=500, text=text)
        if problem is None:
            return None
        name, tail = user["user"], f": {problem}" if problem else ""
        text = f'forbidden: User "{name}" cannot {verb} path "{request.path}"{tail}'
        return status_response(403, "Forbidden", text)

    def _is_always_allowed(self, path: str) -> bool:
        """Whether a path is allowed as by --authorization-always-allow-paths: an entry is equal, or a prefix that ends
        with *.
        """
        bare = path.removeprefix("/")
        return any(
            bare.startswith(allowed[:-1]) if allowed.endswith("*") else bare == allowed
            for allowed in self._always_allowed
        )

    async def _user(self, request: web.Request) -> Tree | None:
        """The user, as in the spec of a SubjectAccessReview; None if unauthenticated."""
        if self._authorities is not None:
            certified = self._authorities.user(request)
            if certified is not None:
                return certified
        words = request.headers.get("Authorization", "").strip().split(" ", 1)
        if len(words) != 2 or words[0].lower() != "bearer" or not words[1].strip():
            return {"user": "system:anonymous", "groups": ["system:unauthenticated"]}
        token = words[1].strip()
        # A token is a secret: only its digest is stored.
        key = hashlib.sha256(token.encode()).digest()
        try:
            return await self._users.get(key, lambda: self._ask_for_user(token))
        except (BayplanError, TimeoutError) as error:
            log.warning("unable to review a token: %s", error)
            return None

    async def _ask_for_user(self, token: str) -> Tree | None:
        head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
        async with asyncio.timeout(REVIEW_TIMEOUT_S):
            answer = await self._reviews.review_token({**head, "spec": {"token": token}})
        status = answer.get("status") or {}
        if status.get("authenticated") is not True:
            return None
        user = status.get("user") or {}
        groups = [*(user.get("groups") or [])]
        if "system:authenticated" not in groups:
            groups.append("system:authenticated")
        named = {"user": user.get("username") or "", "groups": groups}
        return named | {name: user[name] for name in ("uid", "extra") if user.get(name)}

    async def _problem(self, user: Tree, verb: str, path: str) -> str | None:
        """None when `user` is allowed, else the reason, which may be empty."""
        spec = {**user, "nonResourceAttributes": {"path": path, "verb": verb}}
        return await self._decisions.get(
            json.dumps(spec, sort_keys=True), lambda: self._ask_for_decision(spec)
        )

    async def _ask_for_decision(self, spec: Tree) -> str | None:
        head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        async with asyncio.timeout(REVIEW_TIMEOUT_S):
            answer = await self._reviews.review_access({**head, "spec": spec})
        status = answer.get("status") or {}
        if status.get("allowed") is True and status.get("denied") is not True:
            return None
        return str(status.get("reason") or "")
