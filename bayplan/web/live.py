"""Live: the page of a live cluster, served over HTTP.

The page itself holds no cluster data and is public; its requests for data need authorization.
Nothing is watched until the first request. A server provides a `PageSource` and mounts
`page_routes`.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from secrets import token_urlsafe
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web

from ..api.pod import Pod
from ..api.pod_groups import PodGroup
from ..clock import Clock
from ..cluster.objects.object_index import WatchHandler
from ..errors import BayplanError
from ..scheduler import Inquiry, Scheduler
from .access import foreign_reason
from .accounts import MakeView, account_of_inquiry, remedies_of
from .assembly import assemble, policy_of
from .delegated import ExpiringCache
from .history import FORMAT, History, groups_tree
from .route_server import WebServer
from .value_numbers import Tree

PAUSE_S = 0.4
"""Seconds for which changes are collected before a long-poll returns."""
PATIENCE_S = 25.0
"""Seconds that a long-poll waits without changes."""
MOST_EVENTS = 100_000
"""A longer history is dropped; a new one starts with the next request, and its pages reload."""
IDLE_S = 300.0
"""Time without requests after which the history is dropped."""
MOST_VIEWED = 5_000
"""In a cluster with more nodes and pods, counterfactuals would take too long."""
COUNTS = ("texts", "resources", "nodes", "kinds", "rows", "refusals", "pods", "events")
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

FRESH_S = 30.0
"""Age up to which an answer is given again; metrics-server measures every 15 s."""
UseByPod = Mapping[tuple[str, str], Mapping[str, int]]
"""By namespace and name of a pod: cpu in milli, memory in bytes."""
ReadUse = Callable[[], Awaitable[UseByPod]]
"""Reads the use; raises BayplanError if there is none."""

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
AnswerBody = Callable[[bytes], Tree]
"""The answer to the body of a request; raises BayplanError when it is wrong."""
Allows = Callable[[web.Request], Awaitable[bool]]
"""Whether the request may read cluster data."""


class PageCluster(Protocol):
    """The page's view of a cluster."""

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None."""

    def watch(self, handler: WatchHandler, replay: bool = True) -> None:
        """Notify `handler` of every change; with `replay`, first of all existing objects."""


class RunsWork(Protocol):
    """Runs a function on the thread of the cluster and the scheduler."""

    async def __call__(self, work: Callable[[], Answer]) -> Answer:
        """The function's result."""


async def run_here(work: Callable[[], Answer]) -> Answer:
    """Cluster, scheduler and server share one thread."""
    return work()


class PageSource(msgspec.Struct, frozen=True):
    """The source of a live page. `scheduler` is called each time, as there may be none at first.

    While `is_ready` is false, `run` is not called.
    """

    cluster: PageCluster
    clock: Clock
    scheduler: Callable[[], Scheduler | None] = lambda: None
    run: RunsWork = run_here
    make_view: MakeView | None = None
    """Makes the cluster view for counterfactuals; None if they are not computed."""
    is_ready: Callable[[], bool] = lambda: True
    begin_question: Callable[[], AnswerBody] | None = None
    """Reads the cluster, and returns a function that answers a question about it, on any thread; None for no
    questions.
    """
    edit: AnswerBody | None = None
    """Handles a request to change an object; None if nothing can be changed."""
    read_use: ReadUse | None = None
    """Reads the measured use of pods; None if nothing is measured."""


def token_check(token: str) -> Allows:
    """Allows requests with the token, as `Authorization: Bearer`."""

    async def allows(request: web.Request) -> bool:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        return hmac.compare_digest(given.encode(), token.encode())

    return allows


async def anyone(request: web.Request) -> bool:
    """Allows every request: the server has authorized it already."""
    return True


def page_routes(source: PageSource, allows: Allows, prefix: str = "") -> list[web.RouteDef]:
    """The page at `prefix`/, and its data routes below. `prefix` is empty or begins with a slash."""
    feed = Feed(source)

    def guarded(answer: Callable[[web.Request], Awaitable[Tree]]) -> Any:
        async def handle(request: web.Request) -> web.Response:
            if not await allows(request):
                return _json({"error": "Unauthorized"}, 401)
            return _json(await answer(request))

        return handle

    def posted(answer: Callable[[bytes], Awaitable[Tree]]) -> Any:
        async def handle(request: web.Request) -> web.Response:
            foreign = foreign_reason(request)
            if foreign:
                return _json({"error": foreign}, 403)
            if not await allows(request):
                return _json({"error": "Unauthorized"}, 401)
            try:
                return _json(await answer(await request.read()))
            except BayplanError as error:
                return _json({"error": str(error)}, 422)

        return handle

    async def page(request: web.Request) -> web.Response:
        policy = f"{policy_of(is_live=True)}; frame-ancestors 'none'"
        text = assemble({"isLive": True}, is_live=True)
        headers = {**HEADERS, "Content-Security-Policy": policy}
        return web.Response(text=text, content_type="text/html", headers=headers)

    routes = [
        web.get(f"{prefix}/", page),
        web.get(f"{prefix}/state", guarded(feed.state)),
        web.get(f"{prefix}/changes", guarded(feed.changes)),
        web.get(f"{prefix}/pod", guarded(feed.pod)),
    ]
    if source.begin_question is not None:
        routes.append(web.post(f"{prefix}/ask", posted(feed.ask)))
    if source.read_use is not None:
        routes.append(web.get(f"{prefix}/use", guarded(feed.use)))
    if source.edit is not None:
        routes.append(web.post(f"{prefix}/edit", posted(feed.edit)))
    if prefix:

        async def redirect(request: web.Request) -> web.Response:
            raise web.HTTPFound(f"{prefix}/")

        routes.append(web.get(prefix, redirect))
    return routes


def _json(tree: Tree, status: int = 200) -> web.Response:
    body = msgspec.json.encode(tree)
    return web.Response(body=body, status=status, content_type="application/json", headers=HEADERS)


async def _read_tree(read_use: ReadUse) -> dict[str, Any]:
    """The use by `namespace/name`; a `problem` in place of it if it cannot be read."""
    try:
        found = await read_use()
    except BayplanError as error:
        log.warning("measured use: %s", error)
        return {"use": {}, "problem": str(error)}
    return {"use": {"/".join(pod): dict(amounts) for pod, amounts in found.items()}}


class Feed:
    """The data of pages, from the first request on. It only reads the cluster and the scheduler."""

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self._history: History | None = None
        self._epoch = 0
        self._asked_at_s = 0.0
        self._is_watching = False
        self._asking = asyncio.Lock()
        clock = source.clock
        self._use: ExpiringCache[dict[str, Any]] = ExpiringCache(
            clock, lambda _: FRESH_S * clock.speed
        )

    # Requests

    async def state(self, request: web.Request) -> Tree:
        """The complete history."""
        return await self._run(self._whole)

    async def changes(self, request: web.Request) -> Tree:
        """The entries after the offsets in the query; long-polls for a while."""
        known = {name: _count(request.query.get(name, "")) for name in (*COUNTS, "epoch")}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_S
        while True:
            tale = await self._run(lambda: self._since(known))
            is_news = tale["epoch"] != known["epoch"] or tale["events"]["t"]
            if is_news or loop.time() > deadline:
                return tale
            await asyncio.sleep(PAUSE_S)

    async def pod(self, request: web.Request) -> Tree:
        """The scheduler's result for a pod now, without side effects."""
        namespace, name = request.query.get("namespace", ""), request.query.get("name", "")
        return await self._run(lambda: self._judge(namespace, name))

    async def use(self, request: web.Request) -> Tree:
        """The measured use of pods."""
        read_use = self._source.read_use
        assert read_use is not None, "there is a route only where use is read"
        return await self._use.get("", lambda: _read_tree(read_use))

    async def ask(self, body: bytes) -> Tree:
        """Consequences of a change, computed outside the scheduler, one question at a time."""
        begin = self._source.begin_question
        assert begin is not None, "there is a route only with questions"
        async with self._asking:
            return await asyncio.to_thread(await self._run(begin), body)

    async def edit(self, body: bytes) -> Tree:
        """Change an object of the cluster."""
        edit = self._source.edit
        assert edit is not None, "there is a route only where objects can be changed"
        return await self._run(lambda: edit(body))

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        if not self._source.is_ready():
            raise web.HTTPServiceUnavailable(text="the cluster is not loaded yet, or no longer\n")
        return await self._source.run(work)

    # On the scheduler's thread

    def _whole(self) -> Tree:
        history = self._up_to_date()
        return {
            "format": FORMAT,
            "isLive": True,
            "epoch": self._epoch,
            "started": history.started.isoformat(),
            "release": history.release,
            "can": {
                "ask": self._source.begin_question is not None,
                "edit": self._source.edit is not None,
                "use": self._source.read_use is not None,
            },
            **history.first_state(),
            **history.told({}),
            "groups": groups_tree(live_groups(self._source.cluster), history),
        }

    def _since(self, known: dict[str, int]) -> Tree:
        history = self._up_to_date()
        if known["epoch"] != self._epoch:
            return {"epoch": self._epoch, "events": {"t": ()}}
        told = history.told(known)
        if told["events"]["t"]:
            told["groups"] = groups_tree(live_groups(self._source.cluster), history)
        return {"epoch": self._epoch, **told}

    def _judge(self, namespace: str, name: str) -> Tree:
        source, history = self._source, self._up_to_date()
        pod = source.cluster.get("Pod", namespace, name)
        if pod is None:
            return {"when": "now", "error": "The pod no longer exists."}
        scheduler = source.scheduler()
        if scheduler is None or pod.scheduler_name not in scheduler.profiles:
            return {"when": "now", "error": "No scheduler here is responsible for the pod."}
        when = "like" if pod.node_name else "now"
        asked: Pod = pod.replace(node_name="") if pod.node_name else pod
        try:
            inquiry = Inquiry(scheduler, asked)
            account = account_of_inquiry(inquiry, history.numbering.nodes.known, when)
        except BayplanError as error:
            return {"when": when, "error": str(error)}
        is_small = inquiry.evaluated_nodes + len(history.now.state) <= MOST_VIEWED
        if source.make_view is not None and not inquiry.feasible_nodes and is_small:
            view = source.make_view()
            account["remedies"] = remedies_of(view, asked, history.numbering.nodes.known)
        return account

    def _up_to_date(self) -> History:
        """The history, started on the first request, or again after it was dropped."""
        self._asked_at_s = self._source.clock.monotonic()
        if not self._is_watching:
            self._is_watching = True
            self._source.cluster.watch(_Follower(self.followed), replay=False)
        if self._history is None or len(self._history.events) > MOST_EVENTS:
            self._history = self._begin()
            self._epoch = secrets.randbelow(1 << 48) + 1
        self._history.sync()
        return self._history

    def _begin(self) -> History:
        source = self._source
        history = History(source.clock)
        history.scheduler = source.scheduler()
        for kind in ("Node", "Pod"):
            for obj in source.cluster.list(kind):
                history.on_add(obj)
        history.begin()
        return history

    def followed(self) -> History | None:
        """The history that receives changes; one without recent requests is dropped here."""
        history = self._history
        if history is not None:
            idle_s = self._source.clock.monotonic() - self._asked_at_s
            if idle_s > IDLE_S * self._source.clock.speed or len(history.events) > MOST_EVENTS:
                history = self._history = None
        return history


class _Follower:
    """Forwards changes to the current history, since a cluster watch cannot be removed."""

    def __init__(self, followed: Callable[[], History | None]) -> None:
        self._followed = followed

    def on_add(self, obj: Any) -> None:
        if (history := self._followed()) is not None:
            history.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        if (history := self._followed()) is not None:
            history.on_update(old, new)

    def on_delete(self, obj: Any) -> None:
        if (history := self._followed()) is not None:
            history.on_delete(obj)


def _count(text: str) -> int:
    """A number of the query; 0 when it is invalid."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


class PageServer(WebServer):
    """Serves the page of `source` on the loopback; its address has a secret in the fragment, which browsers do not
    send."""

    def __init__(self, source: PageSource) -> None:
        self._token = token_urlsafe(24)
        super().__init__(page_routes(source, token_check(self._token)), grace_s=0.1)

    @property
    def url(self) -> str:
        """The address to open, once started."""
        return f"{super().url}/#token={self._token}"


# Pod groups


class PageGroup(msgspec.Struct, frozen=True):
    """A pod group: where its members are, and why some wait."""

    namespace: str
    name: str
    has_started: bool
    place: str
    cause: str
    uids: Sequence[str]
    """The uids of its members."""


def live_groups(cluster: PageCluster) -> Iterator[PageGroup]:
    """The groups of a cluster as they are now; the cause is the scheduler's text in the condition of a group."""
    groups = [group for group in cluster.list("PodGroup") if isinstance(group, PodGroup)]
    if not groups:
        return
    members: dict[tuple[str, str], list[Pod]] = {}
    for pod in cluster.list("Pod"):
        reference = pod.spec.scheduling_group
        if reference is not None and not pod.is_finished:
            members.setdefault((pod.namespace, reference.pod_group_name), []).append(pod)
    for group in groups:
        pods = members.get((group.namespace, group.name), [])
        condition = group.scheduled
        has_started = condition is not None and condition.status == "True"
        yield PageGroup(
            group.namespace,
            group.name,
            has_started,
            _place(cluster, group, pods),
            "" if condition is None or has_started else condition.message,
            [pod.uid for pod in pods],
        )


def _place(cluster: PageCluster, group: PodGroup, pods: Sequence[Pod]) -> str:
    """The domains of the group's topology constraint that its members are in; without one, the number of nodes."""
    names = sorted({pod.node_name for pod in pods if pod.node_name})
    if not names:
        return ""
    if not group.topology_keys:
        return names[0] if len(names) == 1 else f"{len(names)} nodes"
    key = group.topology_keys[0]
    nodes = [cluster.get("Node", "", name) for name in names]
    domains = sorted({node.labels.get(key, "") for node in nodes if node is not None})
    return f"{key} {', '.join(domains)}"
