"""Consequences: which pods move, wait or are preempted, and why, and which budgets are exceeded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ...answers.what_if import PodChange, WhatIfAnswer, WhatIfState
from ...answers.what_if.answer import Where
from ...api.text.refusal_message import refusals_of
from ...errors import counted
from .cluster_totals import render_totals
from .consoles import conclude
from .drain_course import render_course, render_search
from .node_names import NodeNames
from .pending_rows import fitted, refusal_texts
from .table_layout import Cell, Listing
from .tables import hint, section

MAX_GROUPS = 40
SHORT_MESSAGE = 60
"""Limit on the length of the reasons for a pending pod in a table."""
_MESSAGE = re.compile(r"0/\d+ nodes are available: ")
STYLES = {
    WhatIfState.RUNNING: "cyan",
    WhatIfState.PENDING: "yellow",
    WhatIfState.LOST: "red",
    WhatIfState.ABSENT: "dim",
}


def render_what_if(
    console: Console, answer: WhatIfAnswer, everything: bool = False, details: bool = False
) -> None:
    """Print the answer: a line per workload, or per pod with `everything`; with `details` messages are whole."""
    places = [where.node for change in answer.pods for where in (change.was, change.now)]
    names = NodeNames.told(console, filter(None, places))
    if answer.search is not None:
        render_search(console, answer.search)
    # Losses come first, as the rest may be cut.
    groups = _grouped(sorted(answer.pods, key=lambda change: not change.is_worse), everything)
    shown = groups if everything else groups[:MAX_GROUPS]
    section(console, _pod_table(shown, names, details))
    hint(console, sum(map(len, groups)) - sum(map(len, shown)), "pod")
    for table in _other_tables(answer, names):
        section(console, table)
    if answer.totals is not None:
        render_totals(console, answer.totals)
    for course in answer.courses:
        render_course(console, course, everything)
    conclude(console, summary(answer))
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="dim"), soft_wrap=True)


def summary(answer: WhatIfAnswer) -> Text:
    """`1 of 2 roll-outs stalls: 1 placed, 2 newly pending; pending 3 → 4`."""
    said = answer.summary()
    course = _course_text(answer)
    parts = [
        f"{said[name]:,} {text}"
        for name, text in (
            ("moved", "moved"),
            ("madeAnew", "created again on the same node"),
            ("placed", "placed"),
            ("newlyPending", "newly pending"),
            ("lost", "lost"),
            ("deleted", "deleted"),
            ("preempted", "preempted"),
        )
        if said[name]
    ]
    if said["budgetsViolated"]:
        parts.append(f"{counted(said['budgetsViolated'], 'disruption budget')} overdrawn")
    text = ", ".join(parts) if parts else "nothing changes"
    text = f"{course}: {text}" if course else text
    text += f"; pending {said['pendingBefore']:,} → {said['pendingAfter']:,}"
    if answer.groups:
        before, after = answer.groups_started
        text += f"; pod groups started {before:,} → {after:,}"
    return Text(text, style="bold yellow" if answer.is_worse else "bold green")


def _course_text(answer: WhatIfAnswer) -> str:
    """Whether roll-outs get through, and whether a drain or an upgrade stalls; "" if there is nothing to say."""
    parts = []
    for name, courses in (("drain", answer.drains), ("upgrade", answer.upgrades)):
        if any(course.stalls for course in courses):
            parts.append(f"the {name} stalls")
    total = len(answer.rollouts)
    stalled = sum(bool(course.stalls) for course in answer.rollouts)
    if stalled:
        verb = "stalls" if stalled == 1 else "stall"
        one = "the roll-out stalls"
        parts.append(one if total == 1 else f"{stalled:,} of {total:,} roll-outs {verb}")
    elif total:
        parts.append(
            "the roll-out gets through" if total == 1 else f"{total:,} roll-outs get through"
        )
    return ", ".join(parts)


def _grouped(changes: list[PodChange], everything: bool) -> list[list[PodChange]]:
    """Pods of one workload with the same outcome for the same reasons; each pod separately with `everything`."""
    groups: dict[object, list[PodChange]] = {}
    for change in changes:
        key: object = change.key
        if not everything:
            cause, message = _split(_of_its_node(change))
            why = frozenset(refusals_of(message)) or message
            key = (change.workload, change.was.state, change.now.state, cause, why)
        groups.setdefault(key, []).append(change)
    return list(groups.values())


def _pod_table(groups: list[list[PodChange]], names: NodeNames, details: bool) -> Listing:
    table = Listing(("POD", "WAS", "NOW", "WHY"), text=("WHY",))
    for group in groups:
        first = group[0]
        pods = first.key if len(group) == 1 else f"{first.workload} ({counted(len(group), 'pod')})"
        now = [(_places([change.now for change in group], names), STYLES[first.now.state])]
        if len(group) == 1 and first.successor:
            now.append((f" (as {first.successor})", "dim"))
        nodes = {change.was.node for change in group}
        why = group[-1].why if len(nodes) == 1 else _of_its_node(group[-1])
        why = names.in_text(why if details else _short(why))
        table.add(pods, _places([change.was for change in group], names), now, why)
    return table


def _of_its_node(change: PodChange) -> str:
    """Reason why it changed, without the name of the node, which differs between pods."""
    node = change.was.node
    return change.why.replace(f"{node} is ", "its node is ", 1) if node else change.why


def _places(places: list[Where], names: NodeNames) -> str:
    """The node, the number of nodes, or the state where there is none."""
    nodes = {where.node for where in places}
    return names.short(str(places[0])) if len(nodes) == 1 else counted(len(nodes), "node")


def _short(why: str) -> str:
    """The cause, and instead of the scheduler's whole message the reasons of most nodes."""
    cause, message = _split(why)
    refusals = refusal_texts(refusals_of(message))
    parts = [cause, fitted(refusals, SHORT_MESSAGE) if refusals else message]
    return ": ".join([part for part in parts if part])


def _split(why: str) -> tuple[str, str]:
    """The cause of a change, and the message of the scheduler after it."""
    found = _MESSAGE.search(why)
    return (why[: found.start()].removesuffix(": "), why[found.start() :]) if found else ("", why)


def _other_tables(answer: WhatIfAnswer, names: NodeNames) -> Iterator[Listing]:
    """The pod groups, the preempted pods, and the budgets."""
    heads = ("POD GROUP", "WAS", "NOW", "WHY")
    groups = (
        (
            one.key,
            str(one.was),
            [(str(one.now), "cyan" if one.now.has_started else "yellow")],
            one.why,
        )
        for one in answer.groups
    )
    yield Listing(heads, groups, text=heads[3:])
    preempted = ((one.victim, names.short(one.node), one.preemptor) for one in answer.preempted)
    yield Listing(("PREEMPTED", "NODE", "FOR"), preempted)
    numbers, verdicts = ("ALLOWED", "TAKEN", "AT ONCE"), (("kept", "green"), ("overdrawn", "red"))
    budgets: list[list[Cell]] = [
        [
            use.budget,
            str(use.allowed),
            str(len(use.pods)),
            str(use.at_once),
            [verdicts[use.is_violated]],
        ]
        for use in answer.budgets
    ]
    yield Listing(("BUDGET", *numbers, ""), budgets, right=numbers, text=("",))
