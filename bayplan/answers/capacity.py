"""Capacity: how many more pods or pod groups of a mix fit, on which nodes, and which resource runs out first.

Copies are placed one after the other by the scheduler until one does not fit. They do not preempt. If only amounts
limit the copies on a node, they are counted per node instead of placed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec.structs import replace

from ..api.meta import ObjectMeta
from ..api.pod import Pod
from ..api.pod_groups import PodGroup
from ..api.pod_spec import PodSchedulingGroup
from ..api.workloads import Namespace
from ..choices import DEFAULT_COPIES
from ..cluster.memory.admission import Admission, AdmissionError
from ..errors import InputError
from ..manifests.timeline import InputObject
from ..scheduler import Attempt, Inquiry, Outcome, cause_of, run_to_tell
from ..scheduler.collector import rare_collections
from ..sim.plain_part import PlainPart
from ..sim.settings import DEFAULT_SETTINGS, OnProgress, Settings
from ..sim.stand_ins import GROUP_GATES
from ..sim.totals import TotalsChange
from ..table import Ints
from ..trials import NONE_WAITED, SettledAnswer, Settlement
from .node_use import ResourceRoom
from .pod_kinds import PodKind, on_nodes
from .references import find_node
from .stage import PlaceOf, Stage

NEVER = "Never"
LOWEST_PRIORITY = -(2**31)
"""A pod group of this priority preempts no pod."""
INSUFFICIENT, TOO_MANY_PODS = "Insufficient ", "Too many pods"


@dataclass(slots=True)
class KindCapacity(PlainPart):
    """Result for one kind of pod or pod group: how many fit, and the reasons why one more does not."""

    PLAIN = "pod=name ratio members fits fitsAlone refusals@reason,nodes message nodes"

    name: str
    ratio: int
    members: int | None = None
    """The number of members of a pod group; None for a pod."""
    fits: int = 0
    """Number of pods, or of groups."""
    nodes: Counter[str] = field(default_factory=Counter)
    """Copies per node."""
    fits_alone: bool = False
    """Whether one more of this kind alone would fit."""
    refusals: Counter[str] = field(default_factory=Counter)
    """For the copy that did not fit: number of nodes per reason."""
    message: str = ""
    holders: Counter[str] = field(default_factory=Counter)
    """Number of nodes per reason, for the nodes that could run a copy if they were empty, by their amounts."""


@dataclass(slots=True, repr=False)
class Capacity(PlainPart, SettledAnswer):
    """Result of a capacity question."""

    PLAIN = (
        "settled fits rounds limited=is_limited firstRefused? bottleneck? obstacle?"
        " kinds histogram@pods,nodes resources totals"
    )

    kinds: list[KindCapacity]
    rounds: int
    """Number of times that the whole mix fits."""
    is_limited: bool
    """The search stopped at the limit, not because the cluster was full."""
    node_count: int
    totals: TotalsChange
    """The resources of all nodes, before and after."""
    first_refused: str = ""
    """The kind that no longer fitted."""
    settled: Settlement = NONE_WAITED
    """Result for the waiting pods before the question."""

    @property
    def fits(self) -> int:
        """Total number of pods."""
        return sum(kind.fits * (kind.members or 1) for kind in self.kinds)

    @property
    def resources(self) -> list[ResourceRoom]:
        """Each resource of all nodes."""
        before, after = self.totals.before, self.totals.after
        return [
            ResourceRoom(name, now.allocatable, before.of(name).used, now.used)
            for name, now in after.resources.items()
        ]

    @property
    def bottleneck(self) -> str:
        """The resource that most nodes lack for the first kind that does not fit; empty if no
        resource is short."""
        counts: Counter[str] = Counter()
        for kind in self.kinds:
            if kind.name == self.first_refused:
                counts.update(_shortages(kind.holders or kind.refusals))
        return counts.most_common(1)[0][0] if counts else ""

    @property
    def obstacle(self) -> str:
        """Reason why the nodes that have the amounts for one more refuse it, if none of them lacks any; else empty."""
        for kind in self.kinds:
            if kind.name == self.first_refused and kind.holders and not self.bottleneck:
                reason, nodes = kind.holders.most_common(1)[0]
                count = "1 node that has" if nodes == 1 else f"{nodes:,} nodes that have"
                return f"{count} what it requests: {reason}"
        return ""

    def histogram(self) -> dict[int, int]:
        """Number of nodes by number of pods received, zero included."""
        per_node: Counter[str] = Counter()
        for kind in self.kinds:
            per_node.update(kind.nodes)
        counts = Counter(per_node.values())
        counts[0] = self.node_count - len(per_node)
        return {number: counts[number] for number in sorted(counts, reverse=True) if counts[number]}

    def headline(self) -> str:
        """`40 more pods fit on 12 of 20 nodes; cpu runs out first`."""
        nodes = self.node_count - self.histogram().get(0, 0)
        text = f"{self.fits:,} more pods fit on {nodes:,} of {self.node_count:,} nodes"
        if self.bottleneck:
            return f"{text}; {self.bottleneck} runs out first"
        return f"{text}; {self.obstacle}" if self.obstacle else text

    def shown_rows(self) -> list[dict[str, Any]]:
        """The kinds of pods."""
        return [
            {
                "pod": kind.name,
                "fits": kind.fits,
                "nodes": len(kind.nodes),
                "refusals": ", ".join(f"{r} ({n})" for r, n in kind.refusals.most_common()),
            }
            for kind in self.kinds
        ]

    def frame_rows(self) -> list[dict[str, Any]]:
        """Pods per node, one column per kind."""
        names = dict.fromkeys(name for kind in self.kinds for name in kind.nodes)
        return [
            {"node": name, **{kind.name: kind.nodes[name] for kind in self.kinds}} for name in names
        ]


def find_capacity(
    objects: Iterable[InputObject],
    kinds: Sequence[PodKind],
    settings: Settings = DEFAULT_SETTINGS,
    *,
    nodes: Sequence[str] = (),
    limit: int | None = None,
    as_is: bool = False,
    place_of: PlaceOf | None = None,
    on_progress: OnProgress | None = None,
) -> Capacity:
    """Return how many times the mix of `kinds` fits into the cluster of `objects`, up to `limit` pods.

    Without a limit, copies that can be counted are all counted; others are placed up to DEFAULT_COPIES.

    Pending pods of the cluster are tried first; with `as_is` they use nothing. `nodes` restricts the copies to nodes
    with these names or labels (`key=value`), as a node affinity would. Raises InputError when an API server would
    reject a kind.
    """
    if not kinds:
        raise InputError("expected at least one kind of pods; got none")
    stage = Stage(objects, settings, place_of, as_is=as_is)
    stage.begin()
    if as_is:
        stage.leave_waiting_alone()
    for name in nodes:
        if "=" not in name:
            find_node(stage.cluster, name)
    if nodes:
        kinds = [on_nodes(kind, nodes) for kind in kinds]
    with rare_collections():
        return _Filling(stage, kinds, limit).run(on_progress)


class _Filling:
    """Fills a cluster with copies, round by round."""

    def __init__(self, stage: Stage, kinds: Sequence[PodKind], limit: int | None) -> None:
        self._stage = stage
        self._scheduler = stage.simulation.scheduler
        self._limit = limit
        self._kinds = [self._admit(kind) for kind in kinds]
        self._found = [
            KindCapacity(kind.name, kind.ratio, len(kind.pods) if kind.group else None)
            for kind in kinds
        ]
        self._placed = self._copies = 0

    def run(self, on_progress: OnProgress | None) -> Capacity:
        """Fill the cluster and collect why no more fits."""
        before = self._stage.totals()
        counts = self._counts()
        if counts is not None:
            rounds, first = self._fill(counts)
        else:
            rounds, first = self._place_rounds(on_progress)
        after = self._stage.totals()
        if first:
            for found, kind in zip(self._found, self._kinds, strict=True):
                found.fits_alone = self._fits(kind)
        return Capacity(
            self._found,
            rounds,
            not first,
            self._scheduler.cache.table.node_count,
            TotalsChange(before, after),
            first_refused=first,
            settled=self._stage.settlement,
        )

    def _counts(self) -> Ints | None:
        """int64 per row: how many copies fit on each node; None if they have to be placed one after the other."""
        kind = self._kinds[0]
        if len(self._kinds) > 1 or kind.ratio > 1 or kind.group is not None:
            return None
        if self._stage.cluster.count("ResourceQuota") or self._refusal(kind.pod):
            return None
        counts = Inquiry(self._scheduler, _more(kind.pod)).copies()
        is_beyond = counts is not None and self._limit is not None and counts.sum() > self._limit
        return None if is_beyond else counts

    def _fill(self, counts: Ints) -> tuple[int, str]:
        """Count the copies on the nodes; returns their number, and the kind of which no further copy fits."""
        cache, kind, found = self._scheduler.cache, self._kinds[0], self._found[0]
        for row in np.flatnonzero(counts).tolist():
            count = int(counts[row])
            cache.add_copies(kind.pod, row, count)
            found.nodes[cache.table.names[row]] = count
            found.fits += count
        self._note_why(found, kind, _Copy())
        return found.fits, found.name

    def _place_rounds(self, on_progress: OnProgress | None) -> tuple[int, str]:
        """Place the mix until a kind does not fit, or up to the limit; returns the number of rounds and that kind."""
        limit = DEFAULT_COPIES if self._limit is None else self._limit
        size, rounds = sum(kind.ratio * len(kind.pods) for kind in self._kinds), 0
        while self._placed + size <= limit:
            first = self._place_round()
            if first:
                return rounds, first
            rounds += 1
            if on_progress is not None:
                on_progress(self._placed, limit)
        return rounds, ""

    def _admit(self, kind: PodKind) -> PodKind:
        """The pods as the API server would store them, with preemption disabled."""
        stage = self._stage
        namespace = kind.pod.namespace
        if stage.cluster.get("Namespace", "", namespace) is None:
            stage.add((Namespace(metadata=ObjectMeta(name=namespace)),))
        if kind.group is None:
            return dataclasses.replace(kind, pod=self._admit_pod(kind.name, kind.pod))
        if self._scheduler.groups is None:
            lack = self._scheduler.feature_gates.lack(*GROUP_GATES)
            raise InputError(f"{kind.name}: pod groups are not placed together {lack}")
        pod, *others = (self._admit_pod(kind.name, pod) for pod in kind.pods)
        group = replace(kind.group, spec=replace(kind.group.spec, priority=LOWEST_PRIORITY))
        return dataclasses.replace(kind, pod=pod, others=tuple(others), group=group)

    def _admit_pod(self, name: str, pod: Pod) -> Pod:
        try:
            admitted = Admission(self._stage.cluster).admit(pod)
        except AdmissionError as error:
            raise InputError(f"{name}: {error}") from None
        if admitted.scheduler_name not in self._scheduler.profiles:
            known = ", ".join(self._scheduler.profiles)
            expected = f'{name}: spec.schedulerName: expected one of {known}; got "{admitted.scheduler_name}"'
            raise InputError(expected)
        return admitted.with_spec(replace(admitted.spec, preemption_policy=NEVER))

    def _place_round(self) -> str:
        """Place the whole mix once; if a kind does not fit, undo the round and return its name."""
        placed: list[tuple[KindCapacity, _Copy]] = []
        for found, kind in zip(self._found, self._kinds, strict=True):
            for _ in range(kind.ratio):
                copy = self._place(kind)
                if copy.pods is None:
                    self._note_why(found, kind, copy)
                    for _, other in placed:
                        self._take_back(other)
                    return found.name
                placed.append((found, copy))
        for found, copy in placed:
            found.fits += 1
            found.nodes.update(pod.node_name for pod in copy.pods or ())
        return ""

    def _place(self, kind: PodKind) -> _Copy:
        """Place one more copy; when not all of its pods fit, delete it."""
        self._copies += 1
        copy = _Copy()
        if kind.group is not None:
            copy.group = self._name_of(kind.group)
            metadata = replace(kind.group.metadata, name=copy.group, uid=f"capacity/{copy.group}")
            self._stage.cluster.add(replace(kind.group, metadata=metadata))
        for pod in kind.pods:
            copy.refusal = self._refusal(pod)
            if copy.refusal:
                self._take_back(copy)
                return copy
            copy.added.append(self._add(pod, copy.group))
        waiting = {pod.uid for pod in copy.added}
        bound: dict[str, Pod] = {}
        while waiting and (attempt := self._scheduler.schedule_one()) is not None:
            for each in attempt.group.attempts if attempt.group is not None else (attempt,):
                if each.pod.uid in waiting:
                    copy.last = attempt
                    waiting.discard(each.pod.uid)
                    if each.outcome is Outcome.BOUND:
                        bound[each.pod.uid] = each.pod.with_node(each.node_name)
        if len(bound) == len(copy.added):
            copy.pods = list(bound.values())
        else:
            self._wait(copy)
        return copy

    def _refusal(self, pod: Pod) -> str:
        """Reason why a limit range or a quota refuses one more copy of the pod; empty if none does."""
        return self._stage.simulation.refusal_of(pod.replace(name=self._name_of(pod), uid=""))

    def _name_of(self, obj: Pod | PodGroup) -> str:
        """The name of a copy, which differs from names that controllers give."""
        return f"{obj.name}-copy-{self._copies}"

    def _add(self, pod: Pod, group: str) -> Pod:
        self._placed += 1
        if group:
            pod = pod.with_spec(
                replace(pod.spec, scheduling_group=PodSchedulingGroup(pod_group_name=group))
            )
        uid = f"capacity/{self._copies}/{pod.name}"
        return self._stage.cluster.add(pod.replace(name=self._name_of(pod), uid=uid))

    def _wait(self, copy: _Copy) -> None:
        """Let time pass if pods are being bound; delete the copy if some pod has no node then."""
        cluster, last = self._stage.cluster, copy.last
        if last is None or not last.is_failed:
            self._stage.simulation.run()  # binding takes time: for volumes, or for other pods
        stored = [cluster.get("Pod", pod.namespace, pod.name) for pod in copy.added]
        pods = [pod for pod in stored if isinstance(pod, Pod)]
        if len(pods) == len(copy.added) and all(pod.node_name for pod in pods):
            copy.pods = pods
        else:
            self._take_back(copy)

    def _take_back(self, copy: _Copy) -> None:
        cluster = self._stage.cluster
        for pod in copy.added:
            self._placed -= 1
            stored = cluster.get("Pod", pod.namespace, pod.name)
            if stored is not None:
                cluster.delete(stored)
        for group in list(cluster.list("PodGroup")) if copy.group else ():
            if group.uid == f"capacity/{copy.group}":
                cluster.delete(group)

    def _note_why(self, found: KindCapacity, kind: PodKind, copy: _Copy) -> None:
        """The reasons why one more of the kind does not fit."""
        account = copy.last.group if copy.last is not None else None
        if copy.refusal:
            found.message = copy.refusal
            return
        if account is None:
            diagnosis = Inquiry(self._scheduler, _more(kind.pod)).diagnosis
            found.refusals, found.message = diagnosis.histogram(), diagnosis.fit_error()
            found.holders = self._holders(kind.pod)
            return
        _, told = run_to_tell(account)
        for member in told.members:
            if not member.node_name:
                found.refusals.update(member.attempt.refusals)
                pod = member.attempt.pod
                alone = pod.with_spec(replace(pod.spec, scheduling_group=None))
                if not Inquiry(self._scheduler, _more(alone)).feasible_nodes:
                    found.holders = self._holders(alone)
                break
        found.message = cause_of(account, kind.group) or account.status.message

    def _holders(self, pod: Pod) -> Counter[str]:
        """Number of nodes per reason, of those that could run a copy if they were empty, by their amounts."""
        found: Counter[str] = Counter()
        for status, names in Inquiry(self._scheduler, _more(pod)).refusals():
            nodes = (self._stage.cluster.get("Node", "", name) for name in names)
            could = sum(
                all(node.allocatable.get(name, 0) >= n for name, n in pod.requests.items())
                for node in nodes
                if node is not None
            )
            found.update({reason: could for reason in status.reasons if could})
        return found

    def _fits(self, kind: PodKind) -> bool:
        if kind.group is None:
            return Inquiry(self._scheduler, _more(kind.pod)).feasible_nodes > 0
        copy = self._place(kind)
        if copy.pods is not None:
            self._take_back(copy)
        return copy.pods is not None


@dataclass(slots=True)
class _Copy:
    """One copy of a kind: its pods as added, replaced by the pods with their nodes when all have one."""

    group: str = ""
    added: list[Pod] = field(default_factory=list)
    pods: list[Pod] | None = None
    last: Attempt | None = None
    """The last attempt; None when there was none."""
    refusal: str = ""
    """Reason why a limit range or a quota refused one of the pods."""


def _more(template: Pod) -> Pod:
    return template.replace(name=f"{template.name}-more", uid="capacity/more")


def _shortages(refusals: Counter[str]) -> Counter[str]:
    """The reasons about a lack of resources, with their number of nodes."""
    found: Counter[str] = Counter()
    for reason, count in refusals.items():
        if reason.startswith(INSUFFICIENT):
            found[reason.removeprefix(INSUFFICIENT)] += count
        elif reason == TOO_MANY_PODS:
            found["pods"] += count
    return found
