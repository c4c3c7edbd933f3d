"""Compare: one workload under several schedulers: metrics, and the pods placed differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, pstdev
from typing import Any

import numpy as np

from ..api.pod import Pod
from ..api.pod_groups import pod_group_of
from ..errors import InputError
from ..sim import GroupOutcome, Simulation, SimulationReport
from ..sim.frames import chosen, make_frame
from ..sim.settings import OnProgress, Settings
from ..sim.showing import ShownAnswer
from ..sim.totals import TotalsChange
from ..sim.world import InputObject
from ..table import ABSENT, Bools, Ints, NodeTable
from .owners import is_daemon, is_static
from .room import MAIN_RESOURCES, offered, used, utilisation
from .stage import PlaceOf

COUNTS = (
    "placed",
    "pending",
    "preempted",
    "emptyNodes",
    "attempts",
    "podGroupsStarted",
    "podGroupsWaiting",
)
"""The metrics that count something; the others are shares between 0 and 1, or seconds."""
DIRECTIONS = {
    "placed": 1,
    "pending": -1,
    "preempted": -1,
    "attempts": -1,
    "fragmentation": -1,
    "podGroupsStarted": 1,
    "podGroupsWaiting": -1,
    "podGroupMeanLatency": -1,
    "podGroupMaxLatency": -1,
    "domainFragmentation": -1,
    "meanLatency": -1,
    "maxLatency": -1,
}
"""Whether more (1) or less (-1) of a metric is better. Of the others, such as empty nodes, it depends on the aim."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a run, over several seeds."""

    name: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation over the runs."""
        return pstdev(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "mean": round(self.mean, 6),
            "deviation": round(self.deviation, 6),
            "values": [round(value, 6) for value in self.values],
        }


@dataclass(slots=True)
class Contender:
    """The result of one scheduler."""

    name: str
    metrics: dict[str, Metric]
    placements: dict[str, str]
    """The node of each pod that was pending, with the first seed; empty for one that is still
    pending."""
    totals: TotalsChange | None = None
    """The resources of all nodes before and after the run with the first seed."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "metrics": [metric.to_dict() for metric in self.metrics.values()],
            "placements": dict(self.placements),
            "totals": self.totals.to_list() if self.totals is not None else [],
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """A pod that gets different nodes under different schedulers."""

    pod: str
    nodes: tuple[str, ...]
    """Its node under each scheduler; empty where it is pending or absent."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"pod": self.pod, "nodes": [node or None for node in self.nodes]}


@dataclass(slots=True, repr=False)
class Comparison(ShownAnswer):
    """One workload under several schedulers."""

    contenders: list[Contender]
    seeds: list[int]
    typical: dict[str, int] = field(default_factory=dict)
    """Requests of a typical pod of the workload; used to measure fragmentation."""

    def differences(self) -> list[Difference]:
        """The pods that get different nodes, with the first seed."""
        keys = dict.fromkeys(key for each in self.contenders for key in each.placements)
        found = []
        for key in keys:
            nodes = tuple(each.placements.get(key, "") for each in self.contenders)
            if len(set(nodes)) > 1:
                found.append(Difference(key, nodes))
        return found

    def metric_rows(self) -> list[dict[str, Any]]:
        """One row per scheduler and metric: mean and standard deviation over the seeds."""
        return [
            {
                "scheduler": each.name,
                "metric": name,
                "mean": m.mean,
                "deviation": m.deviation,
                "values": list(m.values),
            }
            for each in self.contenders
            for name, m in each.metrics.items()
        ]

    def better(self, name: str) -> str:
        """The scheduler with the best mean of a metric; empty when they are equal or the metric has no direction."""
        means = {c.name: c.metrics[name].mean for c in self.contenders if name in c.metrics}
        if name not in DIRECTIONS or len(set(means.values())) < 2:
            return ""
        best = max if DIRECTIONS[name] > 0 else min
        return best(means, key=means.__getitem__)

    def headline(self) -> str:
        """`spread, pack: 3 of 40 pods land elsewhere, 5 runs each`."""
        names = ", ".join(each.name for each in self.contenders)
        pods = max((len(each.placements) for each in self.contenders), default=0)
        text = f"{names}: {len(self.differences()):,} of {pods:,} pods land elsewhere"
        return f"{text}, {len(self.seeds)} runs each" if len(self.seeds) > 1 else text

    def shown_rows(self) -> list[dict[str, Any]]:
        """The metrics, a column per scheduler."""
        return self.wide_rows()

    def wide_rows(self) -> list[dict[str, Any]]:
        """One row per metric: the mean of each scheduler, with several seeds its deviation, and the better one."""
        rows = []
        for name in dict.fromkeys(name for each in self.contenders for name in each.metrics):
            row: dict[str, Any] = {"metric": name}
            for each in self.contenders:
                metric = each.metrics.get(name)
                row[each.name] = None if metric is None else metric.mean
                if len(self.seeds) > 1:
                    row[f"{each.name} ±"] = None if metric is None else metric.deviation
            rows.append({**row, "better": self.better(name) or None})
        return rows

    def placement_rows(self) -> list[dict[str, Any]]:
        """One row per pod that gets different nodes: its node under each scheduler."""
        names = [each.name for each in self.contenders]
        return [
            {"pod": each.pod, **dict(zip(names, (n or None for n in each.nodes), strict=True))}
            for each in self.differences()
        ]

    def to_frame(self, what: str = "metrics") -> Any:
        """A pandas DataFrame of `metrics` (by name, a column per scheduler), `runs` (a row per scheduler and metric) or
        `pods` (those that get different nodes).

        With several seeds each scheduler has a column with the standard deviation, too.
        """
        rows = {
            "metrics": self.wide_rows,
            "runs": self.metric_rows,
            "pods": self.placement_rows,
        }
        frame = make_frame(chosen(what, rows))
        return frame.set_index("metric") if what == "metrics" else frame

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        return {
            "seeds": list(self.seeds),
            "typicalPod": dict(self.typical),
            "contenders": [each.to_dict() for each in self.contenders],
            "differences": [each.to_dict() for each in self.differences()],
        }


def compare(
    objects: Sequence[InputObject],
    schedulers: Sequence[tuple[str, Settings]],
    *,
    seeds: int = 1,
    place_of: PlaceOf | None = None,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Simulate `objects` to their end under each of the named `schedulers`, once per seed."""
    if not schedulers or seeds < 1:
        raise InputError("expected at least one scheduler and one seed; got none")
    first = schedulers[0][1].seed or 0
    numbers = list(range(first, first + seeds))
    typical: dict[str, int] | None = None
    contenders, done = [], 0
    for name, settings in schedulers:
        runs: list[Mapping[str, float]] = []
        placements: dict[str, str] = {}
        totals: TotalsChange | None = None
        for seed in numbers:
            simulation = replace(settings, seed=seed).simulation(objects, place_of)
            report = simulation.run()
            if typical is None:
                typical = typical_request(result.pod for result in report.pods)
            if not runs:
                placements, totals = _placements(report), report.totals
            runs.append(measure(simulation, report, typical))
            done += 1
            if on_progress is not None:
                on_progress(done, len(schedulers) * seeds)
        metrics = {key: Metric(key, tuple(run[key] for run in runs)) for key in runs[0]}
        contenders.append(Contender(name, metrics, placements, totals))
    return Comparison(contenders, numbers, typical or {})


def measure(
    simulation: Simulation, report: SimulationReport, typical: Mapping[str, int]
) -> dict[str, float]:
    """The metrics of a finished run."""
    table = simulation.scheduler.cache.table
    live = np.asarray(table.live)
    found: dict[str, float] = {
        "placed": len(report.placed),
        "pending": len(report.pending),
        "preempted": len(report.preempted),
        "emptyNodes": count_empty_nodes(table),
        "attempts": sum(result.attempts for result in report.pods),
    }
    for resource in MAIN_RESOURCES:
        whole = int(offered(table, resource)[live].sum())
        in_use = int(used(table, resource)[live].sum())
        found[f"{resource}Utilisation"] = in_use / whole if whole else 0.0
    for resource in MAIN_RESOURCES:
        shares = utilisation(table, resource)[live]
        found[f"{resource}Spread"] = float(shares.std()) if len(shares) else 0.0
    found["fragmentation"] = fragmentation(table, typical)
    waited = [result.time_s - result.created_s for result in report.placed]
    if simulation.scheduler.has_groups and report.groups:
        found |= measure_groups(table, report)
    found["meanLatency"] = fmean(waited) if waited else 0.0
    found["maxLatency"] = max(waited, default=0.0)
    return found


def fragmentation(table: NodeTable, typical: Mapping[str, int]) -> float:
    """Share of the free resources that typical pods cannot use because of fragmentation; 0 to 1.

    With k typical pods that fit on the nodes as they are, and K that would fit if all free
    resources were on one node, it is 1 - k/K. Cordoned nodes do not count.
    """
    usable: Bools = table.live & ~table.unschedulable
    wanted = {name: amount for name, amount in typical.items() if amount > 0}
    if not wanted or not usable.any():
        return 0.0
    free = {
        name: np.maximum(offered(table, name) - used(table, name), 0)[usable] for name in wanted
    }
    slots = np.maximum(table.max_pods - table.pod_count, 0)[usable]
    fits = room_for(table, wanted)
    together = min(int(slots.sum()), *(int(free[name].sum()) // wanted[name] for name in wanted))
    return 1 - int(fits.sum()) / together if together else 0.0


def measure_groups(table: NodeTable, report: SimulationReport) -> dict[str, float]:
    """The metrics of pod groups: how many started, after which time, and how fragmented the domains are."""
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
        "domainFragmentation": domain_fragmentation(table, groups, typical),
    }


def domain_fragmentation(
    table: NodeTable, groups: Sequence[GroupOutcome], typical: Mapping[str, int]
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
    fits = room_for(table, typical)
    codes = table.labels.codes(key)
    domains = [
        int(fits[codes == code].sum()) // size for code in np.unique(codes) if code != ABSENT
    ]
    together = int(fits[codes != ABSENT].sum()) // size
    return 1 - sum(domains) / together if together else 0.0


def room_for(table: NodeTable, typical: Mapping[str, int]) -> Ints:
    """int64 per row: how many more typical pods fit; 0 on cordoned nodes."""
    usable: Bools = table.live & ~table.unschedulable
    free = [
        np.maximum(offered(table, name) - used(table, name), 0) // amount
        for name, amount in typical.items()
        if amount > 0
    ]
    slots = np.maximum(table.max_pods - table.pod_count, 0)
    fits: Ints = np.where(usable, np.minimum.reduce([slots, *free]), 0)
    return fits


def typical_request(
    pods: Iterable[Pod], resources: Sequence[str] = MAIN_RESOURCES
) -> dict[str, int]:
    """The median requests of the pods, in the scheduler's units: cpu in milli."""
    requests = [pod.requests for pod in pods]
    if not requests:
        return {}
    medians = {name: median(r.get(name, 0) for r in requests) for name in resources}
    return {name: int(amount) for name, amount in medians.items() if amount}


def count_empty_nodes(table: NodeTable) -> int:
    """Number of nodes that run only daemons and static pods."""
    return sum(
        all(is_daemon(pod) or is_static(pod) for pod in table.pods[row].values())
        for row in table.numbers(table.live_rows).tolist()
    )


def _placements(report: SimulationReport) -> dict[str, str]:
    return {
        result.pod.key: result.attempt.node_name if result.is_placed else ""
        for result in report.pods
    }
