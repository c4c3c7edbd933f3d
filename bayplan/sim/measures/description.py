"""Description: the name, unit, direction and meaning of each measure of a run."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from ...errors import InputError


class MeasureUnit(StrEnum):
    """Unit of the values of a measure."""

    COUNT = "count"
    SHARE = "share"
    """From 0 to 1; a requested share may be more."""
    SECONDS = "seconds"
    RATIO = "ratio"
    PRICE = "price"
    """In the unit of the prices of pools."""
    AMOUNT = "amount"
    """Of a resource: cpu in milli, others in whole units."""


class Measure(msgspec.Struct, frozen=True):
    """One measure of a run."""

    name: str
    title: str
    """As tables show it."""
    unit: MeasureUnit
    direction: int
    """Whether more (1) or less (-1) is better; 0: it depends on the aim."""
    doc: str
    is_repeatable: bool = True
    """Whether a second run with the same input and seed gives the same value."""
    is_comparable: bool = False
    """Whether it means the same under schedulers with different filters: it does not count promises."""

    @property
    def better(self) -> str | None:
        """`higher` or `lower`; None where it depends on the aim."""
        return {1: "higher", -1: "lower"}.get(self.direction)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "unit": self.unit.value,
            "better": self.better,
            "repeatable": self.is_repeatable,
        }


COUNT, SHARE, SECONDS = MeasureUnit.COUNT, MeasureUnit.SHARE, MeasureUnit.SECONDS
RATIO, AMOUNT, PRICE = MeasureUnit.RATIO, MeasureUnit.AMOUNT, MeasureUnit.PRICE

_FIXED = (
    Measure("placed", "pods placed", COUNT, 1, "Pods of the run that got a node."),
    Measure("pending", "pods pending", COUNT, -1, "Pods without a node at the end."),
    Measure("preempted", "pods preempted", COUNT, -1, "Pods that were removed for others."),
    Measure("emptyNodes", "nodes left empty", COUNT, 0, "Nodes with daemons and static pods only."),
    Measure("nodesUsed", "nodes used", COUNT, 0, "Nodes with other pods at the end."),
    Measure("peakNodesUsed", "most nodes used", COUNT, 0, "The most nodes in use at one time."),
    Measure("attempts", "scheduling attempts", COUNT, -1, "Attempts to place the pods of the run."),
    Measure(
        "fragmentation",
        "fragmentation",
        SHARE,
        -1,
        "Share of the free room that a typical pod cannot use because it is split over nodes.",
    ),
    Measure(
        "podGroupsStarted", "pod groups started", COUNT, 1, "Pod groups with enough members placed."
    ),
    Measure("podGroupsWaiting", "pod groups waiting", COUNT, -1, "The other pod groups."),
    Measure(
        "podGroupMeanLatency",
        "mean time to start a group",
        SECONDS,
        -1,
        "Time from the creation of the last member until enough had a node, on average.",
    ),
    Measure(
        "podGroupMaxLatency", "longest time to start a group", SECONDS, -1, "The longest such time."
    ),
    Measure(
        "domainFragmentation",
        "fragmentation by domain",
        SHARE,
        -1,
        "Share of the gangs for which there is room in all domains together, but in none of them.",
    ),
    Measure(
        "cost", "cost", PRICE, -1, "The price of all nodes of pools for the time they existed."
    ),
    Measure("meanCostPerHour", "cost per hour", PRICE, -1, "The same, divided by the hours."),
    Measure(
        "peakCostPerHour", "highest cost per hour", PRICE, -1, "The highest price at one time."
    ),
    Measure("peakPoolNodes", "most nodes of pools", COUNT, 0, "The most that existed at one time."),
    Measure("nodesLaunched", "nodes launched", COUNT, 0, "Nodes that the autoscaler launched."),
    Measure("nodesRemoved", "nodes removed", COUNT, 0, "Nodes of pools that are gone at the end."),
    Measure("scalingEvictions", "pods evicted", COUNT, -1, "Pods whose node was taken away."),
    Measure("unplaceablePods", "pods that fit no pool", COUNT, -1, "Pods that no node can run."),
    Measure(
        "secondsPerDecision",
        "time per decision",
        SECONDS,
        -1,
        "Time of the run on the wall clock per attempt.",
        is_repeatable=False,
        is_comparable=True,
    ),
    Measure(
        "namespaceFairness",
        "fairness to namespaces",
        RATIO,
        1,
        "Jain's index of the dominant shares of namespaces, each divided by what the namespace asked for.",
    ),
    Measure(
        "slowdownFairness",
        "fairness of slowdowns",
        RATIO,
        1,
        "Jain's index of the mean slowdowns of namespaces.",
    ),
    Measure(
        "maxDominantShare",
        "largest dominant share",
        SHARE,
        0,
        "The largest dominant share of a namespace, as a mean over the time.",
    ),
)
_STATISTICS = {"mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
_STATISTICS["max"] = "longest"
_SPREAD_OVER_PODS = (
    ("Latency", "latency", SECONDS, "time from a pod's creation until it had a node"),
    ("Slowdown", "slowdown", RATIO, "time from creation to end divided by the time it ran"),
    ("JobCompletion", "job completion time", SECONDS, "time from a job's creation to its end"),
)
_OF_A_RESOURCE = (
    Measure("Allocated", "{} allocated", AMOUNT, 1, "Requested by pods on nodes at the end."),
    Measure(
        "Utilisation",
        "{} in use",
        SHARE,
        1,
        "Share of what all nodes offer that pods on nodes request, at the end.",
    ),
    Measure("MeanUtilisation", "mean of {} in use", SHARE, 1, "The same, as a mean over the time."),
    Measure("PeakUtilisation", "peak of {} in use", SHARE, 0, "The same, at its highest."),
    Measure(
        "Requested",
        "{} requested",
        SHARE,
        0,
        "Share of what all nodes offer that all pods request, on nodes and pending, at the end.",
        is_comparable=True,
    ),
    Measure(
        "PeakRequested",
        "peak of {} requested",
        SHARE,
        0,
        "The same, at its highest.",
        is_comparable=True,
    ),
    Measure(
        "Overpromised",
        "{} over-promised",
        SHARE,
        -1,
        "Share of what all nodes offer that pods on nodes were promised, but that no single GPU has, at the end.",
        is_comparable=True,
    ),
    Measure(
        "OverpromisedNodes",
        "nodes with over-promised {}",
        COUNT,
        -1,
        "Nodes with pods whose shares do not fit on their GPUs, at the end.",
        is_comparable=True,
    ),
    Measure(
        "Delivered",
        "{} delivered",
        SHARE,
        1,
        "Share in use at the end, without the over-promised part.",
        is_comparable=True,
    ),
    Measure(
        "AtFullDemand",
        "{} in use at full demand",
        SHARE,
        1,
        "Share in use when pods have arrived that request 100 % of what all nodes offer, rounded to whole percent.",
    ),
    Measure("Spread", "spread of {}", SHARE, 0, "Standard deviation of the share in use by node."),
    Measure(
        "Fragmentation",
        "{} fragmentation",
        SHARE,
        -1,
        "Share of the free amount that a task of the workload is expected to be unable to use.",
    ),
    Measure(
        "Usable",
        "{} free and usable",
        SHARE,
        1,
        "Share of what all nodes offer that is free and not lost to fragmentation.",
    ),
)


def _over_pods() -> list[Measure]:
    """The measures of the distributions over pods."""
    return [
        Measure(f"{key}{name}", f"{shown} {title}", unit, -1, f"{shown.capitalize()} of: {doc}.")
        for name, title, unit, doc in _SPREAD_OVER_PODS
        for key, shown in _STATISTICS.items()
    ]


MEASURES: dict[str, Measure] = {each.name: each for each in (*_FIXED, *_over_pods())}
"""The measures that have one value per run."""
RESOURCE_MEASURES: dict[str, Measure] = {each.name: each for each in _OF_A_RESOURCE}
"""The measures that have a value per resource, by the end of their names: `cpuUtilisation`."""


def measure_of(name: str) -> Measure:
    """The measure of this name, such as `placed` or `nvidia.com/gpuUtilisation`; raises InputError for another one."""
    if name in MEASURES:
        return MEASURES[name]
    ends = [end for end in RESOURCE_MEASURES if name.endswith(end) and name != end]
    if not ends:
        known = ", ".join([*MEASURES, *(f"<resource>{end}" for end in RESOURCE_MEASURES)])
        raise InputError(f'expected the name of a measure ({known}); got "{name}"')
    end = max(ends, key=len)
    found = RESOURCE_MEASURES[end]
    resource = name.removesuffix(end)
    return msgspec.structs.replace(found, name=name, title=found.title.format(resource))
