"""Rounds: evict the pods of nodes under their disruption budgets; upgrades, which replace nodes in turn.

In each round every pod is evicted that its budget allows; then the scheduler places what it can,
and the pods that landed start. Budgets count them as healthy again, and allow the next. It ends
when no pod is left, or when no budget allows another eviction. A node with pods that
kubectl drain refuses is left as it is (`DrainChange`). Mirrors kubectl drain
(staging/src/k8s.io/kubectl/pkg/drain) and the eviction of pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...api.node import Node
from ...api.pod import Pod
from ...cluster.memory.absent_owners import (
    has_local_storage,
    is_bare,
    is_daemon,
    is_static,
    stays_with_node,
)
from ...cluster.memory.pod_index import is_healthy, is_there
from ...errors import InputError
from ..budget_effects import BudgetUse
from ..courses import DrainCourse, DrainRound, DrainStall, PodAtRisk, UpgradeCourse
from ..input_gaps import eviction_gaps
from ..references import find_node
from ..stage import Stage
from .change import NodesChange, check_field, check_seconds
from .node_changes import add_node_like, cordoned, free_names, uncordoned
from .object_changes import empty_node

FORCED = "no controller recreates it; it counts as created again"
SHOWN = 3

OwnerKey: TypeAlias = tuple[str, str, str]
GroupKey: TypeAlias = tuple[tuple[str, ...], bool]
"""The budgets of a pod, and whether it is healthy."""


class Evictions:
    """Evicts pods from nodes of a stage, in rounds; the clock is not reset between drains.

    Pods without an owner that the flags of `change` allow to evict count as recreated.
    """

    def __init__(self, stage: Stage, change: DrainChange) -> None:
        self._stage = stage
        self._change = change
        self._pods_of: Counter[OwnerKey] = Counter()
        """Running pods per controller."""
        for pod in stage.cluster.list("Pod"):
            if pod.node_name and not pod.is_finished and not is_bare(pod):
                self._pods_of[owner_key(pod)] += 1
        self._without_node: dict[str, Pod] = {}
        """Evicted pods that did not land."""
        self.elapsed_s = 0.0

    def pods_to_go(self, node_names: Iterable[str]) -> list[Pod]:
        """The pods that a drain evicts; daemons and static pods stay."""
        return [
            pod
            for name in node_names
            for pod in self._stage.pods_on(name)
            if not stays_with_node(pod)
        ]

    def drain(
        self, node_names: Sequence[str], on_evicted: Callable[[int, int], None] | None = None
    ) -> DrainCourse:
        """Evict the pods of cordoned nodes."""
        refused = list(self._refused(node_names))
        left = {name for stall in refused for name in stall.nodes}
        waiting = self.pods_to_go(name for name in node_names if name not in left)
        course = DrainCourse(list(node_names), len(self.pods_to_go(node_names)))
        groups = self._grouped(waiting)
        began_s = self.elapsed_s
        while evicted := self._evict(groups, course):
            course.evicted += len(evicted)
            self._without_node |= {p.key: p for p in evicted}
            self.land()
            done_s = self.elapsed_s - began_s
            course.rounds.append(DrainRound(done_s, len(evicted), self.count_pending()))
            if on_evicted is not None:
                on_evicted(course.evicted, course.pods)
        course.seconds = self.elapsed_s - began_s
        stalls = [self._stall(list(group)) for group in groups.values() if group]
        course.stalls = [*refused, *stalls]
        return course

    def _refused(self, node_names: Iterable[str]) -> Iterator[DrainStall]:
        """The nodes that kubectl drain leaves as they are."""
        for name in node_names:
            refusals = self._change.refusals(self._stage.pods_on(name))
            if refusals:
                pods = self.pods_to_go([name]) or [p for each in refusals.values() for p in each]
                keys = tuple(pod.key for pod in pods)
                yield DrainStall(refusal_text(name, refusals), keys, (name,), is_refused=True)

    def land(self) -> None:
        """Let the scheduler place pods, and wait until evicted pods that landed have started."""
        clock = self._stage.simulation.clock
        before_s = clock.monotonic()
        self._stage.simulation.proceed()
        self.elapsed_s += clock.monotonic() - before_s
        landed = [pod for pod in self._without_node.values() if self._has_node(pod)]
        for pod in landed:
            del self._without_node[pod.key]
            self._stage.budgets.put_back(pod)
        if landed:
            self.elapsed_s += self._change.start_s

    def count_pending(self) -> int:
        """The pods of the cluster without a node."""
        return len(self._stage.simulation.scheduler.queue)

    def _grouped(self, pods: Iterable[Pod]) -> dict[GroupKey, deque[Pod]]:
        """The pods by their budgets: if one of a group may not be evicted, no other may."""
        groups: dict[GroupKey, deque[Pod]] = {}
        for pod in pods:
            names = tuple(use.budget for use in self._stage.budgets.uses_of(pod))
            groups.setdefault((names, is_healthy(pod)), deque()).append(pod)
        return groups

    def _evict(self, groups: dict[GroupKey, deque[Pod]], course: DrainCourse) -> list[Pod]:
        """Evict every pod that its budget allows."""
        stage, evicted = self._stage, list[Pod]()
        for group in groups.values():
            while group and self._may_evict(group[0]):
                pod = group.popleft()
                stored = stage.cluster.get("Pod", pod.namespace, pod.name)
                if stored is None or stored.uid != pod.uid:
                    course.pods -= 1  # it was preempted meanwhile
                    continue
                evicted.append(pod)
                if is_bare(pod):
                    course.at_risk.append(PodAtRisk(pod.key, pod.node_name, FORCED))
                stage.evict(pod, f"{pod.node_name} is drained")
        self._note_risks(evicted, course)
        return evicted

    def _may_evict(self, pod: Pod) -> bool:
        budgets = self._stage.simulation.budgets
        return self._change.disable_eviction or not budgets.eviction_refusal(pod)

    def _note_risks(self, evicted: Iterable[Pod], course: DrainCourse) -> None:
        """Record the pods of workloads without another running pod."""
        owned = [pod for pod in evicted if not is_bare(pod)]
        down = Counter(map(owner_key, owned))
        down.update(map(owner_key, self._without_node.values()))
        for pod in owned:
            key = owner_key(pod)
            size, owner = self._pods_of[key], f"{key[0]} {key[1]}/{key[2]}"
            if down[key] < size:
                continue
            why = f"the only pod of {owner}: down until it runs elsewhere"
            if size > 1:
                why = f"all {size} pods of {owner} are down at once"
            course.at_risk.append(PodAtRisk(pod.key, pod.node_name, why))

    def _has_node(self, pod: Pod) -> bool:
        stored = self._stage.cluster.get("Pod", pod.namespace, pod.name)
        return stored is None or bool(stored.node_name)

    # Stalls

    def _stall(self, pods: Sequence[Pod]) -> DrainStall:
        uses = self._stage.budgets.uses_of(pods[0])
        keys, nodes = tuple(p.key for p in pods), tuple(dict.fromkeys(p.node_name for p in pods))
        if len(uses) != 1:
            names = " and ".join(use.budget for use in uses)
            cause = (
                f"{names} select the same pods, and the eviction API refuses pods with two budgets"
            )
            return DrainStall(cause, keys, nodes)
        return self._stall_of_budget(uses[0], keys, nodes)

    def _stall_of_budget(
        self, use: BudgetUse, keys: tuple[str, ...], nodes: tuple[str, ...]
    ) -> DrainStall:
        """A budget allows no further eviction."""
        number = f"{use.allowed} disruption{'s' if use.allowed > 1 else ''}"
        allows = f"{use.budget} allows {number if use.allowed else 'no disruption'}"
        missing = [key for key in dict.fromkeys(use.pods) if not self._is_running(key)]
        if not missing:
            return DrainStall(allows, keys, nodes, use.budget, allows)
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        which = f"its evicted pod {missing[0]} has"
        if len(missing) > 1:
            which = f"its evicted pods {', '.join(missing[:SHOWN])}{more} have"
        pod = self._stage.cluster.get("Pod", *missing[0].split("/", 1))
        if pod is None:
            cause = f"{allows}; {which} no owner and will not come back"
            return DrainStall(cause, keys, nodes, use.budget, allows)
        message = self._stage.simulation.message_of(pod).partition(". ")[0]
        cause = f"{allows}; {which} no node" + (f": {message}" if message else "")
        return DrainStall(cause, keys, nodes, use.budget, allows, message)

    def _is_running(self, key: str) -> bool:
        stored = self._stage.cluster.get("Pod", *key.split("/", 1))
        return stored is not None and bool(stored.node_name)


def owner_key(pod: Pod) -> OwnerKey:
    """The controller of a pod, or the pod itself."""
    owner = pod.controller
    kind, name = ("", pod.name) if owner is None else (owner.kind, owner.name)
    return kind, pod.namespace, name


DAEMON_SETS = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
LOCAL_STORAGE = "Pods with local storage (use --delete-emptydir-data to override)"
UNMANAGED = "Pods that declare no controller (use --force to override)"


class DrainChange(NodesChange):
    """A change that drains nodes, with the flags of kubectl drain.

    Unlike there, pods of DaemonSets are ignored unless `ignore_daemonsets` is False; they stay in any case.

    Mirrors staging/src/k8s.io/kubectl/pkg/drain/filters.go. A pod of a DaemonSet counts as one even if the input
    lacks the DaemonSet, as a dump often does.
    """

    force: bool
    start_s: float
    """Time that a pod needs from its node to readiness."""
    delete_emptydir_data: bool
    disable_eviction: bool
    ignore_daemonsets: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds(self, "start_s")

    def refusals(self, pods: Iterable[Pod]) -> dict[str, list[Pod]]:
        """The pods of a node that keep it from being drained, by kubectl's words."""
        found: dict[str, list[Pod]] = {}
        for pod in filter(is_there, pods):
            reason = self._refusal(pod)
            if reason:
                found.setdefault(reason, []).append(pod)
        return found

    def _refusal(self, pod: Pod) -> str:
        if is_daemon(pod):
            return DAEMON_SETS if not self.ignore_daemonsets else ""
        if is_static(pod):
            return ""
        if has_local_storage(pod) and not self.delete_emptydir_data:
            return LOCAL_STORAGE
        return UNMANAGED if is_bare(pod) and not self.force else ""


@dataclass(frozen=True)
class Drain(DrainChange):
    """Cordon nodes and evict their pods in rounds, except daemons and static pods.

    Nodes are given by names or patterns (`gpu-*`), by the labels of `selector`, or by both. As with kubectl drain, a
    node that has pods without an owner stays as it is unless `force` is set (then they count as recreated), and one
    with emptyDir volumes unless `delete_emptydir_data` is set. `disable_eviction` deletes pods past their budgets;
    `ignore_daemonsets=False` refuses nodes with daemons. `start_s` is the time from a pod's node to its readiness, in
    seconds.
    """

    nodes: tuple[str, ...] = ()
    force: bool = False
    selector: str = ""
    start_s: float = 0
    delete_emptydir_data: bool = False
    disable_eviction: bool = False
    ignore_daemonsets: bool = True

    def apply(self, stage: Stage) -> None:
        found = self.find(stage)
        for node in found:
            stage.update_node(cordoned(node))
        evictions = Evictions(stage, self)
        leaving = evictions.pods_to_go(node.name for node in found)
        stage.notes += eviction_gaps(stage.cluster, leaving)
        stage.courses.append(evictions.drain([node.name for node in found], stage.on_progress))


def refusal_text(node_name: str, refusals: Mapping[str, Iterable[Pod]]) -> str:
    """The line that kubectl prints about a node that it does not drain."""
    errors = [
        f"cannot delete {reason}: {', '.join(pod.key for pod in pods)}"
        for reason, pods in refusals.items()
    ]
    listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return f'unable to drain node "{node_name}" due to error: {listed}'


@dataclass(frozen=True)
class Upgrade(DrainChange):
    """Replace nodes in turn: `surge` new nodes are added first, `max_unavailable` are added after their old ones are
    gone.

    So there are at most `surge` additional nodes, and at most `max_unavailable` are missing. A new node is a copy of
    the one that it replaces. A node whose drain stalls is left as it is, and the next ones follow. `node_start_s` is
    the time until a new node is ready. The other fields are those of `Drain`.
    """

    nodes: tuple[str, ...] = ()
    selector: str = ""
    surge: int = 1
    max_unavailable: int = 0
    force: bool = False
    start_s: float = 0
    node_start_s: float = 0
    delete_emptydir_data: bool = False
    disable_eviction: bool = False
    ignore_daemonsets: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds(self, "node_start_s")
        for field in ("surge", "max_unavailable"):
            check_field(self, field, int, "a whole number")
        if self.surge < 0 or self.max_unavailable < 0 or not self.surge + self.max_unavailable:
            given = f"surge {self.surge} and max-unavailable {self.max_unavailable}"
            raise InputError(f"upgrade: expected numbers of which one is more than 0; got {given}")

    @property
    def text(self) -> str:
        missing = f" --max-unavailable {self.max_unavailable}" if self.max_unavailable else ""
        return f"{super().text} --surge {self.surge}{missing}"

    def apply(self, stage: Stage) -> None:
        stage.courses.append(_Upgrading(stage, self, self.find(stage)).run())


class _Upgrading:
    """An upgrade under way."""

    def __init__(self, stage: Stage, options: Upgrade, nodes: Sequence[Node]) -> None:
        self._stage, self._options = stage, options
        self._evictions = Evictions(stage, options)
        self._course = UpgradeCourse([node.name for node in nodes])
        leaving = self._evictions.pods_to_go(self._course.nodes)
        stage.notes += eviction_gaps(stage.cluster, leaving)
        self._course.pending_before = self._evictions.count_pending()
        self._spare = 0
        """New nodes whose old node stalled and still exists; they count as surge."""

    def run(self) -> UpgradeCourse:
        course, options = self._course, self._options
        size = options.surge + options.max_unavailable
        for start in range(0, len(course.nodes), size):
            self._step(course.nodes[start : start + size])
            if self._stage.on_progress is not None:
                done = min(start + size, len(course.nodes))
                self._stage.on_progress(done, len(course.nodes))
        course.seconds = self._evictions.elapsed_s
        at_risk = {risk.pod: risk for risk in reversed(course.at_risk)}
        course.at_risk = [risk for risk in course.at_risk if at_risk[risk.pod] is risk]
        return course

    def _step(self, names: Sequence[str]) -> None:
        """Drain and replace some nodes together."""
        stage = self._stage
        early = names[: max(self._options.surge - self._spare, 0)]
        copies = self._add_copies(early)
        for name in names:
            stage.update_node(cordoned(find_node(stage.cluster, name)))
        drained = self._evictions.drain(names)
        self._note(drained)
        stuck = {node for stall in drained.stalls for node in stall.nodes}
        for name in stuck:
            stage.update_node(uncordoned(find_node(stage.cluster, name)))
            self._spare += name in copies
        if stuck:
            self._evictions.land()
        done = {name: find_node(stage.cluster, name) for name in names if name not in stuck}
        copies |= self._add_copies(name for name in done if name not in copies)
        for name, node in done.items():
            empty_node(stage, node)
            stage.cluster.delete(node)
            self._course.replaced[name] = copies[name]

    def _add_copies(self, names: Iterable[str]) -> dict[str, str]:
        """Add a new node for each, and place the pods that waited for it; returns their names."""
        cluster, copies = self._stage.cluster, dict[str, str]()
        for name in names:
            copies[name] = next(free_names(cluster, name))
            add_node_like(self._stage, find_node(cluster, name), copies[name])
        if copies:
            self._evictions.elapsed_s += self._options.node_start_s
            self._evictions.land()
        return copies

    def _note(self, drained: DrainCourse) -> None:
        course = self._course
        course.steps += 1
        course.rounds += len(drained.rounds)
        course.evicted += drained.evicted
        course.stalls += drained.stalls
        course.at_risk += drained.at_risk
        if drained.pending_peak > course.pending_peak:
            course.pending_peak, course.peak_nodes = drained.pending_peak, tuple(drained.nodes)
