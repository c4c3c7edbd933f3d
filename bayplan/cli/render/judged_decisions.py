"""Judged decisions: the account of a scheduler's decisions as tables: per scheduler, differences, gain."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...answers.judged_decision import Agreement, JudgedDecision, reason_of
from ...answers.judged_replay import JudgedReplay
from ...api.text.durations import format_duration
from ...errors import counted
from ...shadow.decision_account import DecisionAccount
from ...shadow.gain import Gain
from ...shadow.report import headline
from ...sim.replay_report import ReplayedPod, ReplayReport, ReplayVerdict
from .cluster_totals import render_totals, render_use
from .consoles import conclude
from .node_names import NodeNames
from .table_layout import Listing
from .tables import hint, section

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
    rows = (
        (
            d.time,
            d.pod,
            d.node or "-",
            [(d.result, "red")],
            d.reason + (f" [{d.evidence}]" if d.evidence else ""),
        )
        for d in account.differences[::-1]
    )
    table = Listing(("TIME", "POD", "NODE", "RESULT", "REASON"), rows, spare=("TIME",))
    most = None if everything or not console.is_terminal else MAX_DIFFERENCES
    section(console, table, most=most, what="difference")
    heads = ("SCHEDULER", "BOUND", "REFUSED", "SAME", "SAMPLED", "OTHER STATE", "DIFFERENT")
    counts = (
        (
            one.name if one.has_profile else f"{one.name} (default profile)",
            *(f"{n:,}" for n in (one.bound, one.refused, *map(one.count_of, Agreement))),
        )
        for one in account.schedulers.values()
    )
    section(console, Listing(heads, counts))
    for text in account.hints():
        console.print(Text(f"! {text}", style="yellow"), soft_wrap=True)
    for cause, number in account.skipped.items():
        console.print(Text(f"{counted(number, 'decision')} not judged: {cause}", style="dim"))
    if gain is not None:
        render_gain(console, gain)
    different = account.count_of(Agreement.DIFFERENT)
    conclude(console, Text(headline(account), style="bold yellow" if different else "bold green"))


def render_decisions(console: Console, decisions: Sequence[JudgedDecision]) -> None:
    """Print a line per decision."""
    names = NodeNames.told(console, (d.node_name for d in decisions))
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
    section(console, table, even_empty=True)


def render_gain(console: Console, gain: Gain) -> None:
    """Print the gain of comparing all nodes, and of a second attempt."""
    table = Listing(("WHAT IT WOULD GAIN", ""))
    points = f"{gain.points_lost:,} points in {counted(gain.sampled, 'decision')}"
    per_day = f"{gain.points_lost_per_day:,.0f} per day"
    table.add("points lost by sampling", f"{points}, {per_day}")
    for plugin, lost in gain.points_lost_by_plugin.items():
        ends = dict.fromkeys(f"{points:,}" for points in (lost.low, lost.high))
        table.add(f"  {plugin}", " to ".join(ends))
    waited = "none"
    if gain.waited_pods:
        longest = f"longest {format_duration(gain.longest_wait_s)} ({gain.longest_wait_pod})"
        total = format_duration(gain.waited_s)
        waited = f"{counted(gain.waited_pods, 'pod')}, {total} together, {longest}"
    table.add("waits beside a node with room", waited)
    for one in gain.skewed[:MAX_SKEWED]:
        text = f"{one.topology_key}: {one.skew} apart, {one.from_domain} to {one.to_domain}"
        table.add(f"skew of {one.pods}", text)
    if gain.nodes_in_use is not None and gain.nodes_after is not None:
        nodes = f"{gain.nodes_in_use - gain.nodes_after:,} of {gain.nodes_in_use:,} nodes in use"
        text = f"{nodes}, with {counted(gain.moves, 'move')}"
        table.add("nodes that could be empty now", text)
    section(console, table)
    for name, how in gain.how.items():
        console.print(Text(f"{name}: {how}", style="dim"), soft_wrap=True)
    console.print()


MAX_PODS = 40
VERDICT_STYLES = {
    ReplayVerdict.SAME: "",
    ReplayVerdict.EQUAL: "",
    ReplayVerdict.SAMPLED: "dim",
    ReplayVerdict.OTHER: "cyan",
    ReplayVerdict.PENDING_HERE: "red",
    ReplayVerdict.PENDING_THEN: "green",
    ReplayVerdict.PENDING: "yellow",
    ReplayVerdict.OTHER_REASON: "cyan",
    ReplayVerdict.OTHER_VICTIMS: "cyan",
    ReplayVerdict.UNDECIDED: "dim",
}


def render_replay(
    console: Console, report: ReplayReport | JudgedReplay, everything: bool, is_wide: bool = False
) -> None:
    """Print the decisions that differ, and their number; on a terminal only the first ones unless `is_wide`."""
    pods = report.compared if everything else report.differing
    shown = pods if everything or is_wide or not console.is_terminal else pods[:MAX_PODS]
    section(console, _table(console, shown, isinstance(report, JudgedReplay)))
    hint(console, len(pods) - len(shown), report.noun)
    if isinstance(report, JudgedReplay):
        _render_remarks(console, report)
    else:
        render_totals(console, report.totals)
        render_use(console, report.use, report.time_s)
    style = "bold yellow" if report.differing else "bold green"
    conclude(console, Text(report.headline(), style=style))


def _render_remarks(console: Console, report: JudgedReplay) -> None:
    """Print the limits of the comparison."""
    if report.shifted:
        states = (
            f"{counted(len(report.shifted), 'decision')} explained by a state just before or after"
        )
        console.print(Text(states, style="dim"))
    if report.has_extenders:
        console.print(Text("extenders were not called", style="dim"))


def _table(
    console: Console, pods: Sequence[ReplayedPod | JudgedDecision], is_judged: bool
) -> Listing:
    places = [place for one in pods for place in (one.recorded, one.replayed) if place]
    names = NodeNames.told(console, (place.node_name for place in places))
    heads = ("TIME", "POD", "RECORDED", "HERE" if is_judged else "REPLAYED", "RESULT")
    table = Listing((*heads, "REASON") if is_judged else heads, spare=("TIME",))
    for one in pods:
        nodes = (names.short(p.node_name) if p else "-" for p in (one.recorded, one.replayed))
        is_lost = isinstance(one, ReplayedPod) and one.is_lost
        text = "lost with its node" if is_lost else str(one.verdict)
        reason = [reason_of(one)] if isinstance(one, JudgedDecision) else []
        result = [(text, VERDICT_STYLES[one.verdict])]
        table.add(f"{one.at_s:.1f}s", one.pod.key, *nodes, result, *reason)
    return table
