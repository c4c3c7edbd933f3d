"""Render compare: a row per metric, a column per configuration, and the pods that land elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...answers.compare import COUNTS, Comparison, Contender, Difference, Metric
from ...api.durations import format_duration
from ...sim.totals import MAIN_RESOURCES
from .listing import Listing
from .node_names import NodeNames
from .tables import amount, count, hint, section, value_change

MAX_PODS = 20
TITLES = {
    "placed": "pods placed",
    "pending": "pods pending",
    "preempted": "pods preempted",
    "emptyNodes": "nodes left empty",
    "attempts": "scheduling attempts",
    "cpuUtilisation": "cpu in use",
    "memoryUtilisation": "memory in use",
    "cpuSpread": "spread of cpu",
    "memorySpread": "spread of memory",
    "fragmentation": "fragmentation",
    "podGroupsStarted": "pod groups started",
    "podGroupsWaiting": "pod groups waiting",
    "podGroupMeanLatency": "mean time to start a group",
    "podGroupMaxLatency": "longest time to start a group",
    "domainFragmentation": "fragmentation by domain",
    "meanLatency": "mean latency",
    "maxLatency": "longest latency",
}


def render_comparison(console: Console, answer: Comparison, everything: bool = False) -> None:
    """Print the comparison; a long table of pods is cut unless `everything`."""
    section(console, _metric_table(answer))
    differences = answer.differences()
    if differences:
        shown = differences if everything else differences[:MAX_PODS]
        section(console, _difference_table(console, answer, shown))
        hint(console, len(differences) - len(shown), "pod")
    pods = max(len(each.placements) for each in answer.contenders)
    verb = "lands" if len(differences) == 1 else "land"
    seeds = f", {count(len(answer.seeds), 'run')} each" if len(answer.seeds) > 1 else ""
    console.print(
        Text(f"{len(differences):,} of {count(pods, 'pod')} {verb} elsewhere{seeds}", style="bold")
    )


def _difference_table(
    console: Console, answer: Comparison, differences: Sequence[Difference]
) -> Listing:
    names = NodeNames.of(console, (node for pod in differences for node in pod.nodes if node))
    names.tell(console)
    table = Listing(("POD", *(each.name for each in answer.contenders)))
    for pod in differences:
        table.add(pod.pod, *(names.short(node) or "pending" for node in pod.nodes))
    return table


def _metric_table(answer: Comparison) -> Listing:
    contenders = [each.name for each in answer.contenders]
    table = Listing(("METRIC", *contenders), right=contenders)
    for name, title in TITLES.items():
        if any(name in each.metrics for each in answer.contenders):
            values = (each.metrics.get(name) for each in answer.contenders)
            table.add(title, *("-" if metric is None else _shown(metric) for metric in values))
    for resource in MAIN_RESOURCES:
        table.add(f"{resource} free", *(_free(each, resource) for each in answer.contenders))
    return table


def _free(contender: Contender, resource: str) -> str:
    """What is free on nodes that are open to every pod, before and after."""
    totals = contender.totals
    if totals is None:
        return "-"
    both = (totals.before.of(resource).free, totals.after.of(resource).free)
    return value_change(*(amount(free, resource) for free in both))


def _shown(metric: Metric) -> str:
    mean = _value(metric.name, metric.mean)
    if len(metric.values) == 1:
        return mean
    return f"{mean} ±{_value(metric.name, metric.deviation)}"


def _value(name: str, value: float) -> str:
    if name in COUNTS:
        return f"{value:,.1f}".removesuffix(".0")
    if name.endswith("Latency"):
        return format_duration(value)
    return f"{value * 100:.1f}%"
