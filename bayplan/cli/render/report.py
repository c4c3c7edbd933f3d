"""Report: the result of a simulation as tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ...api.durations import format_duration
from ...sim import GroupOutcome, NodeUse, PodResult, SimulationReport
from .tables import BAR_WIDTH, Cell, Listing, amount, count, duration, hint, make_bar, section

MAX_PODS = 40
MAX_NODES = 20
MAX_MESSAGES = 10
MAX_GROUPS = 20
NAMED_PER_MESSAGE = 3
MAIN_RESOURCES = ("cpu", "memory")
UNNAMED_RESOURCES = (*MAIN_RESOURCES, "ephemeral-storage", "pods")


def render_report(
    console: Console, report: SimulationReport, *, wide: bool = False, everything: bool = False
) -> None:
    """Print pods, nodes, what is pending and a summary; long tables are cut unless `everything`."""
    placed = report.placed
    if placed:
        shown = placed if everything else placed[:MAX_PODS]
        section(console, _pod_table(shown, wide))
        hint(console, len(placed) - len(shown), "pod")
    nodes = report.nodes if everything else _busiest(report.nodes)
    section(console, _node_table(nodes, wide, _bar_width(console, wide)))
    hint(console, len(report.nodes) - len(nodes), "node")
    _render_preempted(console, report)
    render_groups(console, report.groups, everything)
    _render_pending(console, report.pending, everything)
    console.print(summary(report))


def summary(report: SimulationReport) -> Text:
    """`12 of 14 pods placed, 2 pending, 1h30m in 3 ms`."""
    placed, pending = len(report.placed), len(report.pending)
    parts = [f"{placed:,} of {count(len(report.pods), 'pod')} placed"]
    if pending:
        parts.append(f"{pending:,} pending")
    if report.groups:
        started = sum(group.has_started for group in report.groups)
        parts.append(f"{started:,} of {count(len(report.groups), 'pod group')} started")
    if report.preempted:
        parts.append(f"{len(report.preempted):,} preempted")
    finished = sum(result.finished_s is not None for result in report.pods)
    if finished:
        parts.append(f"{finished:,} finished")
    passed = f"{format_duration(report.time_s)} in " if report.time_s else ""
    parts.append(passed + duration(report.seconds))
    return Text(", ".join(parts), style="bold yellow" if pending else "bold green")


def _pod_table(results: list[PodResult], wide: bool) -> Listing:
    has_ended = any(map(_end, results))
    numbers = ("SCORE", "TIME", *(("PRIORITY", "FEASIBLE", "ATTEMPTS") if wide else ()))
    table = Listing(
        ("NAMESPACE", "POD", "NODE", *numbers, *(("ENDED",) if has_ended else ())),
        right=numbers,
        styles={"NODE": "cyan"},
        folded=("NAMESPACE", "POD", "NODE"),
    )
    for result in results:
        pod, attempt = result.pod, result.attempt
        score = "-" if attempt.score is None else str(attempt.score)
        time = format_duration(result.time_s)
        cells = [pod.namespace, pod.name, attempt.node_name, score, time]
        if wide:
            feasible = f"{attempt.feasible_nodes}/{attempt.evaluated_nodes}"
            cells += [str(pod.priority), feasible, str(result.attempts)]
        if has_ended:
            cells.append(_end(result))
        table.rows.append(cells)
    return table


def _end(result: PodResult) -> str:
    """When and how the pod left its node; empty while it is there."""
    if result.finished_s is not None:
        return f"{format_duration(result.finished_s)} finished"
    return "" if result.deleted_s is None else f"{format_duration(result.deleted_s)} deleted"


def _node_table(uses: Iterable[NodeUse], wide: bool, bar_width: int) -> Listing:
    uses = list(uses)
    extras = _extra_resources(uses, wide)
    table = Listing(
        ("NODE", "PODS", "CPU", "MEMORY", *(extra.rpartition("/")[2].upper() for extra in extras)),
        styles={"NODE": "cyan"},
        folded=("NODE",),
    )
    for use in uses:
        table.rows.append(
            [
                _node_name(use),
                _change(str(use.pods_before), str(use.pods_after)),
                *(_use(use, resource, wide, bar_width) for resource in MAIN_RESOURCES),
                *(_amounts(use, resource) for resource in extras),
            ]
        )
    return table


def _node_name(use: NodeUse) -> Cell:
    """The node, and when it came or went in the meantime."""
    moments = ((use.added_s, "added"), (use.removed_s, "removed"))
    told = [
        (f" ({what} {format_duration(moment)})", "dim")
        for moment, what in moments
        if moment is not None
    ]
    return [(use.node.name, ""), *told] if told else use.node.name


def _use(use: NodeUse, resource: str, wide: bool, width: int) -> Cell:
    """A bar and numbers for one resource of a node."""
    total = use.node.allocatable.get(resource, 0)
    before, after = use.before.get(resource, 0), use.after.get(resource, 0)
    if not total:
        return "-"
    shares = _change(f"{before * 100 // total}", f"{after * 100 // total}")
    cell = [*make_bar(before / total, after / total, width), (f" {shares}%", "")]
    if wide:
        cell.append((f" ({_amounts(use, resource)})", "dim"))
    return cell


def _bar_width(console: Console, wide: bool) -> int:
    return BAR_WIDTH if wide or console.width >= 72 else max(BAR_WIDTH - 4, 1)


def _extra_resources(uses: list[NodeUse], wide: bool) -> list[str]:
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
    return f"{_change(before, after)} of {amount(total, resource)}"


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before}→{after}"


def _busiest(uses: list[NodeUse]) -> list[NodeUse]:
    """The nodes to show when there are too many: those that gained most, in their order."""
    if len(uses) <= MAX_NODES:
        return uses
    ranked = sorted(uses, key=lambda use: use.pods_before - use.pods_after)
    chosen = {id(use) for use in ranked[:MAX_NODES]}
    return [use for use in uses if id(use) in chosen]


def _render_preempted(console: Console, report: SimulationReport) -> None:
    if not report.preempted:
        return
    headings = ("PREEMPTED", "NODE", "FOR")
    table = Listing(headings, folded=headings)
    table.rows += ([victim.key, victim.node_name, by.key] for victim, by in report.preempted)
    section(console, table)


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
            f"{group.placed} of {count(group.members, 'member')} placed {group.place}{since}"
        )
    elif not group.members:
        lines.append("has no members")
    if group.cause:
        lines.append(f"waits: {group.cause}")
    return lines


def _render_pending(console: Console, pending: list[PodResult], everything: bool) -> None:
    """Print what keeps pods waiting, each message once."""
    if not pending:
        return
    by_message: defaultdict[str, list[PodResult]] = defaultdict(list)
    for result in pending:
        by_message[result.attempt.message].append(result)
    console.print(Text("PENDING", style="bold"))
    messages = list(by_message) if everything else list(by_message)[:MAX_MESSAGES]
    for message in messages:
        results = by_message[message]
        named = results if everything else results[:NAMED_PER_MESSAGE]
        names = Text(", ".join(result.pod.key for result in named), style="yellow")
        if len(named) < len(results):
            names.append(f" and {len(results) - len(named):,} more")
        console.print(names)
        console.print(Padding(Text(message), (0, 0, 0, 2), expand=False))
    hint(console, len(by_message) - len(messages), "message")
    console.print()
