"""Recorded decisions: recorded decisions and ours, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...answers.judged_decision import JudgedDecision
from ...answers.judged_replay import JudgedReplay, reason_of
from ...sim.replay_report import ReplayedPod, ReplayReport, ReplayVerdict
from .cluster_totals import render_totals, render_use
from .node_names import NodeNames
from .table_layout import Listing
from .tables import count, hint, section

MAX_PODS = 40
STYLES = {
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


def chosen_decisions(
    report: ReplayReport | JudgedReplay, everything: bool
) -> Sequence[ReplayedPod | JudgedDecision]:
    """The decisions that differ, or all of them."""
    if not everything:
        return report.differing
    return report.decisions if isinstance(report, JudgedReplay) else report.pods


def render_replay(
    console: Console, report: ReplayReport | JudgedReplay, everything: bool, is_wide: bool = False
) -> None:
    """Print the decisions that differ, and how many there are; on a terminal the first ones unless `is_wide`."""
    is_judged = isinstance(report, JudgedReplay)
    pods = chosen_decisions(report, everything)
    shown = pods if everything or is_wide or not console.is_terminal else pods[:MAX_PODS]
    if shown:
        section(console, _table(console, shown, is_judged))
        hint(console, len(pods) - len(shown), "decision" if is_judged else "pod")
    if isinstance(report, JudgedReplay):
        _render_remarks(console, report)
    else:
        render_totals(console, report.totals)
        render_use(console, report.use, report.time_s)
    style = "bold yellow" if report.differing else "bold green"
    console.print(Text(report.headline(), style=style))


def _render_remarks(console: Console, report: JudgedReplay) -> None:
    """Print the limits of the comparison."""
    if report.shifted:
        states = (
            f"{count(len(report.shifted), 'decision')} explained by a state just before or after"
        )
        console.print(Text(states, style="dim"))
    if report.has_extenders:
        console.print(Text("extenders were not called", style="dim"))


def _table(
    console: Console, pods: Sequence[ReplayedPod | JudgedDecision], is_judged: bool
) -> Listing:
    places = [place for one in pods for place in (one.recorded, one.replayed) if place]
    names = NodeNames.of(console, (place.node_name for place in places))
    names.tell(console)
    heads = ("TIME", "POD", "RECORDED", "HERE" if is_judged else "REPLAYED", "RESULT")
    table = Listing((*heads, "REASON") if is_judged else heads, spare=("TIME",))
    for one in pods:
        nodes = (names.short(p.node_name) if p else "-" for p in (one.recorded, one.replayed))
        if isinstance(one, JudgedDecision):
            result = [(str(one.verdict), STYLES[one.verdict])]
            table.add(f"{one.at_s:.1f}s", one.pod.key, *nodes, result, reason_of(one))
            continue
        text = "lost with its node" if one.is_lost else str(one.verdict)
        table.add(f"{one.created_s:.1f}s", one.pod.key, *nodes, [(text, STYLES[one.verdict])])
    return table
