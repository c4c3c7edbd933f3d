"""Run measures: all measures of a finished simulation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, TypeAlias

import numpy as np

from ...api.node import Node
from ...api.pod import Pod
from ...api.pod_groups import GroupPreemptor, pod_group_of
from ...table import Ints
from ..group_outcomes import GroupOutcome
from ..outcomes import NodeUse, PodResult
from ..use_over_time import UseHistory
from .amounts import Floats, FreeParts, NodeAmounts
from .description import measure_of
from .device_use import DriverDevices, measure_devices
from .fragmentation import RequestMix, free_and_lost, room_for, stranded_share, typical_request
from .over_time import RunMoves, known_resources
from .promises import measure_promises
from .waits import distribution, job_completions, latencies, slowdown, slowdowns

AmountSeconds: TypeAlias = defaultdict[str, float]
"""By resource: amounts times seconds."""


@dataclass(slots=True, repr=False)
class RunRecord:
    """A finished run, as measures read it."""

    pods: list[PodResult]
    """The pods that needed a node, in the order of their first attempt."""
    nodes: list[NodeUse]
    """The nodes of the run, those that were removed included."""
    running: int
    """Number of pods on a node at the start."""
    preempted: list[tuple[Pod, Pod | GroupPreemptor]] = field(default_factory=list)
    """Preempted pods, with their preemptors."""
    groups: list[GroupOutcome] = field(default_factory=list)
    """The pod groups; empty unless they are scheduled as a whole (feature gate GenericWorkload)."""
    history: UseHistory = field(default_factory=UseHistory)
    """Pods and nodes that came and went."""
    parts: FreeParts = field(default_factory=dict)
    """Free amounts of the parts of the remaining nodes, by resource, where a plugin reports them (`free_parts`)."""
    overpromised: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By resource with shares, such as those of GPUs: the amount on each remaining node beyond what its parts have."""
    devices: Mapping[str, DriverDevices] = field(default_factory=dict)
    """The devices by driver."""
    time_s: float = 0.0
    """Time when the simulation ended, on its own clock."""
    seconds: float = 0.0
    """Duration of the run on the wall clock."""


def measure_run(
    report: RunRecord,
    mix: RequestMix | None = None,
    typical: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """The measures of a finished run by name; `measure_of` describes each.

    `mix` and `typical` are the tasks by which fragmentation is measured; without them by the pods of the run.
    """
    pods = report.pods
    mix = RequestMix.of(each.pod for each in pods) if mix is None else mix
    typical = typical_request(each.pod for each in pods) if typical is None else typical
    moves = RunMoves.of(report.history.moves())
    amounts = NodeAmounts.of_uses(report.nodes)
    nodes_used = moves.nodes_used()
    placed = sum(result.is_placed for result in pods)
    attempts = sum(result.attempts for result in pods)
    used = int(nodes_used[-1]) if len(nodes_used) else 0
    found: dict[str, float] = {
        "placed": placed,
        "pending": len(pods) - placed,
        "preempted": len(report.preempted),
        "emptyNodes": len(amounts) - used,
        "nodesUsed": used,
        "peakNodesUsed": moves.peak(nodes_used),
        "attempts": attempts,
    }
    for name in moves.resources[:-1]:
        found |= _measure_resource(name, moves, amounts, report.time_s)
        share = at_full_demand(pods, report.nodes, name)
        found |= {} if share is None else {f"{name}AtFullDemand": share}
        found |= _measure_fragments(name, amounts, mix, report.parts.get(name))
    found |= measure_promises(report.overpromised, report.nodes)
    found |= measure_devices(report.devices)
    found["fragmentation"] = stranded_share(amounts, typical)
    if report.groups:
        found |= measure_groups(report)
    found |= distribution("Latency", latencies(pods))
    if any(result.finished_s is not None for result in pods):
        found |= distribution("Slowdown", slowdowns(pods))
        found |= distribution("JobCompletion", job_completions(pods))
    found |= measure_fairness(pods, report.nodes, report.time_s)
    found["secondsPerDecision"] = report.seconds / attempts if attempts else 0.0
    return found


def measure_rows(found: Mapping[str, float]) -> list[dict[str, Any]]:
    """One row per measure: name, value, unit and which direction is better."""
    return [
        {**measure_of(name).to_dict(), "value": round(value, 6)} for name, value in found.items()
    ]


def _measure_resource(
    name: str, moves: RunMoves, amounts: NodeAmounts, end_s: float
) -> dict[str, float]:
    """Use of one resource at the end, and over time where time passed."""
    shares = amounts.shares(name)
    requested = moves.share(moves.used + moves.waiting, name)
    found = {
        f"{name}Allocated": int(amounts.used[name].sum()),
        f"{name}Utilisation": amounts.total_share(name),
        f"{name}Requested": float(requested[-1]) if len(requested) else 0.0,
        f"{name}Spread": float(shares.std()) if len(shares) else 0.0,
    }
    if end_s and len(requested):
        in_use = moves.share(moves.used, name)
        lengths = np.diff(np.append(moves.times_s, end_s))
        found[f"{name}MeanUtilisation"] = float((in_use * lengths).sum()) / end_s
        found[f"{name}PeakUtilisation"] = moves.peak(in_use)
        found[f"{name}PeakRequested"] = moves.peak(requested)
    return found


def _measure_fragments(
    name: str, amounts: NodeAmounts, mix: RequestMix, parts: Ints | None
) -> dict[str, float]:
    """Lost and useful amounts of one resource."""
    free, lost = free_and_lost(amounts, mix, name, parts)
    offered = int(amounts.offered[name].sum())
    return {
        f"{name}Fragmentation": lost / free if free else 0.0,
        f"{name}Usable": (free - lost) / offered if offered else 0.0,
    }


def measure_groups(report: RunRecord) -> dict[str, float]:
    """Number of started groups, their times, and the fragmentation of the domains."""
    groups = report.groups
    members = [r.pod for r in report.pods if pod_group_of(r.pod) is not None]
    typical = typical_request(members, tuple({name for pod in members for name in pod.requests}))
    started = sum(group.has_started for group in groups)
    waits = [g.started_s - g.created_s for g in groups if g.started_s is not None]
    return {
        "podGroupsStarted": started,
        "podGroupsWaiting": len(groups) - started,
        "podGroupMeanLatency": fmean(waits) if waits else 0.0,
        "podGroupMaxLatency": max(waits, default=0.0),
        "domainFragmentation": domain_fragmentation(report.nodes, groups, typical),
    }


def domain_fragmentation(
    nodes: Sequence[NodeUse], groups: Sequence[GroupOutcome], typical: Mapping[str, int]
) -> float:
    """Share of the typical gangs that the free resources could hold, but that no domain can; 0 to 1.

    A gang has the median size of the groups with a topology constraint, and the domains are those of the label that
    most of them name. Without such groups it is 0.
    """
    bound = [group for group in groups if group.topology_key]
    if not bound:
        return 0.0
    size = max(int(median(max(group.min_count, group.members) for group in bound)), 1)
    key = Counter(group.topology_key for group in bound).most_common(1)[0][0]
    fits = room_for(NodeAmounts.of_uses(nodes), typical)
    domains: Counter[str] = Counter()
    left = (use.node.labels.get(key) for use in nodes if use.removed_s is None)
    for domain, count in zip(left, np.asarray(fits).tolist(), strict=True):
        if domain is not None:
            domains[domain] += count
    together = domains.total() // size
    return 1 - sum(count // size for count in domains.values()) / together if together else 0.0


def arrival_rows(pods: Sequence[PodResult], nodes: Sequence[NodeUse]) -> Iterator[dict[str, Any]]:
    """One row per pod, in the order of the first attempts: the demand so far, and the allocated amounts.

    Both are shares of the nodes' capacity, per resource, and include the use before the run.

    Pods that end or are preempted are not subtracted: the rows show how the cluster is filled.
    """
    left = [use for use in nodes if use.removed_s is None]
    objects: list[Pod | Node] = [*(use.node for use in left), *(result.pod for result in pods)]
    courses = {name: arrival_course(pods, left, name) for name in known_resources(objects)[:-1]}
    for i, result in enumerate(pods):
        row: dict[str, Any] = {"namespace": result.pod.namespace, "pod": result.pod.name}
        for name, (arrived, allocated) in courses.items():
            row[f"{name}Requested"] = arrived.item(i)
            row[f"{name}Utilisation"] = allocated.item(i)
        yield row


def arrival_course(
    pods: Sequence[PodResult], nodes: Sequence[NodeUse], resource: str
) -> tuple[Floats, Floats]:
    """float64 per pod, in the order of the first attempts: the share that has arrived, and that is allocated."""
    offered = sum(use.node.allocatable.get(resource, 0) for use in nodes) or 1
    before = sum(use.before.get(resource, 0) for use in nodes)
    asked = np.array([result.pod.requests.get(resource, 0) for result in pods], dtype=np.int64)
    is_placed = np.array([result.is_placed for result in pods], dtype=np.bool_)
    arrived = before + np.cumsum(asked)
    return arrived / offered, (before + np.cumsum(np.where(is_placed, asked, 0))) / offered


def at_full_demand(
    pods: Sequence[PodResult], nodes: Sequence[NodeUse], resource: str
) -> float | None:
    """The share allocated when 100 % had arrived: the mean over arrivals that round to it; None if there is none."""
    left = [use for use in nodes if use.removed_s is None]
    arrived, allocated = arrival_course(pods, left, resource)
    found = allocated[np.rint(100 * arrived) == 100]
    return float(found.mean()) if len(found) else None


def jain_index(values: Sequence[float]) -> float:
    """Jain's index: 1 when all values are equal, 1/n when one of n has all; 1 without values."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def measure_fairness(
    pods: Sequence[PodResult], nodes: Sequence[NodeUse], end_s: float
) -> dict[str, float]:
    """The parts of their requests that namespaces got, by dominant shares; empty if there is only one namespace.

    The dominant share of a namespace is the largest of its shares of each resource (Ghodsi et al., NSDI 2011). Shares
    are means over the time of the run; without time, those at the end.
    """
    got: dict[str, AmountSeconds] = {}
    asked: dict[str, AmountSeconds] = {}
    for result in pods:
        namespace = result.pod.namespace
        mine = got.setdefault(namespace, defaultdict(float))
        wished = asked.setdefault(namespace, defaultdict(float))
        ran, waited = _times(result, end_s)
        for name, amount in result.pod.requests.items():
            mine[name] += amount * ran
            wished[name] += amount * (ran + waited)
    if len(got) < 2:
        return {}
    offered = _offered(nodes, end_s)
    shares = {name: _dominant(amounts, offered) for name, amounts in got.items()}
    wishes = {name: _dominant(amounts, offered) for name, amounts in asked.items()}
    found = {
        "namespaceFairness": jain_index([shares[n] / wish for n, wish in wishes.items() if wish]),
        "maxDominantShare": max(shares.values()),
    }
    slow = _mean_slowdowns(pods)
    return {**found, "slowdownFairness": jain_index(slow)} if len(slow) > 1 else found


def _times(result: PodResult, end_s: float) -> tuple[float, float]:
    """Seconds with a node and seconds of waiting for it; without time, 1 for the one that is true."""
    if not end_s:
        return float(result.is_placed), float(not result.is_placed)
    if not result.is_placed:
        return 0.0, end_s - result.created_s
    ends = [at_s for at_s in (result.finished_s, result.deleted_s) if at_s is not None]
    return min(ends, default=end_s) - result.time_s, result.time_s - result.created_s


def _offered(nodes: Iterable[NodeUse], end_s: float) -> AmountSeconds:
    """Amounts of all nodes, times the seconds that each was there."""
    found: AmountSeconds = defaultdict(float)
    for use in nodes:
        until_s = end_s if use.removed_s is None else use.removed_s
        seconds = until_s - (use.added_s or 0.0) if end_s else float(use.removed_s is None)
        for name, amount in use.node.allocatable.items():
            found[name] += amount * seconds
    return found


def _dominant(amounts: Mapping[str, float], offered: Mapping[str, float]) -> float:
    return max(
        (amount / offered[name] for name, amount in amounts.items() if offered.get(name)),
        default=0.0,
    )


def _mean_slowdowns(pods: Iterable[PodResult]) -> list[float]:
    """The mean slowdown of each namespace with pods that ran and finished."""
    by_namespace: dict[str, list[float]] = defaultdict(list)
    for result in pods:
        if (found := slowdown(result)) is not None:
            by_namespace[result.pod.namespace].append(found)
    return [fmean(values) for values in by_namespace.values()]
