"""GroupMetrics: the metrics of preemption and of placements that kube-scheduler has since v1.37 for pod groups.

Mirrors pkg/scheduler/metrics/metrics.go of v1.37. All of them exist only with feature gate GenericWorkload, those of
placements with TopologyAwareWorkloadScheduling.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from .families import MetricRegistry
from .series import exponential_buckets

BY_POD, BY_POD_GROUP = "pod", "podgroup"
VICTIMS = exponential_buckets(1, 2, 11)
PREEMPTION_S = exponential_buckets(0.001, 2, 16)
PLACEMENT_S = exponential_buckets(0.001, 2, 15)


class PreemptionMetrics:
    """Preemptions for a pod, or for a pod group."""

    def __init__(self, metrics: MetricRegistry) -> None:
        self.attempts = metrics.counter(
            "scheduler_workload_preemption_attempts_total{result}",
            "Attempts to preempt pods for a pod group, by the code of their result.",
        )
        self.victims = metrics.histogram(
            "scheduler_workload_preemption_victims",
            "Victims of a preemption for a pod group.",
            VICTIMS,
        ).labels()
        self.disruptions = metrics.histogram(
            "scheduler_preemption_workload_disruptions{preemptor}",
            "Pod groups that are preempted as a whole.",
            VICTIMS,
        )
        self.evaluation = metrics.histogram(
            "scheduler_preemption_evaluation_duration_seconds{preemptor,result}",
            "Time to find the victims of a preemption, by the code of the result.",
            PREEMPTION_S,
        )
        self.execution = metrics.histogram(
            "scheduler_preemption_execution_duration_seconds{preemptor,result}",
            "Time to delete the victims of a preemption, by result.",
            PREEMPTION_S,
        )
        self.violations = metrics.counter(
            "scheduler_preemption_pdb_violations_total{preemptor}",
            "Victims whose disruption budget is exceeded by a preemption.",
        )

    def evaluating(self, preemptor: str) -> Callable[[str], None]:
        """Start timing the search for victims; call the result with the code of its status."""
        started = perf_counter()
        return lambda code: self.evaluation.labels(preemptor, code).observe(
            perf_counter() - started
        )

    def chosen(self, preemptor: str, violations: int, disruptions: int = 0) -> None:
        """Record the victims of a preemption: budgets that are exceeded, and groups that leave as a whole."""
        if violations:
            self.violations.labels(preemptor).count += violations
        if disruptions:
            self.disruptions.labels(preemptor).observe(disruptions)


class PlacementMetrics:
    """Placements of pod groups."""

    def __init__(self, metrics: MetricRegistry) -> None:
        self.generated = metrics.counter(
            "scheduler_generated_placements_total{profile}",
            "Placements that were proposed for pod groups.",
        )
        metrics.read_counter(
            "scheduler_placement_evaluations_total{result,profile}",
            "Placements on which pod groups were tried, by whether they fit.",
            source=lambda: self.duration.counts(),
        )
        self.duration = metrics.histogram(
            "scheduler_placement_evaluation_duration_seconds{result,profile}",
            "Time to try a pod group on one placement, by whether it fits.",
            PLACEMENT_S,
        )

    def tried(self, profile: str, possible: int, others: int, seconds: float) -> None:
        """Record placements that were tried together: those on which the group fits, and the others."""
        each = seconds / max(possible + others, 1)
        for result, number in (("feasible", possible), ("infeasible", others)):
            if number:
                self.duration.labels(result, profile).observe(each, number)
