"""Request handler: one request in, one response out.

Reads are handled here; writes go to `writing`. A response is sent only when everything in it is
durable.
"""

from __future__ import annotations

import base64
import logging
from collections import OrderedDict
from collections.abc import Collection, Sequence
from secrets import token_hex
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ...clock import Clock
from ...cluster.certificates import host_of, is_unforgeable
from ..access.access_reviews import AccessReviews
from ..access.authenticator import Authenticator, impersonate, read_impersonation
from ..access.authorizer import ANONYMOUS, ClusterUser
from ..access.grants import GrantGuard
from ..access.rbac import RbacAuthorizer
from ..registry import scale
from ..registry.object_registry import MADE_BY_PUT, STATUS_WRITES, ObjectRegistry
from ..registry.pod_metrics import METRICS, METRICS_WARNING, RequestedUsage
from ..registry.query_selectors import make_matcher
from ..registry.resource_table import ApiResource
from ..registry.status_errors import (
    StatusError,
    bad_request,
    gone,
    internal,
    method_not_allowed,
    no_such_path,
    too_large,
)
from ..store.records import Record
from ..store.store import Store
from .discovery_documents import answer_discovery
from .http_requests import MAX_BODY, MalformedRequestError, WholeRequest
from .http_server import HttpResponse, ServedConnection
from .openapi import OpenApiDocuments
from .requests import Options, is_number, parse_options, wanted_form
from .responses import View, respond, respond_error, respond_tree, warning_headers
from .targets import Target, parse_target
from .watches import ServedWatch, Watches
from .write_requests import APPLY_PATCH, ObjectRequest, Writing

_NO_CONTAINERS = "bayplan up runs no containers"
REFUSED = {
    "attach": f"{_NO_CONTAINERS}: there is none to attach to",
    "ephemeralcontainers": f"{_NO_CONTAINERS}: there is none to debug",
    "exec": f"{_NO_CONTAINERS}: there is none to execute a command in",
    "log": f"{_NO_CONTAINERS}: there are no logs",
    "portforward": f"{_NO_CONTAINERS}: there is no port to forward to",
}
"""Subresources that need a container, and the messages that refuse them."""
MAX_ANONYMOUS_BODY = 1 << 16
HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
REASONS = {408: "Timeout", 429: "TooManyRequests"}
"""Reasons of refusals by their codes, if it is not BadRequest."""
HEALTHY = HttpResponse(b"ok", 200, {"Content-Type": "text/plain; charset=utf-8"})
Answer = HttpResponse | ServedWatch
log = logging.getLogger(__name__)
MAX_KEPT = 64
KEPT_S = 300.0


class Api:
    """The API of one cluster. `access` refuses pages of other sites; probes need no token."""

    def __init__(
        self,
        registry: ObjectRegistry,
        clock: Clock,
        access: RequestAccess,
        authenticator: Authenticator,
        authorizer: RbacAuthorizer,
    ) -> None:
        self._registry = registry
        self._store = registry.store
        self._clock = clock
        self._access = access
        self._lists = Lists(self._store, clock)
        self._watches = Watches(self._store)
        self._authenticator = authenticator
        self._authorizer = authorizer
        reviews = AccessReviews(authenticator, authorizer)
        self._writing = Writing(registry, reviews, GrantGuard(authorizer))
        self._metrics = RequestedUsage(registry)
        self._documents = OpenApiDocuments(registry.catalog)

    def handle(self, request: WholeRequest, connection: ServedConnection) -> None:
        """Answer a request, once its result is durable; errors are in Kubernetes' form."""
        try:
            answer = self._answer(request)
        except StatusError as error:
            answer = respond_error(error)
        except Exception as error:  # a fault of one request must not end the server
            log.exception("%s %s", request.method, request.path)
            answer = respond_error(internal(f"{type(error).__name__}: {error}"))
        if isinstance(answer, ServedWatch):
            answer.begin(connection)
        elif answer is HEALTHY:
            connection.respond(answer)
        else:
            self._store.when_safe(
                lambda failure: connection.respond(
                    answer if failure is None else respond_error(internal(str(failure)))
                )
            )

    def admit(self, request: WholeRequest) -> HttpResponse | None:
        """The refusal of a request before its body has arrived: the permissions of its sender are checked first."""
        if _is_probe(request):
            return None
        try:
            self._access.check_sender(request)
            user = self._user_of(request)
        except StatusError as error:
            return respond_error(error)
        length = request.header("content-length")
        is_small = length.isdecimal() and int(length) <= MAX_ANONYMOUS_BODY
        if user is ANONYMOUS and not is_small:
            return respond_error(StatusError(401, "Unauthorized", "Unauthorized"))
        return None

    def refuse(self, error: MalformedRequestError) -> HttpResponse:
        """The response to bytes that are no request."""
        if error.code == 413:
            return respond_error(too_large(MAX_BODY))
        reason = REASONS.get(error.code, "BadRequest")
        return respond_error(StatusError(error.code, reason, str(error)))

    def _answer(self, request: WholeRequest) -> Answer:
        self._access.check_sender(request)
        if _is_probe(request):
            return HEALTHY
        user = self._user_of(request)
        target = parse_target(request.method, request.path, request.query, self._registry.catalog)
        self._authorizer.check(user, target.question)
        if target.is_path:
            return self._answer_path(request)
        options = parse_options(request.query)
        self._authorize_creation(request, user, target)
        accept = request.header("accept")
        view = View(target.resource, wanted_form(accept), self._clock, options.include_object)
        return self._dispatch(ObjectRequest(request, target, options, view, user))

    def _user_of(self, request: WholeRequest) -> ClusterUser:
        """The user of a request, who may be impersonated; raises StatusError (401, 403)."""
        user = self._authenticator.user_of(request.header("authorization"))
        wanted = read_impersonation(request.headers)
        return user if wanted is None else impersonate(user, wanted, self._authorizer)

    def _answer_path(self, request: WholeRequest) -> HttpResponse:
        """Discovery, and other documents about the API."""
        if request.method != "GET":
            raise no_such_path()
        path, accept = request.path.rstrip("/"), request.header("accept")
        if path.startswith("/openapi/"):
            return self._documents.answer(path, accept)
        resources = self._registry.catalog.resources
        patch = self._registry.release.patch
        found = answer_discovery(path, accept, request.host, resources, patch)
        if found is None:
            raise no_such_path()
        return found

    def _authorize_creation(self, request: WholeRequest, user: ClusterUser, target: Target) -> None:
        """Check that the user may create an object that a change would create."""
        creates = target.verb == "update" and target.resource.storage in MADE_BY_PUT
        creates |= target.verb == "patch" and request.content_type == APPLY_PATCH
        if creates and not target.subresource:
            key = (target.namespace, target.name)
            if self._store.get(target.resource.storage, key) is None:
                self._authorizer.check(user, target.question._replace(verb="create"))

    def _dispatch(self, asked: ObjectRequest) -> Answer:
        _, target, options, view, _ = asked
        if target.subresource in REFUSED:
            self._registry.get(target.resource, target.namespace, target.name)
            raise bad_request(REFUSED[target.subresource])
        if target.resource.group == METRICS:
            return self._measure(target, options, view)
        if not _serves(target):
            raise method_not_allowed()
        match target.verb:
            case "watch":
                return self._watches.open(target, options, view)
            case "get" | "list":
                return self._read(target, options, view)
            case "create" if not target.name or target.subresource:
                return self._writing.create(asked)
            case "delete" | "deletecollection":
                return self._writing.delete(asked)
            case "update" if target.name:
                return self._writing.update(asked)
            case "patch" if target.name:
                return self._writing.patch(asked)
        raise method_not_allowed()

    def _measure(self, target: Target, options: Options, view: View) -> HttpResponse:
        """Metrics of nodes or pods, with a warning that they are requests."""
        if target.verb not in ("get", "list"):
            raise method_not_allowed()
        records = self._metrics.read(target.resource, target.namespace, target.name)
        headers = warning_headers([METRICS_WARNING])
        if target.name:
            return respond(view.object(records[0]), headers=headers)
        matches = make_matcher(target.resource, options.labels, options.fields)
        found = [record for record in records if matches is None or matches(record)]
        metadata = {"resourceVersion": str(self._store.resource_version)}
        return respond(view.list(found, metadata), headers=headers)

    def _read(self, target: Target, options: Options, view: View) -> HttpResponse:
        resource = target.resource
        if not target.name:
            page = self._lists.read(resource, target.namespace, options)
            return respond(view.list(page.records, page.metadata))
        record = self._registry.get(resource, target.namespace, target.name)
        if target.subresource == "scale":
            return respond_tree(scale.scale_of(resource, record.decode()))
        if target.subresource not in ("", "resize", *STATUS_WRITES):
            raise method_not_allowed()
        return respond(view.object(record))


def _is_probe(request: WholeRequest) -> bool:
    return request.path.rstrip("/").partition("/healthz/")[0] in HEALTH


def _serves(target: Target) -> bool:
    """Whether the resource has the verb there: only reading is possible across namespaces."""
    if target.subresource:
        return True  # decided where its parts are written
    is_of_all = target.resource.is_namespaced and not target.namespace
    if is_of_all and target.verb in ("create", "deletecollection"):
        return False
    return target.verb in target.resource.verbs


class RequestAccess:
    """Checks where requests come from. `hosts` are names that the server has besides its addresses and
    localhost; `has_token` is true if requests must carry one."""

    def __init__(self, has_token: bool = False, hosts: Collection[str] = ()) -> None:
        self._has_token = has_token
        self._hosts = frozenset(host.lower() for host in hosts)

    def check_sender(self, request: WholeRequest) -> None:
        """Reject requests of another site's page; raises StatusError (403)."""
        if not self._is_ours(request.host):
            raise StatusError(403, "Forbidden", f'host "{request.host}" is not this server')
        origin = request.header("origin")
        if request.has_header("origin") and not self._may_send(origin, request.host):
            raise StatusError(403, "Forbidden", f'origin "{origin}" may not use this server')

    def _may_send(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may use the server: its own, and with a token also another
        server of this machine, such as `kubectl proxy`."""
        try:
            sender = urlsplit(origin).netloc
        except ValueError:
            return False
        return sender.lower() == host.lower() or (self._has_token and self._is_ours(sender))

    def _is_ours(self, host: str) -> bool:
        """Whether this is an address, localhost or a name of the server; the port is ignored."""
        name = host_of(host)
        return name in self._hosts or is_unforgeable(name)


class ListPage(NamedTuple):
    """Some objects, and the metadata of the list."""

    records: Sequence[Record]
    metadata: dict[str, Any]


class _Rest(NamedTuple):
    """The rest of a paged list."""

    resource: str
    namespace: str
    records: Sequence[Record]
    resource_version: int
    until: float = 0.0


class Lists:
    """Reads lists from the store, and keeps the rest of paged lists.

    A paged list is consistent: later pages show the state at the first page. Records are immutable, so keeping a list
    means keeping references.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rests: OrderedDict[str, _Rest] = OrderedDict()

    def read(self, resource: ApiResource, namespace: str, options: Options) -> ListPage:
        """The list, or its next page; raises StatusError when that is impossible."""
        if options.continue_token:
            return self._go_on(resource, namespace, options)
        self._check_version(options)
        matches = make_matcher(resource, options.labels, options.fields)
        records = self._store.list(resource.storage, namespace)
        if matches is not None:
            records = [record for record in records if matches(record)]
        version = self._store.resource_version
        return self._page(_Rest(resource.storage, namespace, records, version), options.limit)

    def _check_version(self, options: Options) -> None:
        text, current = options.resource_version, self._store.resource_version
        if not text or text == "0":
            return
        if not is_number(text):
            raise bad_request(f'Invalid value: "{text}": resourceVersion: expected a number')
        if int(text) > current:
            raise from_the_future(int(text), current)
        if options.version_match == "Exact" and int(text) != current:
            raise gone(f"The resourceVersion for the provided list is too old: {text} ({current})")

    def _go_on(self, resource: ApiResource, namespace: str, options: Options) -> ListPage:
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        rest = self._rests.get(_read_token(options.continue_token))
        if (
            rest is None
            or (rest.resource, rest.namespace) != (resource.storage, namespace)
            or rest.until < self._clock.monotonic()
        ):
            raise gone(
                "The provided continue parameter is too old to display a consistent list result."
                " Start the list anew."
            )
        return self._page(rest, options.limit)

    def _page(self, rest: _Rest, limit: int) -> ListPage:
        records, version = rest.records, rest.resource_version
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if limit <= 0 or len(records) <= limit:
            return ListPage(records, metadata)
        token = token_hex(8)
        until = self._clock.monotonic() + KEPT_S * self._clock.speed
        self._rests[token] = rest._replace(records=records[limit:], until=until)
        now = self._clock.monotonic()
        while len(self._rests) > MAX_KEPT or next(iter(self._rests.values())).until < now:
            self._rests.popitem(last=False)
        data = msgspec.json.encode({"v": "bayplan", "rv": version, "rest": token})
        metadata["continue"] = base64.urlsafe_b64encode(data).decode().rstrip("=")
        metadata["remainingItemCount"] = len(records) - limit
        return ListPage(records[:limit], metadata)


def from_the_future(asked: int, current: int) -> StatusError:
    """The error for a resource version from the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": [cause]}, retry_after_s=1)


def _read_token(token: str) -> str:
    try:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return str(msgspec.json.decode(data)["rest"])
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        raise bad_request(f"continue key is not valid: {token}") from None
