"""Pod statuses: conditions and nominated nodes of pods, one patch per pod at a time, and the patches of other objects.

Mirrors part of pkg/scheduler/backend/api_dispatcher: changes that arrive while a patch of the same
pod is running are merged and follow it. So patches never overtake each other, and each is the
difference to the last written state, not to the last watched one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import msgspec

from ..api.meta import KubeObject
from ..api.pod import Pod, PodCondition, PodStatus
from ..api.pod_groups import PodGroup, PodGroupCondition
from ..api.wire.encode import to_dict
from ..api.wire.whole import merge_difference
from ..errors import ApiError
from ..observe.families import CounterFamily, Family, HistogramFamily, ReadGauge
from ..observe.series import exponential_buckets
from .connection import UnreachableError

log = logging.getLogger(__name__)

Send = Callable[[Pod, bytes], "asyncio.Future[bytes]"]
Tree = dict[str, Any]


class StatusChange:
    """The next change to write."""

    def __init__(self) -> None:
        self.conditions: dict[str, PodCondition] = {}
        self.nominated_node_name: str | None = None
        self.bind: Callable[[], None] | None = None
        """Sends the binding of the pod, which follows the running patch instead of a change."""

    @property
    def has_status(self) -> bool:
        """Whether there is a status to write."""
        return bool(self.conditions) or self.nominated_node_name is not None


class PodStatuses:
    """Used on the scheduler's thread alone, as the futures of `send` are.

    `newest` returns a pod as last seen or written, `stored` receives the API server's response.
    """

    def __init__(
        self,
        send: Send,
        newest: Callable[[Pod], Pod],
        stored: Callable[[Pod, bytes], object],
        now: Callable[[], str],
    ) -> None:
        self._send = send
        self._newest = newest
        self._stored = stored
        self._now = now
        self._next: dict[str, StatusChange] = {}
        """By the uid of a pod with a running patch."""

    def write(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Set a condition of the pod and its nominated node, each unless None; an unchanged status
        is not written."""
        wanted = self._next.get(pod.uid)
        if wanted is not None:
            if condition is not None:
                wanted.conditions[condition.type] = condition
            if nominated_node_name is not None:
                wanted.nominated_node_name = nominated_node_name
            return
        patch = status_patch(self._newest(pod), condition, nominated_node_name, self._now())
        if patch is not None:
            self._next[pod.uid] = StatusChange()
            self._send(pod, patch).add_done_callback(lambda done: self._written(pod, done))

    def pending(self) -> dict[tuple[str], int]:
        """Number of writes that wait for an earlier one of their pod, by the type of call."""
        waiting = self._next.values()
        bindings = sum(change.bind is not None for change in waiting)
        patches = sum(change.has_status for change in waiting)
        return {(STATUS_PATCH,): patches, (BINDING,): bindings}

    def bind_after(self, pod: Pod, bind: Callable[[], None]) -> None:
        """Call `bind`, at once or when the running patch of the pod has ended.

        The API server refuses a nominated node for a pod that is bound. Changes that have not been sent are dropped:
        they were about a pod without a node.
        """
        if pod.uid not in self._next:
            bind()
            return
        wanted = self._next[pod.uid] = StatusChange()
        wanted.bind = bind

    def _written(self, pod: Pod, done: asyncio.Future[bytes]) -> None:
        wanted = self._next.pop(pod.uid)
        if wanted.bind is not None:
            wanted.bind()
        if done.cancelled():
            return
        problem = done.exception()
        try:
            if problem is not None:
                raise problem
            self._stored(pod, done.result())
        except ApiError as error:
            if isinstance(error, UnreachableError):  # already logged by the watchers
                log.debug("pod %s: cannot write its status: %s", pod.key, error)
            elif error.code != 404:
                log.warning("pod %s: cannot write its status: %s", pod.key, error)
        for condition in wanted.conditions.values():
            self.write(pod, condition, wanted.nominated_node_name)
        if wanted.nominated_node_name is not None:
            self.write(pod, None, wanted.nominated_node_name)


STATUS_PATCH, BINDING = "pod_status_patch", "pod_binding"


class ApiCalls:
    """Counts calls; `pending` has the number of calls that wait for an earlier one of the same pod, by type.

    Mirrors the metrics of pkg/scheduler/backend/api_dispatcher, which exist with feature gate
    SchedulerAsyncAPICalls. Without it kube-scheduler waits for the write of a status before the next pod; here no
    write holds up another pod.
    """

    def __init__(self, pending: Callable[[], Mapping[tuple[str], int]]) -> None:
        self.executed = CounterFamily(
            "scheduler_async_api_call_execution_total{call_type,result}",
            "Writes about pods, by type.",
        )
        self.duration = HistogramFamily(
            "scheduler_async_api_call_execution_duration_seconds{call_type,result}",
            "Time from a write about a pod to the response.",
            exponential_buckets(0.001, 2, 15),
        )
        self.pending = ReadGauge(
            "scheduler_pending_async_api_calls{call_type}",
            "Writes that wait for an earlier one about the same pod.",
            pending,
        )

    @property
    def families(self) -> list[Family]:
        """Metrics to expose."""
        return [self.executed, self.duration, self.pending]

    def count(self, call_type: str, future: asyncio.Future[Any]) -> None:
        """Count a call that was begun when its `future` has a result."""
        started = perf_counter()

        def done(ended: asyncio.Future[Any]) -> None:
            is_failed = ended.cancelled() or ended.exception() is not None
            labels = (call_type, "error" if is_failed else "success")
            self.executed.labels(*labels).count += 1
            self.duration.labels(*labels).observe(perf_counter() - started)

        future.add_done_callback(done)


def status_patch(
    pod: Pod, condition: PodCondition | None, nominated_node_name: str | None, now: str
) -> bytes | None:
    """The strategic merge patch that sets a condition and the nominated node, each unless None; None if nothing
    changes.

    Mirrors UpdatePodCondition of pkg/api/v1/pod/util.go: the time moves when the condition's status
    changes.
    """
    status: Tree = {}
    if condition is not None and condition not in (pod.status.conditions or ()):
        status["conditions"] = [_condition(pod.status, condition, now)]
    if nominated_node_name is not None and nominated_node_name != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name or None
    if not status:
        return None
    return msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": status})


def _condition(status: PodStatus, condition: PodCondition, now: str) -> Tree:
    old = status.condition(condition.type)
    tree: Tree = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason or None,
        "message": condition.message or None,
        "lastProbeTime": None,
    }
    if condition.observed_generation:
        tree["observedGeneration"] = condition.observed_generation
    if old is None or old.status != condition.status:
        tree["lastTransitionTime"] = now
    return tree


def group_status_patch(old: PodGroup, new: PodGroup) -> bytes | None:
    """The strategic merge patch with the conditions of `new` that `old` lacks or has otherwise; None if nothing
    changes.

    It has the uid, so that another group of the same name is not written.
    """
    known = old.status.conditions or ()
    changed = [_plain_condition(c) for c in new.status.conditions or () if c not in known]
    if not changed:
        return None
    return msgspec.json.encode({"metadata": {"uid": old.uid}, "status": {"conditions": changed}})


def _plain_condition(condition: PodGroupCondition) -> Tree:
    """A condition with all fields that a condition must have."""
    plain: Tree = msgspec.to_builtins(condition)
    return {"reason": "", "message": "", **plain}


def object_patch(old: KubeObject | Pod, new: KubeObject | Pod) -> bytes:
    """The merge patch from one state of an object to another; the server refuses it if the object has changed since
    the first.
    """
    before, after = to_dict(old), to_dict(new)
    patch = merge_difference(before, after)
    metadata = patch.setdefault("metadata", {})
    metadata["uid"] = old.uid
    if isinstance(old, KubeObject):
        metadata["resourceVersion"] = old.resource_version
    return msgspec.json.encode(patch)
