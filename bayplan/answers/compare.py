"""Compare: one workload under several schedulers: metrics, and the pods placed differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, pstdev
from typing import Any

import numpy as np

from ..api.pod import Pod
from ..errors import InputError
from ..sim import Simulation, SimulationReport
from ..sim.frames import make_frame
from ..sim.world import InputObject
from ..table import Bools, NodeTable
from .owners import is_daemon, is_static
from .room import MAIN_RESOURCES, offered, used, utilisation
from .settings import OnProgress, Settings
from .stage import PlaceOf

COUNTS = ("placed", "pending", "preempted", "emptyNodes", "attempts")
"""The metrics that count something; the others are shares between 0 and 1, or seconds."""


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

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "metrics": [metric.to_dict() for metric in self.metrics.values()],
            "placements": dict(self.placements),
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


@dataclass(slots=True)
class Comparison:
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
            {"scheduler": each.name, "metric": name, "mean": m.mean, "deviation": m.deviation}
            for each in self.contenders
            for name, m in each.metrics.items()
        ]

    def to_frame(self) -> Any:
        """The means as a pandas DataFrame: one row per metric, one column per scheduler."""
        frame = make_frame(self.metric_rows())
        return frame.pivot_table("mean", "metric", "scheduler", sort=False)

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
        for seed in numbers:
            simulation = replace(settings, seed=seed).simulation(objects, place_of)
            report = simulation.run()
            if typical is None:
                typical = typical_request(result.pod for result in report.pods)
            if not runs:
                placements = _placements(report)
            runs.append(measure(simulation, report, typical))
            done += 1
            if on_progress is not None:
                on_progress(done, len(schedulers) * seeds)
        metrics = {key: Metric(key, tuple(run[key] for run in runs)) for key in runs[0]}
        contenders.append(Contender(name, metrics, placements))
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
    fits = np.minimum.reduce([slots, *(free[name] // wanted[name] for name in wanted)])
    together = min(int(slots.sum()), *(int(free[name].sum()) // wanted[name] for name in wanted))
    return 1 - int(fits.sum()) / together if together else 0.0


def typical_request(pods: Iterable[Pod]) -> dict[str, int]:
    """The median requests of the pods: cpu (milli) and memory."""
    requests = [pod.requests for pod in pods]
    if not requests:
        return {}
    medians = {name: median(r.get(name, 0) for r in requests) for name in MAIN_RESOURCES}
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
