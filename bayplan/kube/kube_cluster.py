"""Kube cluster: a cluster behind an API server for the scheduler, on the scheduler's thread.

It reads the objects that the reflectors delivered; writes are passed to a sender, which works on another thread. Slow
operations return a future of the scheduler's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from ..api.meta import KubeObject
from ..api.pod import Pod, PodCondition
from ..api.pod_groups import SCHEDULING_V1ALPHA2, GroupPreemptor, PodGroup
from ..api.wire.decode import decode
from ..api.wire.encode import to_dict
from ..clock import Clock
from ..cluster.objects import pod_life
from ..cluster.objects.object_index import ClusterObject, ObjectIndex, describe
from ..errors import ApiError, ConflictError, DecodeError, NotFoundError
from ..framework.handle import PodEvent, preempted_event
from .connection import (
    JSON,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    UnreachableError,
    decode_tree,
)
from .pod_statuses import (
    BINDING,
    STATUS_PATCH,
    ApiCalls,
    PodStatuses,
    group_status_patch,
    object_patch,
    status_patch,
)
from .reflector import DELETED, ObjectEvent
from .retry_backoff import Backoff
from .sender import Job, Order, PostOrder, Result, Sender
from .watched_kinds import RESOURCES, path_of

# Group statuses: conditions of PodGroups, one patch per group at a time.
# Mirrors PatchPodGroupStatus of pkg/scheduler/util/utils.go: a strategic merge patch with the conditions that
# differ. A write that arrives while another of the same group is running follows it.

Send = Callable[[PodGroup, bytes], Awaitable[bytes]]


class GroupStatuses:
    """Used on the scheduler's thread alone.

    `newest` returns a group as last seen or written, and raises NotFoundError if there is none; `stored` receives the
    API server's response.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        send: Send,
        newest: Callable[[PodGroup], PodGroup],
        stored: Callable[[PodGroup, bytes], PodGroup],
    ) -> None:
        self._loop = loop
        self._send = send
        self._newest = newest
        self._stored = stored
        self._last: dict[str, asyncio.Task[PodGroup]] = {}
        """The last write of each group, by uid, until it has ended."""

    def write(self, group: PodGroup) -> Awaitable[PodGroup]:
        """Merge the group's conditions into its status; the future raises ApiError when the cluster refuses."""
        task = self._loop.create_task(self._write(group, self._last.get(group.uid)))
        self._last[group.uid] = task
        task.add_done_callback(lambda done: self._ended(group.uid, done))
        return task

    async def _write(self, group: PodGroup, before: asyncio.Task[PodGroup] | None) -> PodGroup:
        if before is not None:
            await asyncio.wait([before])
        newest = self._newest(group)
        patch = group_status_patch(newest, group)
        return newest if patch is None else self._stored(group, await self._send(group, patch))

    def _ended(self, uid: str, done: asyncio.Task[PodGroup]) -> None:
        if self._last.get(uid) is done:
            del self._last[uid]


Stored = TypeVar("Stored", bound="KubeObject | Pod")

CONFLICT_WAIT_S = 1.0
"""Seconds that a conflict is held back, until the watch shows its cause."""
LOOK_S = 0.02
"""Polling interval."""


class KubeCluster(ObjectIndex):
    """Is a `Lister` and a `Client`; used on the scheduler's thread alone."""

    remembers_deaths = False
    group_version = SCHEDULING_V1ALPHA2
    """The API version in which the status of PodGroups is written."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        order: Callable[[Order | PostOrder], None],
        tell: Callable[[PodEvent], None],
    ) -> None:
        super().__init__()
        self._loop = loop
        self._clock = clock
        self._order = order
        self._tell = tell
        self._written: dict[tuple[str, str, str], Any] = {}
        """Objects as the API server returned them, until a watch shows them."""
        self.calls: ApiCalls | None = None
        """Counts bindings and writes of statuses, if they are counted."""
        self._statuses = PodStatuses(
            self._send_status, self._newest, self._stored, lambda: pod_life.timestamp(clock)
        )

        self._group_statuses = GroupStatuses(
            loop, self._send_group_status, self._newest_group, self._stored
        )

    # Incoming changes

    def apply(self, changes: Iterable[ObjectEvent]) -> None:
        """Apply changes of the cluster and notify the watchers."""
        for kind, obj in changes:
            if self._written:
                self._seen(obj)
            if kind != DELETED:
                self.put_in(obj)
            elif self.get(obj.kind, obj.namespace, obj.name) is not None:
                self.take_out(obj)

    def answer(self, result: Result) -> None:
        """Resolve the future of an order."""
        future, answer, problem = result
        if future.done():
            return  # no longer awaited
        if problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(answer)

    # Pods

    def bind(self, pod: Pod, node_name: str) -> Awaitable[None]:
        """Bind the pod to a node; the future raises ApiError when the cluster refuses."""
        path, body = path_and_body(pod, node_name)
        future = self._loop.create_future()
        order = PostOrder(path, body, future, partial(confirm_binding, pod, node_name))

        def send() -> None:
            if self.calls is not None:
                self.calls.count(BINDING, future)
            self._order(order)

        self._statuses.bind_after(pod, send)
        return future

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> Awaitable[None] | None:
        """Mark `victim` as preempted by `preemptor`, and delete it; a missing one is ignored."""
        stored = self.get("Pod", victim.namespace, victim.name)
        if stored is None or stored.is_terminating or stored.uid != victim.uid:
            return None
        condition = pod_life.disrupted(stored, preemptor).condition("DisruptionTarget")
        patch = status_patch(stored, condition, None, pod_life.timestamp(self._clock))
        path = path_of(stored)
        body = msgspec.json.encode({"preconditions": {"uid": stored.uid}})

        async def job(sender: Sender) -> None:
            try:
                if patch is not None:
                    await sender.patch(f"{path}/status", patch, STRATEGIC_MERGE_PATCH)
                await sender.request("DELETE", path, body)
            except (NotFoundError, ConflictError):
                pass  # the pod was deleted, and another may have its name

        return self._evicted(self._ask(job, f"evict {stored.key}"), stored, preemptor)

    async def _evicted(
        self, done: Awaitable[Any], victim: Pod, preemptor: Pod | GroupPreemptor
    ) -> None:
        await done
        self.record_event(preempted_event(victim, preemptor))

    def patch_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Set a condition of the pod and its nominated node, each unless None; an unchanged status
        is not written."""
        self._statuses.write(pod, condition, nominated_node_name)

    def clear_nomination(self, pod: Pod) -> None:
        """Clear the nominated node in the pod's status."""
        stored = self.get("Pod", pod.namespace, pod.name)
        if stored is not None and stored.uid == pod.uid:
            self.patch_status(stored, None, "")

    def _send_status(self, pod: Pod, patch: bytes) -> asyncio.Future[bytes]:
        path = path_of(pod, "status")
        sent = self._ask(lambda s: s.patch(path, patch, STRATEGIC_MERGE_PATCH), f"patch {path}")
        if self.calls is not None:
            self.calls.count(STATUS_PATCH, sent)
        return sent

    def count_calls(self) -> ApiCalls:
        """Count bindings and writes of statuses from now on; returns the counters."""
        self.calls = ApiCalls(self._statuses.pending)
        return self.calls

    def _newest(self, pod: Pod) -> Pod:
        """The pod as last seen, or as last written."""
        known: Pod | None = self._written.get((pod.kind, pod.namespace, pod.name))
        known = known or self.get(pod.kind, pod.namespace, pod.name)
        return known if known is not None and known.uid == pod.uid else pod

    def record_event(self, event: PodEvent) -> None:
        """Write an event about a pod."""
        self._tell(event)

    # Other objects

    def update(self, obj: Stored) -> Awaitable[Stored]:
        """Write the difference to the object's original."""
        return self._write(obj, "")

    def update_status(self, obj: Stored) -> Awaitable[Stored]:
        """The same for the status. The conditions of a PodGroup are merged, at once and whatever else has changed."""
        if isinstance(obj, PodGroup):
            return cast("Awaitable[Stored]", self._group_statuses.write(obj))
        return self._write(obj, "status")

    def _send_group_status(self, group: PodGroup, patch: bytes) -> asyncio.Future[bytes]:
        path = path_of(group, "status", self.group_version)
        return self._ask(lambda s: s.patch(path, patch, STRATEGIC_MERGE_PATCH), f"patch {path}")

    def _newest_group(self, group: PodGroup) -> PodGroup:
        """The latest group, observed or written here; raises NotFoundError if it was deleted."""
        key = (group.kind, group.namespace, group.name)
        known: PodGroup | None = self._written.get(key) or self.get(*key)
        if known is None or known.uid != group.uid:
            raise NotFoundError(f"{describe(group)} not found")
        return known

    async def create(self, obj: Stored) -> Stored:
        """Write a new object."""
        path = RESOURCES[obj.kind].path_of(obj.namespace, "")
        body = msgspec.json.encode(to_dict(obj))
        answer = await self._ask(lambda s: s.request("POST", path, body), f"create {obj.key}")
        return self._stored(obj, answer)

    async def delete(self, obj: ClusterObject) -> None:
        """Delete the object, if it is still the same one."""
        body = msgspec.json.encode({"preconditions": {"uid": obj.uid}})
        path = path_of(obj)
        await self._ask(lambda s: s.request("DELETE", path, body, JSON), f"delete {path}")

    async def _write(self, obj: Stored, subresource: str) -> Stored:
        old = self._base(obj)
        patch, path = object_patch(old, obj), path_of(obj, subresource)
        try:
            answer = await self._ask(lambda s: s.patch(path, patch, MERGE_PATCH), f"patch {path}")
        except ConflictError:
            await self._until_changed(old)
            raise
        return self._stored(obj, answer)

    def _base(self, obj: Stored) -> Stored:
        """The original of `obj`: the known object, or the one just written."""
        key = (obj.kind, obj.namespace, obj.name)
        listed = self.get(*key)
        for old in (listed, self._written.get(key)):
            if old is not None and (
                isinstance(obj, Pod) or old.resource_version == obj.resource_version
            ):
                base: Stored = old
                return base
        if listed is None:
            raise NotFoundError(f"{describe(obj)} not found")
        raise ConflictError(f"{describe(obj)} was changed since it was read")

    async def _until_changed(self, old: KubeObject | Pod) -> None:
        """Wait until a watch shows another version than `old`, up to a limit."""
        end = self._loop.time() + CONFLICT_WAIT_S
        while self._loop.time() < end:
            listed = self.get(old.kind, old.namespace, old.name)
            if listed is None or listed.resource_version != old.resource_version:
                return
            await asyncio.sleep(LOOK_S)

    def _stored(self, obj: Stored, answer: bytes) -> Stored:
        try:
            stored: Any = decode(answer)
        except DecodeError as error:
            raise ApiError(f"{obj.kind} {obj.key}: cannot read what was stored: {error}") from None
        listed = self.get(stored.kind, stored.namespace, stored.name)
        has_left = listed is None and isinstance(stored, Pod)
        if not has_left and not _is_newer(listed, stored):
            self._written[stored.kind, stored.namespace, stored.name] = stored
        result: Stored = stored
        return result

    def _seen(self, obj: Any) -> None:
        """A watch shows the object: drop our written copy unless it is newer."""
        key = (obj.kind, obj.namespace, obj.name)
        written = self._written.get(key)
        if written is not None and _is_newer(obj, written):
            del self._written[key]

    def _ask(self, job: Job, what: str) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        self._order(Order(job, future, what))
        return future


def _is_newer(listed: Any, written: Any) -> bool:
    """Whether the listed object is not older than the written one, or another object; versions are
    numbers."""
    if listed is None:
        return False
    if listed.uid != written.uid:
        return True
    shown, wrote = listed.resource_version, written.resource_version
    if shown.isdecimal() and wrote.isdecimal():
        return int(shown) >= int(wrote)
    return bool(shown == wrote)


FIRST_WAIT_S, MAX_WAIT_S = 0.4, 0.8


def path_and_body(pod: Pod, node_name: str) -> tuple[str, bytes]:
    """The path and body of a binding."""
    # Names and uids consist of letters, digits, dots and hyphens: nothing to escape.
    body = (
        f'{{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{pod.name}",'
        f'"namespace":"{pod.namespace}","uid":"{pod.uid}"}},'
        f'"target":{{"kind":"Node","name":"{node_name}"}}}}'
    )
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding", body.encode()


async def confirm_binding(pod: Pod, node_name: str, sender: Sender, error: ApiError) -> None:
    """Return if the pod was bound to its intended node; raise `error`, the apparent failure, if it was not.

    A broken connection leaves open whether a binding arrived, and repeating one that arrived is rejected.
    Treating that as a failure would free the resources of the pod until a watch corrects it. So the pod is read,
    if necessary once the server is back, and stays assumed until then. kube-scheduler does not do this.
    """
    backoff = Backoff(FIRST_WAIT_S, MAX_WAIT_S)
    while True:
        try:
            stored = decode_tree(await sender.request("GET", path_of(pod)))
            break
        except ApiError as problem:
            if not _is_passing(problem):
                raise error from None
        await sender.pause(backoff.next_s())
    uid = (stored.get("metadata") or {}).get("uid")
    if (uid, (stored.get("spec") or {}).get("nodeName")) != (pod.uid, node_name):
        raise error


def _is_passing(problem: ApiError) -> bool:
    """Whether the pod may be readable later: the server is away, fails, or has too many requests."""
    return isinstance(problem, UnreachableError) or problem.code == 429 or problem.code >= 500
