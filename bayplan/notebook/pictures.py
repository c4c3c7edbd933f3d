"""Pictures: plots of answers with matplotlib, if installed."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from ..answers import PodExplanation
from ..answers.compare import Comparison
from ..errors import InputError
from ..sim import NodeUse, SimulationReport

MAX_NODES = 12
"""Number of nodes in the plot of an explanation."""
WIDTH, HEIGHT = 8.0, 3.2


@singledispatch
def plot(result: object, axes: Any = None) -> Any:
    """Plot an answer on `axes`, or on a new figure; return the axes. Raises InputError for a result
    without a plot."""
    raise InputError(f"plot: expected the answer to a question; got {type(result).__name__}")


@plot.register
def _plot_report(result: SimulationReport, axes: Any = None) -> Any:
    """Utilisation of the nodes, fullest first: one line per resource, thin before and thick after."""
    axes = _axes(axes)
    resources = [name for name in _resources(result) if name != "pods"]
    for i, resource in enumerate(resources):
        for uses, width in (("before", 1.0), ("after", 2.5)):
            shares = sorted((_share(use, uses, resource) for use in result.nodes), reverse=True)
            label = resource if uses == "after" else None
            axes.step(range(len(shares)), shares, where="mid", lw=width, color=f"C{i}", label=label)
    axes.set(xlabel="nodes, fullest first", ylabel="requested, %", ylim=(0, 105))
    axes.set_title(
        f"{len(result.placed):,} of {len(result.pods):,} pods placed (thin lines: before)"
    )
    if resources:
        _legend(axes)
    return axes


@plot.register
def _plot_explanation(result: PodExplanation, axes: Any = None) -> Any:
    """Scores of the best nodes, one colour per plugin; for an infeasible pod, the rejections per
    plugin."""
    axes = _axes(axes)
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
        return axes
    counts: dict[str, int] = {}
    for group in result.refused:
        for refusal in group.refusals:
            counts[refusal.plugin] = counts.get(refusal.plugin, 0) + len(group.nodes)
    names = sorted(counts, key=counts.__getitem__)
    axes.barh(names, [counts[name] for name in names], color="C3")
    axes.set(xlabel="nodes refused", title=f"{title} is {result.verdict}")
    return axes


@plot.register
def _plot_comparison(result: Comparison, axes: Any = None) -> Any:
    """The schedulers' metrics, each as a share of the largest, with the deviation over the seeds."""
    axes = _axes(axes)
    names = [name for name, m in result.contenders[0].metrics.items() if m.mean or m.deviation]
    largest = {
        name: max(abs(each.metrics[name].mean) for each in result.contenders) or 1.0
        for name in names
    }
    width = 0.8 / len(result.contenders)
    for i, each in enumerate(result.contenders):
        places = [number + i * width for number in range(len(names))]
        means = [each.metrics[name].mean / largest[name] for name in names]
        errors = [each.metrics[name].deviation / largest[name] for name in names]
        axes.bar(places, means, width, yerr=errors, label=each.name)
    middle = 0.4 - width / 2
    axes.set_xticks(
        [number + middle for number in range(len(names))], names, rotation=40, ha="right"
    )
    axes.set(ylabel="share of the largest", title=f"{len(result.seeds)} runs each")
    _legend(axes)
    return axes


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InputError(
            "pictures: expected matplotlib to be installed (pip install 'bayplan[notebook]'); got none"
        ) from None
    return pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")[1]


def _legend(axes: Any) -> None:
    """Place the legend beside the plot, so that it covers nothing."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")


def _resources(report: SimulationReport) -> list[str]:
    """The resources that some pod requests, in the order of the nodes."""
    asked = {name for use in report.nodes for name, amount in use.after.items() if amount}
    offered = dict.fromkeys(name for use in report.nodes for name in use.node.allocatable)
    return [name for name in offered if name in asked]


def _share(use: NodeUse, when: str, resource: str) -> float:
    total = use.node.allocatable.get(resource, 0)
    amount: int = getattr(use, when).get(resource, 0)
    return 100 * amount / total if total else 0.0
