"""Pictures: plots of answers with matplotlib, if installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from ..answers.account import PodExplanation
from ..answers.capacity import Capacity
from ..answers.compare import Comparison
from ..answers.group_account import PodGroupExplanation
from ..answers.judged_replay import JudgedReplay
from ..answers.rebalance import RebalancePlan
from ..answers.what_if import WhatIfAnswer
from ..choices import shown
from ..errors import package_needed
from ..sim import NodeUse, SimulationReport
from ..sim.html_summary import ShownAnswer
from ..sim.measures import MeasureUnit, measure_of
from ..sim.replay_report import ReplayReport
from ..sim.use_over_time import PENDING
from ..sweeps import SweepResults

MAX_NODES = 12
"""Number of nodes in the plot of an explanation."""
WIDTH, HEIGHT = 8.0, 3.2
ALWAYS_DRAWN = ("placed", "pending", "cpuUtilisation", "memoryUtilisation")
"""Metrics in the plot of a comparison even if they are equal."""
BETTER, WORSE = "tab:green", "tab:red"
OUTCOMES = {
    "moved": "C0",
    "madeAnew": "C0",
    "placed": BETTER,
    "newlyPending": "tab:orange",
    "lost": WORSE,
    "deleted": "C7",
    "preempted": WORSE,
    "stalls": WORSE,
}
"""Effects of a change on pods, and their colours."""


def plot(result: object, axes: Any = None) -> Any:
    """Plot an answer on `axes`, or on a new figure; return the axes. Raises TypeError for anything else."""
    if _draw.dispatch(type(result)) is _draw.dispatch(object):
        raise TypeError(f"plot: expected the answer to a question; got {shown(result)}")
    axes = _axes(axes)
    if isinstance(result, ShownAnswer):
        axes.set_title(result.headline())
    _draw(result, axes)
    return axes


@singledispatch
def _draw(result: object, axes: Any) -> None:
    """Draw an answer below its headline."""


@_draw.register
def _draw_report(result: SimulationReport, axes: Any) -> None:
    """Draw the use over time if it changes; otherwise the utilisation of the nodes.

    A line per resource in percent, and the number of pending pods on an axis of its own.
    """
    series = result.use_over_time()
    if all(each.is_flat for each in series):
        plot_nodes(result, axes)
        return
    unit, seconds = next(
        (name, length) for name, length in UNITS if result.time_s >= 2 * length or length == 1
    )
    beside = axes.twinx()
    for i, each in enumerate(each for each in series if each.peak):
        is_count = each.name == PENDING
        times = [time / seconds for time in (*each.times_s, each.end_s)]
        values = [value if is_count else 100 * value for value in (*each.values, each.values[-1])]
        target, style = (beside, ":") if is_count else (axes, "-")
        target.step(times, values, style, where="post", color="k" if is_count else f"C{i}")
        axes.plot([], [], style, color="k" if is_count else f"C{i}", label=each.name)
    axes.set(xlabel=unit, ylabel="requested, %", ylim=(0, 105))
    beside.set(ylabel="pending pods")
    beside.set_ylim(0, 1.05 * max(1.0, *(each.peak for each in series if each.name == PENDING)))
    _legend(axes, beside=0.1)


UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def plot_nodes(result: SimulationReport, axes: Any = None) -> Any:
    """Plot the utilisation of the nodes, fullest first: one line per resource, thin before and thick after."""
    axes = _axes(axes)
    resources = [name for name in _resources(result) if name != "pods"]
    for i, resource in enumerate(resources):
        for uses, width in (("before", 1.0), ("after", 2.5)):
            shares = sorted((_share(use, uses, resource) for use in result.nodes), reverse=True)
            label = resource if uses == "after" else None
            axes.step(range(len(shares)), shares, where="mid", lw=width, color=f"C{i}", label=label)
    axes.set(xlabel="nodes, fullest first", ylabel="requested, %", ylim=(0, 105))
    axes.set_title(f"{result.headline()} (thin lines: before)")
    if resources:
        _legend(axes)
    return axes


@_draw.register
def _draw_what_if(result: WhatIfAnswer, axes: Any) -> None:
    """Number of affected pods, by effect."""
    counts = result.summary()
    names = [name for name in OUTCOMES if counts.get(name)]
    axes.barh(names, [counts[name] for name in names], color=[OUTCOMES[name] for name in names])
    axes.set(xlabel="pods")


@_draw.register(JudgedReplay)
@_draw.register(ReplayReport)
def _draw_replay(result: JudgedReplay | ReplayReport, axes: Any) -> None:
    """Number of decisions by verdict."""
    found = {str(verdict): number for verdict, number in result.counts().items() if number}
    axes.barh([*found], [*found.values()])
    axes.set(xlabel="decisions")


@_draw.register
def _draw_capacity(result: Capacity, axes: Any) -> None:
    """Number of nodes by the number of pods that fit on them."""
    histogram = result.histogram()
    axes.bar([str(pods) for pods in reversed(histogram)], [*reversed(histogram.values())])
    axes.set(xlabel="more pods", ylabel="nodes")


@_draw.register
def _draw_rebalance(result: RebalancePlan, axes: Any) -> None:
    """The objective after each move; less is better."""
    values = [result.before, *(move.after for move in result.moves)]
    axes.step(range(len(values)), values, where="post", marker="o", color=BETTER)
    axes.set(xlabel="moves", ylabel=f"{result.objective.value} (↓ better)")


@_draw.register
def _draw_group(result: PodGroupExplanation, axes: Any) -> None:
    """Members per placement that was tried, or per state without placements."""
    counts: Mapping[str, int] = Counter(member.state.value for member in result.members)
    if result.placements:
        counts = {one.name: one.members for one in result.placements[:MAX_NODES]}
    axes.barh([*counts][::-1], [*counts.values()][::-1])
    if result.min_count:
        axes.axvline(result.min_count, color="k", ls=":", label="minCount")
        _legend(axes)
    axes.set(xlabel="members")


@_draw.register
def _draw_explanation(result: PodExplanation, axes: Any) -> None:
    """Scores of the best nodes, one colour per plugin; for an infeasible pod, the rejections per
    plugin."""
    title = f"{result.pod.namespace}/{result.pod.name}"
    if result.scores:
        nodes = result.scores[:MAX_NODES][::-1]
        left = [0] * len(nodes)
        for plugin in (one.plugin for one in result.score_plugins):
            points = [node.points.get(plugin, 0) for node in nodes]
            if any(points):
                axes.barh([node.name for node in nodes], points, left=left, label=plugin)
                left = [sum(pair) for pair in zip(left, points, strict=True)]
        axes.set(xlabel="points", title=f"{title} → {result.node}")
        _legend(axes)
        return
    counts: Counter[str] = Counter()
    for group in result.refused:
        for refusal in group.refusals:
            counts[refusal.plugin] += len(group.nodes)
    names = sorted(counts, key=counts.__getitem__)
    axes.barh(names, [counts[name] for name in names], color="C3")
    axes.set(xlabel="nodes refused", title=f"{title} is {result.verdict}")


@_draw.register
def _draw_comparison(result: Comparison, axes: Any) -> None:
    """The schedulers' metrics that differ, each as a share of the largest, with the confidence interval over the seeds.

    An arrow shows whether more or less is better; a frame around a bar marks one that is better or worse than the
    first.
    """
    first = result.contenders[0]
    names = [
        name
        for name in first.metrics
        if all(name in each.metrics for each in result.contenders)
        and (name in ALWAYS_DRAWN or _differs(result, name))
    ]
    largest = {
        name: max(abs(each.metrics[name].mean) for each in result.contenders) or 1.0
        for name in names
    }
    width = 0.8 / len(result.contenders)
    for i, each in enumerate(result.contenders):
        places = [number + i * width for number in range(len(names))]
        means = [each.metrics[name].mean / largest[name] for name in names]
        errors = [(each.metrics[name].margin or 0.0) / largest[name] for name in names]
        edges = [_edge(name, each.metrics[name].mean - first.metrics[name].mean) for name in names]
        axes.bar(places, means, width, yerr=errors, label=each.name, color=f"C{i}")
        axes.bar(places, means, width, color="none", edgecolor=edges, linewidth=2.0)
    middle = 0.4 - width / 2
    labels = [f"{name}{_arrow(name)}" for name in names]
    axes.set_xticks(
        [number + middle for number in range(len(names))], labels, rotation=40, ha="right"
    )
    axes.set(ylabel="share of the largest")
    if len(result.contenders) > 1:
        for text, colour in ((f"better than {first.name}", BETTER), ("worse", WORSE)):
            axes.plot([], [], "s", mfc="none", mec=colour, mew=2.0, label=text)
    _legend(axes)


@_draw.register
def _draw_sweep(result: SweepResults, axes: Any) -> None:
    """The first measure of the sweep by scheduler: means over the seeds with 95 % intervals, a colour per input."""
    names = result.shown_measures()
    groups = result.summary()
    labels = list(dict.fromkeys(group.run.scheduler for group in groups))
    inputs = list(dict.fromkeys(group.run.input_label for group in groups))
    for i, label in enumerate(inputs if names else ()):
        shift = (i - (len(inputs) - 1) / 2) * 0.6 / len(inputs)
        mine = [group for group in groups if group.run.input_label == label]
        found = [
            (labels.index(group.run.scheduler) + shift, metric.mean, metric.margin or 0.0)
            for group in mine
            if (metric := group.metric(names[0])) is not None
        ]
        places, means, margins = zip(*found, strict=True) if found else ((), (), ())
        axes.errorbar(places, means, yerr=margins, fmt="o", capsize=3, color=f"C{i}", label=label)
    axes.set_xticks(range(len(labels)), labels, rotation=20, ha="right")
    title = f"{measure_of(names[0]).title}{_arrow(names[0])}" if names else ""
    axes.set(ylabel=title)
    _legend(axes)


def _differs(result: Comparison, name: str) -> bool:
    """Whether the means of a repeatable metric differ; amounts are drawn as shares only."""
    measure = measure_of(name)
    means = {round(each.metrics[name].mean, 9) for each in result.contenders}
    return len(means) > 1 and measure.is_repeatable and measure.unit is not MeasureUnit.AMOUNT


def _arrow(metric: str) -> str:
    """Whether more or less of a metric is better."""
    return {1: " ↑", -1: " ↓"}.get(measure_of(metric).direction, "")


def _edge(metric: str, change: float) -> str:
    gain = measure_of(metric).direction * change
    return BETTER if gain > 0 else WORSE if gain < 0 else "none"


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    with package_needed("pictures", "matplotlib", "notebook"):
        from matplotlib import pyplot
    return pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")[1]


def _legend(axes: Any, beside: float = 0.0) -> None:
    """Place the legend beside the plot, so that it covers nothing."""
    place = (1.0 + beside, 0.5)
    axes.legend(loc="center left", bbox_to_anchor=place, frameon=False, fontsize="small")


def _resources(report: SimulationReport) -> list[str]:
    """The resources that some pod requests, in the order of the nodes."""
    asked = {name for use in report.nodes for name, amount in use.after.items() if amount}
    offered = dict.fromkeys(name for use in report.nodes for name in use.node.allocatable)
    return [name for name in offered if name in asked]


def _share(use: NodeUse, when: str, resource: str) -> float:
    total = use.node.allocatable.get(resource, 0)
    amount: int = getattr(use, when).get(resource, 0)
    return 100 * amount / total if total else 0.0
