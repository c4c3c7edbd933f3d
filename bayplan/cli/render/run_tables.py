"""Run tables: the result of a simulation as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ...api.text.durations import format_duration
from ...api.workloads import workload_key
from ...errors import counted
from ...sim import GroupOutcome, NodeUse, PodResult, SimulationReport
from ...sim.autoscaling_record import HOUR_S, NODES, ScalingReport, waiting_times
from ...sim.totals import MAIN_RESOURCES
from .cluster_totals import PICTURE_WIDTH, render_totals, render_use, sparkline
from .consoles import conclude, say
from .node_names import WHOLE_NAMES, NodeNames
from .pending_rows import render_pending
from .table_layout import Cell, Listing
from .tables import (
    BAR_WIDTH,
    amount,
    duration,
    hint,
    make_bar,
    price_text,
    section,
    share_change,
    value_change,
)

if TYPE_CHECKING:
    from ...sim.streaming import StreamReport

WIDE = 110
"""From this width on there is room for bars beside amounts."""
MAX_PODS = 40
MAX_NODES = 20
MAX_GROUPS = 20
UNNAMED_RESOURCES = (*MAIN_RESOURCES, "ephemeral-storage", "pods")


def render_report(
    console: Console,
    report: SimulationReport,
    *,
    wide: bool = False,
    everything: bool = False,
    details: bool = False,
    namespace: str | None = None,
) -> None:
    """Print pods, nodes, totals, pending pods and a summary.

    Long tables are cut unless `everything`; with `details` each pending pod is named. With a `namespace` the rows of
    other namespaces are left out; nodes, totals and the summary are those of the whole cluster.
    """
    whole, report = report, of_namespace(report, namespace)
    names = NodeNames.told(console, (use.node.name for use in report.nodes))
    placed = report.placed
    if everything or 0 < len(placed) <= MAX_PODS:
        section(console, _pod_table(placed, wide, names))
    elif placed:
        _render_workloads(console, report)
    nodes = report.nodes if everything else _busiest(report.nodes)
    section(console, _node_table(console, nodes, wide, names), even_empty=True)
    hint(console, len(report.nodes) - len(nodes), "node")
    render_totals(console, report.totals, wide=wide)
    preempted = ((one.key, names.short(one.node_name), by.key) for one, by in report.preempted)
    section(console, Listing(("PREEMPTED", "NODE", "FOR"), preempted))
    render_groups(console, report.groups, everything)
    render_pending(console, report.pending_groups, names, details=details, everything=everything)
    render_use(console, report.use_over_time(), report.time_s)
    if report.scaling is not None:
        render_scaling(console, report.scaling, whole.pods)
    hidden = len(whole.pods) - len(report.pods)
    if hidden:
        say(
            console, f"{counted(hidden, 'pod')} of other namespaces not shown; -A shows them", "dim"
        )
    conclude(console, summary(whole))


def of_namespace(report: SimulationReport, namespace: str | None) -> SimulationReport:
    """The report without the pods of other namespaces; None leaves it as it is."""
    if namespace is None:
        return report
    return replace(
        report,
        pods=[result for result in report.pods if result.pod.namespace == namespace],
        preempted=[pair for pair in report.preempted if pair[0].namespace == namespace],
    )


def summary(report: SimulationReport) -> Text:
    """`12 of 14 pods placed, 2 pending, 1h30m in 3 ms`."""
    placed = len(report.placed)
    pending = len(report.pods) - placed
    parts = [f"{placed:,} of {counted(len(report.pods), 'pod')} placed"]
    if pending:
        parts.append(f"{pending:,} pending")
    if report.groups:
        started = sum(group.has_started for group in report.groups)
        parts.append(f"{started:,} of {counted(len(report.groups), 'pod group')} started")
    if report.preempted:
        parts.append(f"{len(report.preempted):,} preempted")
    finished = sum(result.finished_s is not None for result in report.pods)
    if finished:
        parts.append(f"{finished:,} finished")
    passed = f"{format_duration(report.time_s)} in " if report.time_s else ""
    parts.append(passed + duration(report.seconds))
    return Text(", ".join(parts), style="bold yellow" if pending else "bold green")


def _render_workloads(console: Console, report: SimulationReport) -> None:
    """Print a line per workload, for more pods than there is room for."""
    pods: Counter[tuple[str, str]] = Counter()
    placed: Counter[tuple[str, str]] = Counter()
    nodes: dict[tuple[str, str], set[str]] = {}
    for result in report.pods:
        namespace, _, name = workload_key(result.pod)
        key = (namespace, name or "pods without an owner")
        pods[key] += 1
        if result.is_placed:
            placed[key] += 1
            nodes.setdefault(key, set()).add(result.attempt.node_name)
    numbers = ("PODS", "PLACED", "ON NODES")
    table = Listing(("NAMESPACE", "WORKLOAD", *numbers), right=numbers)
    for key in pods:
        cells = (f"{number:,}" for number in (pods[key], placed[key], len(nodes.get(key, ()))))
        table.add(*key, *cells, style="yellow" if placed[key] < pods[key] else "")
    section(console, table, most=MAX_PODS, what="workload")
    console.print(f"{counted(len(report.placed), 'pod')} placed; --all shows each\n", style="dim")


def _pod_table(results: list[PodResult], wide: bool, names: NodeNames) -> Listing:
    has_ended = any(map(_end, results))
    numbers = ("SCORE", "TIME", *(("PRIORITY", "FEASIBLE", "ATTEMPTS") if wide else ()))
    others = (*numbers, *(("ENDED",) if has_ended else ()))
    table = Listing(
        ("NAMESPACE", "POD", "NODE", *others),
        right=numbers,
        styles={"NODE": "cyan"},
        spare=others,
    )
    times = {time_s: format_duration(time_s) for time_s in {result.time_s for result in results}}
    for result in results:
        pod, attempt = result.pod, result.attempt
        score = "-" if attempt.score is None else str(attempt.score)
        node = names.short(attempt.node_name)
        cells = [pod.namespace, pod.name, node, score, times[result.time_s]]
        if wide:
            feasible = f"{attempt.feasible_nodes}/{attempt.evaluated_nodes}"
            cells += [str(pod.priority), feasible, str(result.attempts)]
        if has_ended:
            cells.append(_end(result))
        table.rows.append(cells)
    return table


def _end(result: PodResult) -> str:
    """The time and the cause of the pod's end on its node; empty while it runs."""
    if result.finished_s is not None:
        return f"{format_duration(result.finished_s)} finished"
    return "" if result.deleted_s is None else f"{format_duration(result.deleted_s)} deleted"


def _node_table(console: Console, uses: Sequence[NodeUse], wide: bool, names: NodeNames) -> Listing:
    bar_width = _bar_width(console, wide)
    extras = _extra_resources(uses, wide)
    others = [extra.rpartition("/")[2].upper() for extra in extras]
    headings = ("NODE", "PODS", "CPU", "MEMORY", *others)
    styles, is_styled = {"NODE": "cyan"}, console.is_terminal
    table = Listing(headings, styles=styles, spare=headings[1:], is_styled=is_styled)
    for use in uses:
        table.add(
            _node_name(use, names),
            value_change(str(use.pods_before), str(use.pods_after)),
            *(_use(use, resource, wide, bar_width) for resource in MAIN_RESOURCES),
            *(_amounts(use, resource) for resource in extras),
        )
    return table


def _node_name(use: NodeUse, names: NodeNames) -> Cell:
    """The node, and the times when it was added or removed during the run."""
    moments = ((use.added_s, "added"), (use.removed_s, "removed"))
    told = [
        (f" ({what} {format_duration(moment)})", "dim")
        for moment, what in moments
        if moment is not None
    ]
    name = names.short(use.node.name)
    return [(name, ""), *told] if told else name


def _use(use: NodeUse, resource: str, wide: bool, width: int) -> Cell:
    """A bar and numbers for one resource of a node."""
    total = use.node.allocatable.get(resource, 0)
    if not total:
        return "-"
    before, after = (sums.get(resource, 0) / total for sums in (use.before, use.after))
    shares = share_change(before, after)
    cell = [*make_bar(before, after, width), (f" {shares}", "")] if width else [(shares, "")]
    if wide:
        cell.append((f" ({_amounts(use, resource)})", "dim"))
    return cell


def _bar_width(console: Console, wide: bool) -> int:
    if wide:
        return BAR_WIDTH if console.width >= WIDE else 0
    return BAR_WIDTH if console.width >= 72 else max(BAR_WIDTH - 4, 1)


def _extra_resources(uses: Sequence[NodeUse], wide: bool) -> list[str]:
    """Resources beyond cpu and memory: all that nodes have, or those that are in use."""
    found: dict[str, None] = {}
    for use in uses:
        for name, value in (use.node.allocatable if wide else use.after).items():
            if value and name not in UNNAMED_RESOURCES:
                found[name] = None
    return list(found)


def _amounts(use: NodeUse, resource: str) -> str:
    """`2 → 3.1 of 4`."""
    before, after = (amount(sums.get(resource, 0), resource) for sums in (use.before, use.after))
    total = use.node.allocatable.get(resource, 0)
    if not total and after == "0":
        return "-"
    return f"{value_change(before, after)} of {amount(total, resource)}"


def _busiest(uses: list[NodeUse]) -> list[NodeUse]:
    """The nodes to show when there are too many: those that gained most, in their order."""
    if len(uses) <= MAX_NODES:
        return uses
    ranked = sorted(uses, key=lambda use: use.pods_before - use.pods_after)
    chosen = {id(use) for use in ranked[:MAX_NODES]}
    return [use for use in uses if id(use) in chosen]


def render_groups(console: Console, groups: list[GroupOutcome], everything: bool = False) -> None:
    """Print each pod group: where its members are, and why it waits; those that wait come first."""
    if not groups:
        return
    console.print(Text("POD GROUPS", style="bold"))
    ordered = sorted(groups, key=lambda group: not group.cause)
    shown = ordered if everything else ordered[:MAX_GROUPS]
    for group in shown:
        style = "green" if group.has_started and not group.cause else "yellow"
        console.print(Text(group.key, style=style))
        for line in _group_lines(group):
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))
    hint(console, len(ordered) - len(shown), "group")
    console.print()


def _group_lines(group: GroupOutcome) -> list[str]:
    lines = []
    if group.placed:
        since = "" if group.started_s is None else f", at {format_duration(group.started_s)}"
        lines.append(
            f"{group.placed} of {counted(group.members, 'member')} placed {group.place}{since}"
        )
    elif not group.members:
        lines.append("has no members")
    if group.cause:
        lines.append(f"waits: {group.cause}")
    return lines


def render_scaling(console: Console, report: ScalingReport, pods: Sequence[PodResult]) -> None:
    """Print nodes by type, costs, waiting times, evictions, and pods that no pool can run."""
    if report.nodes:
        section(console, _type_table(report), even_empty=True)
        section(console, _series_table(report))
    for one in report.unplaceable:
        say(console, f"{one.workload}: {counted(one.count, 'pod')} fit no pool:", "red")
        for reason, types in one.reasons.items():
            say(console, f"  {reason} ({', '.join(types)})", "red")
    for error in report.neglected:
        say(console, f"error: {error.message}", "red")
    for remark in report.remarks:
        say(console, f"note: {remark}", "yellow")
    reasons = ", ".join(f"{number:,} {why}" for why, number in report.evictions_by_reason().items())
    evicted = f"; {counted(len(report.evictions), 'pod')} evicted ({reasons})" if reasons else ""
    say(
        console,
        f"{report.autoscaler}: {counted(report.launched, 'node')} launched, "
        f"{report.removed:,} removed{evicted}",
    )
    waits = waiting_times(pods)
    say(
        console,
        "pods waited "
        + ", ".join(
            f"{format_duration(round(value, 1))} ({name})" for name, value in waits.items()
        ),
    )
    say(console, cost_text(report), "bold")


def cost_text(report: ScalingReport) -> str:
    """`cost 12.40, 0.52 per hour in the mean`, and how many nodes have no price."""
    text = f"cost {report.cost:,.2f}"
    if report.end_s:
        text += f", {report.cost / report.end_s * HOUR_S:,.2f} per hour in the mean"
    if report.unpriced:
        text += f"; {counted(report.unpriced, 'node')} without a price not counted"
    return text


def _type_table(report: ScalingReport) -> Listing:
    numbers = ("PRICE", "NODES", "PEAK", "AT THE END", "HOURS", "COST")
    rows = (
        (
            row["pool"],
            f"{row['type']} (spot)" if row["spot"] else row["type"],
            price_text(row["price"]),
            *(f"{row[name]:,}" for name in ("nodes", "peak", "end")),
            *(f"{row[name]:,.2f}" for name in ("hours", "cost")),
        )
        for row in report.by_type()
    )
    return Listing(("POOL", "TYPE", *numbers), rows, right=numbers, styles={"TYPE": "cyan"})


def _series_table(report: ScalingReport) -> Listing:
    numbers = ("PEAK", "AT", "MEAN")
    table = Listing(("", *numbers, "OVER TIME"), right=numbers, styles={"OVER TIME": "blue"})
    for each in report.series()[:2]:
        is_count = each.name == NODES
        form = "{:,.1f}" if is_count else "{:,.2f}"
        table.add(
            "nodes" if is_count else "cost per hour",
            f"{each.peak:,.0f}" if is_count else form.format(each.peak),
            format_duration(round(each.peak_at_s)),
            form.format(each.mean),
            sparkline(each.samples(PICTURE_WIDTH), each.peak or 1.0),
        )
    return table


def render_stream(console: Console, report: StreamReport) -> None:
    """Print totals, waiting times, pending pods, use over time and a summary."""
    render_totals(console, report.totals)
    numbers = ("MEAN", "P50", "P95", "P99", "MAX")
    table = Listing(("", *numbers), right=numbers)
    waits, slowdowns = report.waits.to_dict(), report.slowdowns.to_dict()
    table.add("waiting time", *(format_duration(waits[name.lower()]) for name in numbers))
    table.add("slowdown", *(f"{slowdowns[name.lower()]:.2f}" for name in numbers))
    section(console, table)
    render_pending(console, report.pending_groups, WHOLE_NAMES)
    render_use(console, report.use, report.time_s)
    console.print(_summary(report))


def _summary(report: StreamReport) -> Text:
    """`990 of 1,000 pods placed, 10 pending, on 7 nodes, 980 finished, 2h in 3 s`."""
    counts = report.counts
    parts = [report.headline()]
    parts += [f"{counts[name]:,} {name}" for name in ("preempted", "finished") if counts.get(name)]
    parts.append(f"{format_duration(report.time_s)} in {duration(report.seconds)}")
    return Text(", ".join(parts), style="bold green" if report.is_complete else "bold yellow")
