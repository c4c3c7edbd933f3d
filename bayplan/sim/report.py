"""Report: the result of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..api.own_documents import API_VERSION
from ..api.workloads import WorkloadKey
from ..cluster.memory.refusals import AdmissionRefusal
from ..errors import InputError
from ..releases.release import DEFAULT_RELEASE
from .autoscaling_record import ScalingReport
from .html_summary import ShownAnswer, chosen, make_frame, pod_columns, zone_of
from .measures.fragmentation import RequestMix
from .measures.over_time import RunMoves, series_of, use_series
from .measures.run_measures import RunRecord, arrival_rows, measure_rows, measure_run
from .outcomes import PodResult, time_entry
from .pending_pods import PendingGroup, group_pending
from .totals import TotalsChange, is_tainted, totals_of_uses
from .use_over_time import SAMPLES, UseSeries


@dataclass(slots=True, repr=False)
class SimulationReport(RunRecord, ShownAnswer):
    """All pods that were pending, in the order of their first attempt, and all nodes.

    Pods that were preempted, or deleted before they had a node, are not included.
    """

    refused: list[AdmissionRefusal] = field(default_factory=list)
    """Pods and claims that a LimitRange or a ResourceQuota keeps out of the cluster."""
    remarks: list[str] = field(default_factory=list)
    """Notes on objects of the input that are not simulated as they are."""
    sizes: Mapping[WorkloadKey, int] = field(default_factory=dict)
    """Number of pods of each workload at the end; empty when no pod is pending."""
    filters: tuple[str, ...] = ()
    """The rules by which nodes were filtered: promised amounts of runs with other rules are not comparable."""
    scaling: ScalingReport | None = None
    """Actions of an autoscaler, if there was one."""
    release: str = DEFAULT_RELEASE.patch
    """The tag of the kube-scheduler whose decisions these are."""

    @property
    def placed(self) -> list[PodResult]:
        return [result for result in self.pods if result.is_placed]

    @property
    def pending(self) -> list[PodResult]:
        return [result for result in self.pods if not result.is_placed]

    @property
    def is_complete(self) -> bool:
        """Whether every pod was placed, and none refused."""
        return not self.refused and all(result.is_placed for result in self.pods)

    @property
    def notices(self) -> list[str]:
        """Remarks to print with the result."""
        scaled = [] if self.scaling is None else self.scaling.notices
        return [*(f"refused: {refusal}" for refusal in self.refused), *self.remarks, *scaled]

    @property
    def pending_groups(self) -> list[PendingGroup]:
        """The pending pods by workload and reason."""
        return group_pending(self.pending, self.sizes)

    @property
    def totals(self) -> TotalsChange:
        """The resources of all nodes, before and after."""
        return totals_of_uses(self.nodes)

    def use_over_time(self) -> list[UseSeries]:
        """Use of each resource, and number of pending pods, over the time of the run."""
        if not self.time_s:
            return []
        return use_series(RunMoves.of(self.history.moves()), self.time_s)

    def measures(self) -> dict[str, float]:
        """Measures of the run: values by name, such as `cpuUtilisation`; docs/measures.md has them all."""
        scaled = {} if self.scaling is None else self.scaling.measures()
        return measure_run(self) | scaled

    def measures_over_time(self) -> list[UseSeries]:
        """The measures that change over the time of the run; empty when no time passed."""
        mix = RequestMix.of(result.pod for result in self.pods)
        return list(series_of(RunMoves.of(self.history.moves()), self.time_s, mix))

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain data, as `bayplan simulate -o json` prints it."""
        return {
            "apiVersion": API_VERSION,
            "kind": "SimulationReport",
            "kubernetesVersion": self.release,
            "summary": {
                "pods": len(self.pods),
                "placed": len(self.placed),
                "pending": len(self.pending),
                "preempted": len(self.preempted),
                "refused": sum(refusal.count for refusal in self.refused),
                "running": self.running,
                "nodes": len(self.nodes),
                "finished": sum(result.finished_s is not None for result in self.pods),
                "podGroups": len(self.groups),
                "podGroupsStarted": sum(group.has_started for group in self.groups),
                "time": time_entry(self.time_s),
            },
            "pendingGroups": [group.to_dict() for group in self.pending_groups],
            "totals": self.totals.to_list(),
            "measures": [row for row in measure_rows(self.measures()) if row["repeatable"]],
            "useOverTime": [series.to_dict() for series in self.use_over_time()],
            "pods": [result.to_dict() for result in self.pods],
            "nodes": [use.to_dict() for use in self.nodes],
            "podGroups": [group.to_dict() for group in self.groups],
            "preempted": [
                {
                    "namespace": victim.namespace,
                    "name": victim.name,
                    "node": victim.node_name,
                    "for": {"namespace": preemptor.namespace, "name": preemptor.name},
                }
                for victim, preemptor in self.preempted
            ],
            "refused": [refusal.to_dict() for refusal in self.refused],
            **({"scaling": self.scaling.to_dict(self.pods)} if self.scaling else {}),
            **({"remarks": self.remarks} if self.remarks else {}),
        }

    def headline(self) -> str:
        """`12 of 14 pods placed, 2 pending, on 7 nodes`."""
        pending = f", {len(self.pending):,} pending" if self.pending else ""
        nodes = sum(use.removed_s is None for use in self.nodes)
        placed = f"{len(self.placed):,} of {len(self.pods):,} pods placed"
        return f"{placed}{pending}, on {nodes:,} nodes"

    def shown_rows(self) -> Iterator[dict[str, Any]]:
        """The groups of pending pods, then each resource of the cluster."""
        for group in self.pending_groups:
            reasons = ", ".join(f"{reason} ({nodes})" for reason, nodes in group.refusals.items())
            why = reasons or group.message
            yield {"what": group.workload, "value": f"{len(group.pods)} pending", "why": why}
        totals = self.totals
        for name in totals.resources:
            before, after = totals.before.of(name), totals.after.of(name)
            if after.allocatable:
                shares = f"{before.share:.0%} → {after.share:.0%} in use"
                yield {"what": name, "value": shares, "why": ""}

    def pod_rows(self) -> list[dict[str, Any]]:
        """One row per pod: its node and times in seconds, where it belongs, and its requests, cpu in milli."""
        zones = {use.node.name: zone_of(use.node) for use in self.nodes}
        return [
            {
                "namespace": result.pod.namespace,
                "pod": result.pod.name,
                "node": result.attempt.node_name if result.is_placed else None,
                "zone": zones.get(result.attempt.node_name) if result.is_placed else None,
                "outcome": result.attempt.outcome.value,
                "score": result.attempt.score,
                "priority": result.pod.priority,
                "created_s": result.created_s,
                "decided_s": result.time_s,
                "finished_s": result.finished_s,
                "attempts": result.attempts,
                "message": result.attempt.message,
                **pod_columns(result.pod),
            }
            for result in self.pods
        ]

    def node_rows(self) -> list[dict[str, Any]]:
        """One row per node: zone, labels, pods, and capacity and requests of each resource; cpu in milli."""
        rows = []
        for use in self.nodes:
            row: dict[str, Any] = {
                "node": use.node.name,
                "zone": zone_of(use.node),
                "labels": dict(use.node.labels),
                "cordoned": use.node.unschedulable,
                "tainted": is_tainted(use.node),
                "pods": use.pods_after,
            }
            for resource, amount in use.node.allocatable.items():
                if resource != "pods":
                    row[resource] = amount
                    row[f"{resource} requested"] = use.after.get(resource, 0)
            rows.append(row)
        return rows

    def time_rows(self) -> list[dict[str, Any]]:
        """One row per change of a quantity: a resource's share in use, or the number of pending pods."""
        return [row for series in self.use_over_time() for row in series.rows()]

    def sample_rows(self, samples: int = SAMPLES) -> list[dict[str, Any]]:
        """One row per equal part of the time: when it starts, and the mean of each measure over it."""
        if samples < 1:
            raise InputError(f"samples: expected 1 or more; got {samples}")
        columns = {each.name: each.samples(samples) for each in self.measures_over_time()}
        length = self.time_s / samples
        return [
            {"time_s": i * length, **{name: values[i] for name, values in columns.items()}}
            for i in range(samples if columns else 0)
        ]

    def to_frame(self, what: str = "pods", samples: int = SAMPLES) -> Any:
        """A pandas DataFrame of the `pods`, the `nodes`, the `measures`, or how they developed.

        `time` has a row per change of use; `use` has the measures as means of so many equal parts of the time
        (`samples`); `arrivals` has demand and allocation after each pod. With an autoscaler, `scaled` has the nodes of
        pools with their costs, and `cost` the cost per hour and the number of nodes after each change.
        """
        rows: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
            "pods": self.pod_rows,
            "nodes": self.node_rows,
            "measures": lambda: measure_rows(self.measures()),
            "time": self.time_rows,
            "use": lambda: self.sample_rows(samples),
            "arrivals": lambda: arrival_rows(self.pods, self.nodes),
            **({} if self.scaling is None else self.scaling.frames()),
        }
        return make_frame(chosen(what, rows))
