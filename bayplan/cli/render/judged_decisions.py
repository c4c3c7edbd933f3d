"""Judged decisions: the account of a scheduler's decisions as tables: per scheduler, differences, gain."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...answers.judged_decision import Agreement, JudgedDecision
from ...answers.judged_replay import reason_of
from ...api.text.durations import format_duration
from ...shadow.decision_account import DecisionAccount, DecisionDifference, PointRange
from ...shadow.gain import Gain
from ...shadow.report import headline
from .node_names import NodeNames
from .table_layout import Listing
from .tables import count, hint, section

MAX_DIFFERENCES = 20
MAX_SKEWED = 5
STYLES = {
    Agreement.SAME: "",
    Agreement.SAMPLED: "dim",
    Agreement.OTHER_STATE: "yellow",
    Agreement.DIFFERENT: "red",
}


def render_account(
    console: Console, account: DecisionAccount, gain: Gain | None, everything: bool = False
) -> None:
    """Print the differences, a line per scheduler, causes, the gain, and the headline."""
    differences = account.differences[::-1]
    shown = differences if everything or not console.is_terminal else differences[:MAX_DIFFERENCES]
    if shown:
        _render_differences(console, shown)
        hint(console, len(differences) - len(shown), "difference")
    if account.schedulers:
        _render_schedulers(console, account)
    for text in account.hints():
        console.print(Text(f"! {text}", style="yellow"), soft_wrap=True)
    for cause, number in account.skipped.items():
        console.print(Text(f"{count(number, 'decision')} not judged: {cause}", style="dim"))
    if gain is not None:
        render_gain(console, gain)
    different = account.count_of(Agreement.DIFFERENT)
    console.print(Text(headline(account), style="bold yellow" if different else "bold green"))


def render_decisions(console: Console, decisions: Sequence[JudgedDecision]) -> None:
    """Print a line per decision."""
    names = NodeNames.of(console, (d.node_name for d in decisions))
    names.tell(console)
    heads = ("TIME", "POD", "NODE", "VERDICT", "TOTAL", "BEST", "RANK", "FEASIBLE", "REASON")
    table = Listing(heads, spare=("TIME", "FEASIBLE"))
    for one in decisions:
        found, agreement = one.assessment, one.agreement
        if agreement is None:
            continue
        figures = (
            ("-",) * 4
            if found is None
            else tuple(
                "-" if value is None else f"{value:,}"
                for value in (found.total, found.best_total, found.rank, found.feasible_nodes)
            )
        )
        table.add(
            f"{one.at_s:.1f}s",
            one.pod.key,
            names.short(one.node_name) if one.node_name else "-",
            [(str(agreement), STYLES[agreement])],
            *figures,
            reason_of(one),
        )
    section(console, table)


def _render_differences(console: Console, shown: Sequence[DecisionDifference]) -> None:
    table = Listing(("TIME", "POD", "NODE", "RESULT", "REASON"), spare=("TIME",))
    for one in shown:
        reason = f"{one.reason} [{one.evidence}]" if one.evidence else one.reason
        table.add(one.time, one.pod, one.node or "-", [(one.result, "red")], reason)
    section(console, table)


def _render_schedulers(console: Console, account: DecisionAccount) -> None:
    heads = ("SCHEDULER", "BOUND", "REFUSED", "SAME", "SAMPLED", "OTHER STATE", "DIFFERENT")
    table = Listing(heads)
    for one in account.schedulers.values():
        name = one.name if one.has_profile else f"{one.name} (default profile)"
        counts = (f"{one.count_of(agreement):,}" for agreement in Agreement)
        table.add(name, f"{one.bound:,}", f"{one.refused:,}", *counts)
    section(console, table)


def render_gain(console: Console, gain: Gain) -> None:
    """Print the gain of comparing all nodes, and of a second attempt."""
    table = Listing(("WHAT IT WOULD GAIN", ""))
    points = f"{gain.points_lost:,} points in {count(gain.sampled, 'decision')}"
    per_day = f"{gain.points_lost_per_day:,.0f} per day"
    table.add("points lost by sampling", f"{points}, {per_day}")
    for plugin, lost in gain.points_lost_by_plugin.items():
        table.add(f"  {plugin}", _range(lost))
    waited = "none"
    if gain.waited_pods:
        longest = f"longest {format_duration(gain.longest_wait_s)} ({gain.longest_wait_pod})"
        total = format_duration(gain.waited_s)
        waited = f"{count(gain.waited_pods, 'pod')}, {total} together, {longest}"
    table.add("waits beside a node with room", waited)
    for one in gain.skewed[:MAX_SKEWED]:
        text = f"{one.topology_key}: {one.skew} apart, {one.from_domain} to {one.to_domain}"
        table.add(f"skew of {one.pods}", text)
    if gain.nodes_in_use is not None and gain.nodes_after is not None:
        nodes = f"{gain.nodes_in_use - gain.nodes_after:,} of {gain.nodes_in_use:,} nodes in use"
        text = f"{nodes}, with {count(gain.moves, 'move')}"
        table.add("nodes that could be empty now", text)
    section(console, table)
    for name, how in gain.how.items():
        console.print(Text(f"{name}: {how}", style="dim"), soft_wrap=True)
    console.print()


def _range(points: PointRange) -> str:
    return f"{points.low:,}" if points.low == points.high else f"{points.low:,} to {points.high:,}"
