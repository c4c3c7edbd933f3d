"""Description: the name, unit, direction and meaning of each measure of a run."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from ...errors import InputError
from ..plain_part import PlainPart


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
    """Amounts of a resource: cpu in milli, others in whole units."""


class Measure(PlainPart, msgspec.Struct, frozen=True):
    """One measure of a run."""

    PLAIN = "name unit better repeatable=is_repeatable"

    name: str
    title: str
    """The form in tables."""
    unit: MeasureUnit
    direction: int
    """Whether more (1) or less (-1) is better; 0 if that depends on the aim."""
    doc: str
    is_repeatable: bool = True
    """Whether a second run with the same input and seed gives the same value."""
    is_comparable: bool = False
    """Whether it is comparable between schedulers with different filters: it does not count amounts promised beyond
    capacity.
    """

    @property
    def better(self) -> str | None:
        """`higher` or `lower`; None where it depends on the aim."""
        return {1: "higher", -1: "lower"}.get(self.direction)


_OF_A_RUN = """
placed | pods placed | count | higher | Pods of the run that got a node.
pending | pods pending | count | lower | Pods without a node at the end.
preempted | pods preempted | count | lower | Pods that were removed for others.
emptyNodes | nodes left empty | count | - | Nodes with daemons and static pods only.
nodesUsed | nodes used | count | - | Nodes with other pods at the end.
peakNodesUsed | most nodes used | count | - | The most nodes in use at one time.
attempts | scheduling attempts | count | lower | Attempts to place the pods of the run.
fragmentation | fragmentation | share | lower | Share of the free room that a typical pod cannot use because it is
  split over nodes.
podGroupsStarted | pod groups started | count | higher | Pod groups with enough members placed.
podGroupsWaiting | pod groups waiting | count | lower | The other pod groups.
podGroupMeanLatency | mean time to start a group | seconds | lower | Time from the creation of the last member until
  enough had a node, on average.
podGroupMaxLatency | longest time to start a group | seconds | lower | The longest such time.
domainFragmentation | fragmentation by domain | share | lower | Share of the gangs for which there is room in all
  domains together, but in none of them.
cost | cost | price | lower | The price of all nodes of pools for the time they existed.
meanCostPerHour | cost per hour | price | lower | The same, divided by the hours.
peakCostPerHour | highest cost per hour | price | lower | The highest price at one time.
peakPoolNodes | most nodes of pools | count | - | The most that existed at one time.
nodesLaunched | nodes launched | count | - | Nodes that the autoscaler launched.
nodesRemoved | nodes removed | count | - | Nodes of pools that are gone at the end.
scalingEvictions | pods evicted | count | lower | Pods whose node was taken away.
unplaceablePods | pods that fit no pool | count | lower | Pods that no node can run.
secondsPerDecision | time per decision | seconds | lower | Time of the run on the wall clock per attempt.
namespaceFairness | fairness to namespaces | ratio | higher | Jain's index of the dominant shares of namespaces, each
  divided by what the namespace asked for.
slowdownFairness | fairness of slowdowns | ratio | higher | Jain's index of the mean slowdowns of namespaces.
maxDominantShare | largest dominant share | share | - | The largest dominant share of a namespace, as a mean over the
  time.
"""
"""Name, title, unit, which direction is better, and meaning; an indented line continues the one above."""

_OF_A_RESOURCE = """
Allocated | {} allocated | amount | higher | Requested by pods on nodes at the end.
Utilisation | {} in use | share | higher | Share of what all nodes offer that pods on nodes request, at the end.
MeanUtilisation | mean of {} in use | share | higher | The same, as a mean over the time.
PeakUtilisation | peak of {} in use | share | - | The same, at its highest.
Requested | {} requested | share | - | Share of what all nodes offer that all pods request, on nodes and pending, at
  the end.
PeakRequested | peak of {} requested | share | - | The same, at its highest.
Overpromised | {} over-promised | share | lower | Share of what all nodes offer that pods on nodes were promised, but
  that no single GPU has, at the end.
OverpromisedNodes | nodes with over-promised {} | count | lower | Nodes with pods whose shares do not fit on their
  GPUs, at the end.
Delivered | {} delivered | share | higher | Share in use at the end, without the over-promised part.
AtFullDemand | {} in use at full demand | share | higher | Share in use when pods have arrived that request 100 % of
  what all nodes offer, rounded to whole percent.
Spread | spread of {} | share | - | Standard deviation of the share in use by node.
Fragmentation | {} fragmentation | share | lower | Share of the free amount that a task of the workload is expected to
  be unable to use.
Usable | {} free and usable | share | higher | Share of what all nodes offer that is free and not lost to
  fragmentation.
"""
"""The measures of a resource: its name precedes the name of the measure, and is in the title."""

_NOT_REPEATABLE = frozenset({"secondsPerDecision"})
_COMPARABLE = frozenset(
    {
        *("secondsPerDecision", "Requested", "PeakRequested"),
        *("Overpromised", "OverpromisedNodes", "Delivered"),
    }
)

_STATISTICS = {"mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
_STATISTICS["max"] = "longest"
SECONDS, RATIO = MeasureUnit.SECONDS, MeasureUnit.RATIO
_SPREAD_OVER_PODS = (
    ("Latency", "latency", SECONDS, "time from a pod's creation until it had a node"),
    ("Slowdown", "slowdown", RATIO, "time from creation to end divided by the time it ran"),
    ("JobCompletion", "job completion time", SECONDS, "time from a job's creation to its end"),
)


def _parsed(table: str) -> Iterator[Measure]:
    """The measures of a table."""
    for line in table.strip().replace("\n  ", " ").splitlines():
        name, title, unit, better, doc = line.split(" | ")
        yield Measure(
            name,
            title,
            MeasureUnit(unit),
            {"higher": 1, "lower": -1}.get(better, 0),
            doc,
            is_repeatable=name not in _NOT_REPEATABLE,
            is_comparable=name in _COMPARABLE,
        )


def _over_pods() -> list[Measure]:
    """The measures of the distributions over pods."""
    return [
        Measure(f"{key}{name}", f"{shown} {title}", unit, -1, f"{shown.capitalize()} of: {doc}.")
        for name, title, unit, doc in _SPREAD_OVER_PODS
        for key, shown in _STATISTICS.items()
    ]


MEASURES: dict[str, Measure] = {each.name: each for each in (*_parsed(_OF_A_RUN), *_over_pods())}
"""The measures that have one value per run."""
RESOURCE_MEASURES: dict[str, Measure] = {each.name: each for each in _parsed(_OF_A_RESOURCE)}
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
