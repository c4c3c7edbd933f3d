"""Render compare: a row per metric, a column per configuration, and the pods that land elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...answers.compare import COUNTS, Comparison, Metric
from ...api.durations import format_duration
from .tables import count, hint, new_table, section

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
        table = new_table()
        table.add_column("POD", overflow="fold")
        for each in answer.contenders:
            table.add_column(each.name, overflow="fold")
        for pod in shown:
            table.add_row(*map(Text, (pod.pod, *(node or "pending" for node in pod.nodes))))
        section(console, table)
        hint(console, len(differences) - len(shown), "pod")
    pods = max(len(each.placements) for each in answer.contenders)
    verb = "lands" if len(differences) == 1 else "land"
    seeds = f", {count(len(answer.seeds), 'run')} each" if len(answer.seeds) > 1 else ""
    console.print(
        Text(f"{len(differences):,} of {count(pods, 'pod')} {verb} elsewhere{seeds}", style="bold")
    )


def _metric_table(answer: Comparison) -> Table:
    table = new_table()
    table.add_column("METRIC", no_wrap=True)
    for each in answer.contenders:
        table.add_column(each.name, justify="right", overflow="fold")
    for name, title in TITLES.items():
        if any(name in each.metrics for each in answer.contenders):
            values = (each.metrics.get(name) for each in answer.contenders)
            table.add_row(title, *("-" if metric is None else _shown(metric) for metric in values))
    return table


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
