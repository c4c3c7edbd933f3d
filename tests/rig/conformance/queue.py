"""Conformance of the queue: replay recorded scripts step by step and compare the state after each.

A script is a list of steps (pods are added, updated, deleted, popped and fail; events; flushes),
each with the resulting state of the queue of kube-scheduler v1.36.4. Every step is one decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.clock import ManualClock
from bayplan.framework import SUCCESS, Status, unresolvable
from bayplan.framework.events import ActionType, ClusterEvent, Hint, HintFunction
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.queue import queueing_hints
from bayplan.queue.backoff import QueueSettings
from bayplan.queue.nominator import PodNominator
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.queueing_hints import Registration
from bayplan.queue.scheduling_queue import SchedulingQueue

from .cases import Disagreement, case_gates

START = datetime(2025, 1, 1, tzinfo=UTC)
START_S = START.timestamp()

COMPARED = ("result", "active", "backoff", "errorBackoff", "unschedulable", "inFlight", "nominated")
COMPARED_OF_PODS = (
    "name",
    "attempts",
    "unschedulableCount",
    "consecutiveErrorsCount",
    "timestamp",
    "initialAttemptTimestamp",
    "backoffExpiration",
    "gatingPlugin",
    "unschedulablePlugins",
    "pendingPlugins",
)
DIAGNOSTIC = ("inFlightEvents", "schedulingCycle")
DIAGNOSTIC_OF_PODS = ("wasFlushed", "version")


def is_queue_script(case: dict[str, Any]) -> bool:
    """Whether the case is a script for the queue."""
    return "steps" in case and "initial" in case


def run_queue_script(
    case: dict[str, Any], diagnose: bool = False
) -> Iterator[tuple[str, list[Disagreement]]]:
    """For each step, in order: its number and the differences; `diagnose` compares the inner
    counters as well."""
    script = Script(case)
    for number, step in enumerate(case["steps"], 1):
        with _hints_may_fail():
            ours = script.run(number, step)
        name = f"step {number} ({step['op']})"
        yield (
            name,
            [
                Disagreement(case["id"], name, path, mine, theirs)
                for path, mine, theirs in compare(ours, step["expected"], diagnose)
            ],
        )


@contextmanager
def _hints_may_fail() -> Iterator[None]:
    """Silence the log of hints that raise: the scripts have some that do."""
    was = queueing_hints.log.disabled
    queueing_hints.log.disabled = True
    try:
        yield
    finally:
        queueing_hints.log.disabled = was


def compare(
    ours: dict[str, Any], theirs: dict[str, Any], diagnose: bool
) -> Iterator[tuple[str, Any, Any]]:
    """Each field of a state that differs: path, ours, theirs."""
    fields = COMPARED + DIAGNOSTIC if diagnose else COMPARED
    of_pods = COMPARED_OF_PODS + DIAGNOSTIC_OF_PODS if diagnose else COMPARED_OF_PODS
    for name in fields:
        if ours[name] != theirs[name]:
            yield name, ours[name], theirs[name]
    for uid in sorted(ours["pods"].keys() | theirs["pods"].keys()):
        mine, other = ours["pods"].get(uid), theirs["pods"].get(uid)
        if mine is None or other is None:
            yield f"pods.{uid}", mine, other
            continue
        for name in of_pods:
            if mine[name] != other[name]:
                yield f"pods.{uid}.{name}", mine[name], other[name]


@dataclass(frozen=True, slots=True)
class OtherObject:
    """The object of an event that is about neither a queued pod nor an assigned one."""

    uid: str
    resource_version: str


class Script:
    """A queue with a manual clock, the pods of the cluster, and the operations of a script."""

    def __init__(self, case: dict[str, Any]) -> None:
        config = case["config"]
        self._steps = case["steps"]
        self._clock = ManualClock(START + timedelta(milliseconds=config["startMs"]))
        self._profiles = config["profiles"]
        self._by_name: dict[tuple[str, str], Pod] = {}
        self._latest: dict[str, Pod] = {}
        self.queue = SchedulingQueue(
            self._clock,
            PrioritySort().sort_key,
            self._pre_enqueue,
            hints={
                name: [self._registration(entry) for entry in profile["hints"]]
                for name, profile in self._profiles.items()
            },
            settings=QueueSettings(
                config["podInitialBackoffMs"] / 1000,
                config["podMaxBackoffMs"] / 1000,
                config["podMaxInUnschedulablePodsMs"] / 1000,
                case_gates(case),
            ),
            nominator=PodNominator(lambda namespace, name: self._by_name.get((namespace, name))),
        )

    def run(self, number: int, step: dict[str, Any]) -> dict[str, Any]:
        """Run one step; return the state after it."""
        self._clock.set(START + timedelta(milliseconds=step["at"]))
        result = getattr(self, f"_on_{step['op']}")(number, step)
        return {"result": result, **self.state()}

    def state(self) -> dict[str, Any]:
        """The queue in the form of the recorded states."""
        queue = self.queue
        active, rejected = queue.active.heap.in_order(), queue.backoff.rejected.in_order()
        errors = sorted(queue.backoff.errors, key=lambda i: (i.backoff_expiration, i.pod.uid))
        flying, held = queue.in_flight.infos(), list(queue.unschedulable)
        queued = {
            info.pod.uid: _record(info, False) for info in (*active, *rejected, *errors, *held)
        }
        nominated = queue.nominator.nominated()
        return {
            "active": _uids(active),
            "backoff": _uids(rejected),
            "errorBackoff": _uids(errors),
            "unschedulable": sorted(_uids(held)),
            "inFlight": sorted(_uids(flying)),
            "inFlightEvents": queue.in_flight.event_count,
            "schedulingCycle": queue.active.scheduling_cycle,
            "nominated": {node: [pod.uid for pod in pods] for node, pods in nominated.items()},
            "pods": queued | {info.pod.uid: _record(info, True) for info in flying},
        }

    def _pre_enqueue(self, pod: Pod) -> Status:
        for plugin in self._profiles.get(pod.scheduler_name, {}).get("preEnqueue", ()):
            gates = plugin == "SchedulingGates" and pod.spec.scheduling_gates
            if gates or pod.labels.get("hold") == plugin:
                return unresolvable("held back").by(plugin)
        return SUCCESS

    def _registration(self, entry: dict[str, Any]) -> Registration:
        event = ClusterEvent(entry["resource"], ActionType.parse(entry["action"]))
        return event, entry["plugin"], self._hint(entry["plugin"], entry["hint"])

    def _hint(self, plugin: str, usual: str) -> HintFunction:
        """A hint with the result that the step assigns to its object, else its default result."""

        def hint(pod: Pod, old: Any, new: Any) -> Hint:
            step = self._steps[int((old if new is None else new).resource_version) - 1]
            answer = step.get("hints", {}).get(plugin, usual)
            if answer == "Error":
                raise LookupError("a hint that fails")
            if answer == "Own":
                return Hint.QUEUE if new is not None and new.uid == pod.uid else Hint.SKIP
            return Hint.QUEUE if answer == "Queue" else Hint.SKIP

        return hint

    def _keep(self, number: int, tree: dict[str, Any]) -> Pod:
        """The pod of a step, now in the cluster."""
        metadata = {**tree["metadata"], "resourceVersion": str(number)}
        pod = decode_object({**tree, "apiVersion": "v1", "kind": "Pod", "metadata": metadata})
        assert isinstance(pod, Pod), "decode keeps the kind"
        self._latest[pod.uid] = self._by_name[pod.namespace, pod.name] = pod
        return pod

    def _on_add(self, number: int, step: dict[str, Any]) -> None:
        self.queue.add(self._keep(number, step["pod"]))

    def _on_update(self, number: int, step: dict[str, Any]) -> None:
        old = self._latest[step["pod"]["metadata"]["uid"]]
        self.queue.update(old, self._keep(number, step["pod"]))

    def _on_delete(self, number: int, step: dict[str, Any]) -> None:
        pod = self._latest[step["pod"]]
        known = self._by_name.get((pod.namespace, pod.name))
        if known is not None and known.uid == pod.uid:
            del self._by_name[pod.namespace, pod.name]
        self.queue.delete(pod)

    def _on_pop(self, number: int, step: dict[str, Any]) -> str | None:
        info = self.queue.pop()
        return None if info is None else info.pod.uid

    def _on_done(self, number: int, step: dict[str, Any]) -> None:
        self.queue.done(step["pod"])

    def _on_fail(self, number: int, step: dict[str, Any]) -> None:
        info = next(i for i in self.queue.in_flight.infos() if i.pod.uid == step["pod"])
        info.set_rejectors(step.get("unschedulable") or (), step.get("pending") or ())
        current = self._by_name.get((info.pod.namespace, info.pod.name))
        if current is None:
            self.queue.done(info.pod.uid)
        elif current.uid != info.pod.uid:
            self.queue.done(info.pod.uid)
            return
        else:
            info.pod = current
            self.queue.add_unschedulable_if_not_present(info)
        self.queue.nominator.add(info.pod, step.get("node"))

    def _on_event(self, number: int, step: dict[str, Any]) -> None:
        event = ClusterEvent(step["resource"], ActionType.parse(step["action"]))
        obj = None if step["resource"] == "*" else OtherObject("other", str(number))
        old = None if event.action == ActionType.Add else obj
        new = None if event.action == ActionType.Delete else obj
        limit = step.get("maxPriority")
        pre_check: Callable[[Pod], bool] | None = None
        if limit is not None:
            pre_check = lambda pod: pod.priority <= limit  # noqa: E731
        self.queue.move_all_to_active_or_backoff(event, old, new, pre_check)

    def _on_activate(self, number: int, step: dict[str, Any]) -> None:
        self.queue.activate(self._latest[uid] for uid in step["pods"])

    def _on_flushBackoff(self, number: int, step: dict[str, Any]) -> None:  # noqa: N802
        self.queue.flush_backoff_completed()

    def _on_flushUnschedulable(self, number: int, step: dict[str, Any]) -> None:  # noqa: N802
        self.queue.flush_unschedulable_leftover(self._clock.timestamp())

    def _on_nominate(self, number: int, step: dict[str, Any]) -> None:
        self.queue.nominator.add(self._latest[step["pod"]], step.get("node"))

    def _on_clearNomination(self, number: int, step: dict[str, Any]) -> None:  # noqa: N802
        self.queue.nominator.delete(self._latest[step["pod"]])

    def _on_advance(self, number: int, step: dict[str, Any]) -> None:
        pass


def _uids(infos: Iterable[QueuedPodInfo]) -> list[str]:
    return [info.pod.uid for info in infos]


def _record(info: QueuedPodInfo, in_flight: bool) -> dict[str, Any]:
    """One pod in the form of the recorded states."""
    pod = info.pod
    return {
        "name": pod.key,
        "attempts": info.attempts,
        "unschedulableCount": info.unschedulable_count,
        "consecutiveErrorsCount": info.consecutive_errors_count,
        "timestamp": _millis(info.timestamp),
        "initialAttemptTimestamp": _millis(info.initial_attempt_timestamp),
        "backoffExpiration": None if in_flight else _millis(info.backoff_expiration or None),
        "gatingPlugin": info.gating_plugin,
        "unschedulablePlugins": sorted(info.unschedulable_plugins),
        "pendingPlugins": sorted(info.pending_plugins),
        "wasFlushed": info.was_flushed_from_unschedulable,
        "version": pod.resource_version,
    }


def _millis(seconds: float | None) -> int | None:
    return None if seconds is None else round((seconds - START_S) * 1000)
