"""Api: one request in, one response out.

Reads are handled here; writes go to `writing`. A response is sent only when everything in it is
durable.
"""

from __future__ import annotations

import logging

from ....clock import Clock
from ..access import Authenticator, Authorizer, ClusterUser
from ..access.granting import GrantGuard
from ..access.reviews import AccessReviews
from ..registry import scaling
from ..registry.errors import StatusError, bad_request, internal, method_not_allowed, too_large
from ..registry.metrics import METRICS, METRICS_WARNING, RequestedUsage
from ..registry.registry import MADE_BY_PUT, STATUS_WRITES, ObjectRegistry
from ..registry.selecting import make_matcher
from ..store.journal import StorageError
from .access import RequestAccess
from .answers import View, respond, respond_error, respond_tree, warning_headers
from .discovery import answer_discovery
from .gate import RequestGate, question_of
from .http_requests import MAX_BODY, MalformedRequestError, WholeRequest
from .http_server import HttpResponse, ServedConnection
from .lists import Lists
from .openapi import OpenApiDocuments
from .requests import Options, Target, parse_options, parse_target, wanted_form
from .watches import ServedWatch, Watches
from .writing import APPLY_PATCH, ObjectRequest, Writing

_NO_CONTAINERS = "bayplan up runs no containers"
REFUSED = {
    "attach": f"{_NO_CONTAINERS}: there is none to attach to",
    "ephemeralcontainers": f"{_NO_CONTAINERS}: there is none to debug",
    "exec": f"{_NO_CONTAINERS}: there is none to execute a command in",
    "log": f"{_NO_CONTAINERS}: there are no logs",
    "portforward": f"{_NO_CONTAINERS}: there is no port to forward to",
}
"""Subresources that need a container, and what is said instead."""
HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
HEALTHY = HttpResponse(b"ok", 200, {"Content-Type": "text/plain; charset=utf-8"})
Answer = HttpResponse | ServedWatch
log = logging.getLogger(__name__)


class Api:
    """The API of one cluster. `access` refuses pages of other sites; probes need no token."""

    def __init__(
        self,
        registry: ObjectRegistry,
        clock: Clock,
        access: RequestAccess,
        authenticator: Authenticator,
        authorizer: Authorizer,
    ) -> None:
        self._registry = registry
        self._store = registry.store
        self._clock = clock
        self._access = access
        self._lists = Lists(self._store, clock)
        self._watches = Watches(self._store)
        self._gate = RequestGate(authenticator, authorizer)
        reviews = AccessReviews(authenticator, authorizer)
        self._writing = Writing(registry, reviews, GrantGuard(authorizer))
        self._metrics = RequestedUsage(registry)
        self._documents = OpenApiDocuments(registry.catalog)

    def handle(self, request: WholeRequest, connection: ServedConnection) -> None:
        """Answer a request, once everything that is said is durable; errors are in Kubernetes' form."""
        try:
            answer = self._answer(request)
        except StatusError as error:
            answer = respond_error(error)
        except Exception as error:
            log.exception("%s %s", request.method, request.path)
            answer = respond_error(internal(f"{type(error).__name__}: {error}"))
        if isinstance(answer, ServedWatch):
            answer.begin(connection)
        elif answer is HEALTHY:
            connection.respond(answer)
        else:
            self._store.when_safe(lambda failure: connection.respond(_unless(failure, answer)))

    def refuse(self, error: MalformedRequestError) -> HttpResponse:
        """The response to bytes that are no request."""
        if error.code == 413:
            return respond_error(too_large(MAX_BODY))
        return respond_error(StatusError(error.code, "BadRequest", str(error)))

    def _answer(self, request: WholeRequest) -> Answer:
        self._access.check_sender(request)
        path = request.path.rstrip("/")
        if path.partition("/healthz/")[0] in HEALTH:
            return HEALTHY
        user = self._gate.user_of(request)
        accept = request.header("accept")
        if request.method == "GET":
            if path.startswith("/openapi/"):
                self._gate.check_path(user, request)
                return self._documents.answer(path, accept)
            resources = self._registry.catalog.resources
            found = answer_discovery(path, accept, request.host, resources)
            if found is not None:
                self._gate.check_path(user, request)
                return found
        target = parse_target(path, self._registry.catalog)
        options = parse_options(request.query)
        self._authorize(request, user, target, options)
        view = View(target.resource, wanted_form(accept), self._clock, options.include_object)
        return self._dispatch(ObjectRequest(request, target, options, view, user))

    def _authorize(
        self, request: WholeRequest, user: ClusterUser, target: Target, options: Options
    ) -> None:
        """Check that the user may do this, and create what the request would create on the way."""
        question = question_of(request.method, target, options)
        self._gate.check(user, question)
        creates = request.method == "PUT" and target.resource.storage in MADE_BY_PUT
        creates |= request.method == "PATCH" and request.content_type == APPLY_PATCH
        if creates and not target.subresource:
            key = (target.namespace, target.name)
            if self._store.get(target.resource.storage, key) is None:
                self._gate.check(user, question._replace(verb="create"))

    def _dispatch(self, asked: ObjectRequest) -> Answer:
        request, target, options, view, _ = asked
        if target.subresource in REFUSED:
            self._registry.get(target.resource, target.namespace, target.name)
            raise bad_request(REFUSED[target.subresource])
        if target.resource.group == METRICS:
            return self._measure(request, target, options, view)
        method, verbs = request.method, target.resource.verbs
        if method == "GET" and "get" in verbs:
            if options.is_watch and not target.subresource:
                return self._watches.open(target, options, view)
            return self._read(target, options, view)
        if method == "POST" and (not target.name or target.subresource):
            return self._writing.create(asked)
        if method == "DELETE" and "delete" in verbs:
            return self._writing.delete(asked)
        if target.name and method == "PUT" and "update" in verbs:
            return self._writing.update(asked)
        if target.name and method == "PATCH" and "patch" in verbs:
            return self._writing.patch(asked)
        raise method_not_allowed()

    def _measure(
        self, request: WholeRequest, target: Target, options: Options, view: View
    ) -> HttpResponse:
        """Metrics of nodes or pods, with a warning that says what they are."""
        if request.method != "GET" or options.is_watch:
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
            return respond_tree(scaling.scale_of(resource, record.decode()))
        if target.subresource not in ("", "resize", *STATUS_WRITES):
            raise method_not_allowed()
        return respond(view.object(record))


def _unless(failure: StorageError | None, response: HttpResponse) -> HttpResponse:
    """The response, or why what it says is not durable."""
    return response if failure is None else respond_error(internal(str(failure)))
