"""Results: the outcome of each pod and node, recorded during the simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..api.node import Node
from ..api.pod import Pod
from ..api.workloads import WorkloadKey, workload_key
from ..clock import Clock
from ..cluster.memory.object_store import MemoryCluster
from ..scheduler import Attempt, Outcome, Scheduler, gated_attempts
from .group_outcomes import GroupOutcome, group_outcomes
from .measures.amounts import FreeParts, free_parts
from .measures.device_use import DriverDevices, count_devices
from .measures.promises import overpromised_amounts
from .outcomes import NO_AMOUNTS, NodeUse, PodResult
from .report import SimulationReport
from .use_over_time import UseHistory, is_change_of_use
from .world import is_waiting

NOT_TRIED = "not tried yet"


class Results:
    """Watches the cluster and receives every attempt."""

    def __init__(self, clock: Clock, cluster: MemoryCluster) -> None:
        self._clock = clock
        self._cluster = cluster
        self._pods: dict[str, PodResult] = {}
        self._created_s: dict[str, float] = {}
        self._nodes = {node.name: NodeUse(node) for node in cluster.list("Node")}
        self._running = 0
        """Number of pods on a node at the start."""
        self._history = self._first_history()
        pending = (pod for pod in cluster.list("Pod") if not pod.node_name)
        self.pods_seen = sum(map(is_waiting, pending))
        """Number of pods so far that needed a node."""

    def _first_history(self) -> UseHistory:
        return UseHistory([*self._cluster.list("Node"), *self._cluster.list("Pod")])

    def __len__(self) -> int:
        return len(self._pods)

    def begin(self, scheduler: Scheduler) -> None:
        """Record the use of the nodes; the scheduler has all objects of the start, and has placed no pod yet."""
        for name, amounts, count in bound_use(scheduler):
            if name in self._nodes:
                self._nodes[name].before, self._nodes[name].pods_before = amounts, count
                self._running += count

    def note(self, attempt: Attempt) -> None:
        """Record an attempt that ended, or that holds a node and continues, as the last one of the pod."""
        uid, now = attempt.pod.uid, self._clock.monotonic()
        created_s = self._created_s.get(uid, 0.0)
        self._pods[uid] = PodResult(attempt, now, attempt.number, created_s)

    def message_of(self, uid: str) -> str:
        """The message of the pod's last attempt; empty when there was none."""
        result = self._pods.get(uid)
        return "" if result is None else result.attempt.message

    # The cluster

    def on_add(self, obj: Any) -> None:
        """Add a pod or a node."""
        now_s = self._clock.monotonic()
        if isinstance(obj, Pod):
            self._created_s[obj.uid] = now_s
            self.pods_seen += is_waiting(obj)
        elif isinstance(obj, Node):
            self._nodes[obj.name] = NodeUse(obj, added_s=now_s)
        else:
            return
        self._note_change(now_s, None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Update a pod, which may have finished, or a node, whose resources may have changed."""
        now_s = self._clock.monotonic()
        if isinstance(new, Pod):
            if not is_change_of_use(old, new):
                return
            if new.is_finished and not old.is_finished:
                self._note_end(new, finished_s=now_s)
        elif isinstance(new, Node):
            self._nodes[new.name].node = new
        else:
            return
        self._note_change(now_s, old, new)

    def on_delete(self, obj: Any) -> None:
        """Delete a pod; its result stays if it was placed."""
        now_s = self._clock.monotonic()
        if isinstance(obj, Pod):
            if obj.node_name:
                self._note_end(obj, deleted_s=now_s)
            else:
                self._pods.pop(obj.uid, None)
                self.pods_seen -= is_waiting(obj)
        elif isinstance(obj, Node):
            self._nodes[obj.name].removed_s = now_s
        else:
            return
        self._note_change(now_s, obj, None)

    def _note_change(self, at_s: float, old: Pod | Node | None, new: Pod | Node | None) -> None:
        """Record that a pod or node was added, changed or deleted."""
        self._history.changes.append((at_s, old, new))

    def _note_end(
        self, pod: Pod, finished_s: float | None = None, deleted_s: float | None = None
    ) -> None:
        """Record that a pod with a node finished, or was deleted."""
        result = self._pods.get(pod.uid)
        if result is not None and finished_s is not None:
            result.finished_s = finished_s
        elif result is not None:
            result.deleted_s = deleted_s

    # The end

    def report(self, scheduler: Scheduler, seconds: float) -> SimulationReport:
        """The results after the end of the simulation."""
        pods = self.pods(scheduler)
        self._note_final_use(scheduler)
        nodes, parts = list(self._nodes.values()), self._parts(scheduler)
        is_all_placed = all(result.is_placed for result in self._pods.values())
        return SimulationReport(
            pods=pods,
            nodes=nodes,
            running=self._running,
            preempted=self._cluster.evictions,
            groups=self.groups(scheduler),
            sizes={} if is_all_placed else Counter(self._workloads()),
            history=self._history,
            parts=parts,
            overpromised=overpromised_amounts(nodes, self._cluster.list("Pod"), parts),
            filters=filter_rules(scheduler),
            devices=self._devices(),
            time_s=self._clock.monotonic(),
            seconds=seconds,
            release=scheduler.release.patch,
        )

    def _note_final_use(self, scheduler: Scheduler) -> None:
        for use in self._nodes.values():
            use.after, use.pods_after = NO_AMOUNTS, 0
        for name, amounts, count in bound_use(scheduler):
            if name in self._nodes:
                use = self._nodes[name]
                use.after, use.pods_after = use.before if amounts == use.before else amounts, count

    def pods(self, scheduler: Scheduler) -> list[PodResult]:
        """The present results of all pods that needed a node, without preempted pods."""
        self._note_held(scheduler)
        for victim, _ in self._cluster.evictions:
            self._pods.pop(victim.uid, None)
        return list(self._pods.values())

    def groups(self, scheduler: Scheduler) -> list[GroupOutcome]:
        """The pod groups as they are now; empty unless they are scheduled as a whole."""
        if scheduler.groups is None:
            return []
        nodes = {name: use.node for name, use in self._nodes.items()}
        return group_outcomes(self._pods.values(), self._cluster, nodes)

    def _parts(self, scheduler: Scheduler) -> FreeParts:
        """Parts of the remaining nodes that plugins report."""
        left = [name for name, use in self._nodes.items() if use.removed_s is None]
        return free_parts(scheduler, left)

    def _devices(self) -> dict[str, DriverDevices]:
        slices, claims = (self._cluster.list(kind) for kind in ("ResourceSlice", "ResourceClaim"))
        return count_devices(slices, claims)

    def _workloads(self) -> Iterator[WorkloadKey]:
        """The workload of each pod, those that wait included."""
        for pod in self._cluster.list("Pod"):
            if not pod.is_finished:
                yield workload_key(pod)

    def _note_held(self, scheduler: Scheduler) -> None:
        """Add the pods that are gated, wait on Permit, or were never tried."""
        for attempt in gated_attempts(scheduler):
            self.note(attempt)
        for waiting in scheduler.waiting_pods:
            result = self._pods.get(waiting.pod.uid)
            if result is not None:
                by = ", ".join(waiting.pending_plugins)
                result.attempt.message = (
                    f"waits on Permit: {by}; {waiting.pod.node_name} is reserved"
                )
        for pod in self._cluster.list("Pod"):
            if not pod.node_name and pod.uid not in self._pods and is_waiting(pod):
                message = NOT_TRIED
                if pod.scheduler_name not in scheduler.profiles:
                    message = f'waits for scheduler "{pod.scheduler_name}", which is not configured'
                self.note(Attempt(pod, Outcome.GATED, message=message, number=0))


def filter_rules(scheduler: Scheduler) -> tuple[str, ...]:
    """The classes that implement the filters of all profiles, sorted: policies that inherit a filter have the same."""
    profiles = scheduler.profiles.values()
    plugins = (plugin for profile in profiles for plugin in profile.filtering.filters)
    return tuple(sorted({_implementing(type(plugin)).__name__ for plugin in plugins}))


def _implementing(plugin: type) -> type:
    """The class that defines how the plugin filters."""
    methods = ("filter_rows", "filter_node")
    return next(each for each in plugin.__mro__ if any(name in vars(each) for name in methods))


def bound_use(scheduler: Scheduler) -> Iterator[tuple[str, dict[str, int], int]]:
    """The nodes that pods are bound to, with the requested amounts, and the number of pods."""
    table = scheduler.cache.table
    assumed: dict[int, list[Pod]] = {}
    for pod in scheduler.cache.assumed_pods():
        assumed.setdefault(table.row_of[pod.node_name], []).append(pod)
    columns = [(resource, column) for resource, column in table.requested.items() if column.any()]
    for row, (name, count) in enumerate(zip(table.names, table.pod_count.tolist(), strict=True)):
        amounts = {resource: column.item(row) for resource, column in columns}
        for pod in assumed.get(row, ()):
            count -= 1
            for resource, amount in pod.usage.items():
                amounts[resource] -= amount
        if count:
            yield name, {resource: amount for resource, amount in amounts.items() if amount}, count
