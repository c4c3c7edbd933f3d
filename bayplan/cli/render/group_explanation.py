"""Group explanation: the answer of `bayplan explain podgroup/NAME` as people like to read it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ...answers.account import Alternative
from ...answers.group_account import (
    GroupMember,
    GroupVerdict,
    MemberState,
    PlacementTried,
    PodGroupExplanation,
)
from ...errors import counted
from .plugin_results import indent, name_some
from .table_layout import Listing

MAX_PLACEMENTS = 10
MAX_CHANGES = 6


def render_group_account(
    console: Console, account: PodGroupExplanation, *, everything: bool = False
) -> None:
    """Print one pod group's account; long tables are cut unless `everything`."""
    console.print(_headline(account))
    if account.cause:
        indent(console, Text(account.cause, style="yellow"))
    for remark in account.remarks:
        indent(console, Text(f"note: {remark}", style="yellow"))
    if account.members:
        console.print()
        indent(console, _member_table(account, everything))
    if account.placements:
        console.print()
        indent(console, _placement_table(account, everything))
    _render_preemption(console, account, everything)
    if account.message:
        console.print()
        indent(console, Text(account.message, style="dim"))
    if account.ways:
        console.print()
        indent(console, _way_table(account.ways, everything))


def _headline(account: PodGroupExplanation) -> Text:
    text = Text(f"podgroup {account.key}", style="bold")
    words, style = _WORDS[account.verdict]
    text.append(f" {words}", style=style)
    facts = [counted(len(account.members), "member")]
    if account.min_count:
        facts.append(f"minCount {account.min_count}")
    if account.domains and account.has_node:
        facts.append(f"{account.topology_key} {', '.join(sorted(account.domains))}")
    return text.append(f"  ({', '.join(facts)})", style="dim")


_WORDS = {
    GroupVerdict.PLACED: ("is placed", "green"),
    GroupVerdict.FITS: ("would start", "green"),
    GroupVerdict.PREEMPTS: ("would start once preempted pods are gone", "yellow"),
    GroupVerdict.UNSCHEDULABLE: ("is pending", "yellow"),
    GroupVerdict.GATED: ("is held back", "yellow"),
    GroupVerdict.EMPTY: ("has no members", ""),
    GroupVerdict.ERROR: ("cannot be judged", "red"),
}


def _member_table(account: PodGroupExplanation, everything: bool) -> Listing:
    """The members; those with the same state, node and reasons are in one row."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for member in account.members:
        key = (_STATES[member.state], member.node or "-", _reason(member))
        groups.setdefault(key, []).append(member.pod.name)
    rows = ((name_some(names, everything), *key) for key, names in groups.items())
    return Listing(("MEMBERS", "STATE", "NODE", "REASON"), rows, text=("MEMBERS", "REASON"))


_STATES = {
    MemberState.PLACED: "placed",
    MemberState.FITS: "fits",
    MemberState.PREEMPTS: "preempts",
    MemberState.REFUSED: "does not fit",
    MemberState.NOT_TRIED: "not tried",
}


def _reason(member: GroupMember) -> str:
    if member.state not in (MemberState.REFUSED, MemberState.PREEMPTS):
        return ""
    counted = ", ".join(f"{each.nodes} {each.reason}" for each in member.refusals)
    return counted or member.message


def _placement_table(account: PodGroupExplanation, everything: bool) -> Listing:
    """The placements, best first, with the scores of those that are possible."""
    ranked = sorted(
        account.placements,
        key=lambda one: (not one.chosen, -(one.total or 0), -one.members, one.name),
    )
    plugins = list(dict.fromkeys(name for one in ranked for name in one.scores))
    shown = ranked if everything else ranked[:MAX_PLACEMENTS]
    numbers = ("NODES", "MEMBERS", *(("TOTAL", *plugins) if plugins else ()))
    table = Listing((account.topology_key or "PLACEMENT", *numbers), right=numbers, spare=plugins)
    for one in shown:
        name = f"{'★ ' if one.chosen else '  '}{one.name}"
        table.add(name, *_numbers(one, plugins), style="bold green" if one.chosen else "")
    if len(shown) < len(ranked):
        more = [(f"  … {len(ranked) - len(shown)} more; --all shows them", "dim")]
        table.add(more, *("" for _ in numbers))
    return table


def _numbers(one: PlacementTried, plugins: list[str]) -> list[str]:
    numbers = [str(one.nodes), str(one.members)]
    if plugins:
        numbers.append("-" if one.total is None else str(one.total))
        numbers += [str(one.scores.get(plugin, "-")) for plugin in plugins]
    return numbers


def _render_preemption(console: Console, account: PodGroupExplanation, everything: bool) -> None:
    found = account.preemption
    if found is None:
        return
    console.print()
    if found.helps:
        victims = [f"{pod.namespace}/{pod.name}" for pod in found.victims]
        indent(console, Text(f"it would push out {name_some(victims, everything)}"))
    else:
        indent(console, Text(f"preemption does not help: {found.message}"))


def _way_table(ways: list[Alternative], everything: bool) -> Listing:
    heading = "WHAT WOULD LET THE GROUP RUN"
    table = Listing((heading,), text=(heading,))
    for way in ways:
        texts = [t for t in dict.fromkeys(c.text for c in way.changes) if t not in way.goal]
        if way.goal.startswith("add "):  # the goal has their number and their model
            texts = []
        if len(texts) > MAX_CHANGES and not everything:
            texts = [*texts[:MAX_CHANGES], f"and {len(texts) - MAX_CHANGES} more"]
        table.add(f"{way.goal}: {'; '.join(texts)}" if texts else way.goal)
    return table
