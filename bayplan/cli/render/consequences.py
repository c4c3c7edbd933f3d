"""Consequences: which pods move, wait or are preempted, and why, and which budgets are exceeded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ...answers.courses import (
    Course,
    DrainCourse,
    DrainStall,
    RolloutCourse,
    RolloutStep,
    UpgradeCourse,
)
from ...answers.what_if import PodChange, WhatIfAnswer, WhatIfState
from ...answers.what_if.answer import NodeSearch, Where
from ...api.text.durations import format_duration
from ...api.text.refusal_message import refusals_of
from ...errors import counted
from .cluster_totals import render_totals
from .consoles import conclude
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
MAX_AT_RISK = 20
MAX_NAMES = 3
MAX_STEPS = 10


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


def render_course(console: Console, course: Course, everything: bool = False) -> None:
    """Print the pods at risk, how it went, and every stall."""
    if isinstance(course, RolloutCourse):
        _render_rollout(console, course, everything)
        return
    rows = ((risk.pod, risk.node, risk.why) for risk in course.at_risk)
    table, most = Listing(("AT RISK", "NODE", "WHY"), rows, text=("WHY",)), MAX_AT_RISK
    section(console, table, most=None if everything else most, what="pod at risk")
    if isinstance(course, DrainCourse):
        if len(course.rounds) <= 1 and not course.seconds and not course.stalls:
            return  # the summary has it, too
        text = drain_text(course)
    else:
        text = upgrade_text(course)
    console.print(Text(text, style="bold yellow" if course.stalls else "bold"), soft_wrap=True)
    names = NodeNames.of(console, course.nodes)
    for line in _stall_lines(course.stalls, names):
        console.print(Text(f"  {line}", style="yellow"), soft_wrap=True)


def _render_rollout(console: Console, course: RolloutCourse, everything: bool) -> None:
    steps = course.steps if everything else course.steps[:MAX_STEPS]
    console.print(Text(rollout_text(course), style="bold yellow" if course.stalls else "bold"))
    for number, step in enumerate(steps, 1):
        console.print(Text(f"  {number}. {step_text(step)}"), soft_wrap=True)
    hint(console, len(course.steps) - len(steps), "step")
    for stall in course.stalls:
        pods = f"{counted(len(stall.pods), 'pod')} pending: " if stall.pods else ""
        console.print(Text(f"  stalls: {pods}{stall.cause}", style="yellow"), soft_wrap=True)


def rollout_text(course: RolloutCourse) -> str:
    """`deployment/shop/web: rolled out, 3 of 3 pods`, or `stalls at 1 of 3 pods, 2 of the former version stay`."""
    number = f"{course.updated:,} of {counted(course.wanted, 'pod')}"
    if not course.stalls:
        return f"{course.workload}: rolled out, {number}"
    left = f", {course.left:,} of the former version stay" if course.left else ""
    return f"{course.workload}: stalls at {number}{left}"


def step_text(step: RolloutStep) -> str:
    """`2 created, on a and b; 2 deleted`."""
    parts = []
    if step.created:
        parts.append(f"{step.created:,} created")
    nodes = [f"{name} ({n})" if n > 1 else name for name, n in step.placed.items()]
    if nodes:
        more = f" and {len(nodes) - MAX_NAMES} more nodes" if len(nodes) > MAX_NAMES + 1 else ""
        parts.append(f"placed on {', '.join(nodes[:MAX_NAMES] if more else nodes)}{more}")
    if step.deleted:
        parts.append(f"{step.deleted:,} deleted")
    after = f"after {format_duration(step.at_s)}: " if step.at_s else ""
    return after + ", ".join(parts)


def drain_text(course: DrainCourse) -> str:
    """`40 pods evicted in 6 rounds, 3m`, or `the drain stops at 6 of 40 pods, after 3 rounds`."""
    rounds = counted(len(course.rounds), "round")
    time = f", {format_duration(course.seconds)}" if course.seconds else ""
    if not course.stalls:
        return f"{counted(course.evicted, 'pod')} evicted in {rounds}{time}"
    nodes = f"{course.drained:,} of {counted(len(course.nodes), 'node')} empty"
    where = f"the drain stops at {course.evicted:,} of {counted(course.pods, 'pod')}"
    return f"{where}, after {rounds}{time} ({nodes}):"


def upgrade_text(course: UpgradeCourse) -> str:
    """`500 of 500 nodes replaced in 250 steps, 4h10m: 4,000 pods evicted, at most 3 pending at a time`."""
    done = f"{len(course.replaced):,} of {counted(len(course.nodes), 'node')} replaced"
    time = f", {format_duration(course.seconds)}" if course.seconds else ""
    peak = f" ({course.pending_before:,} before)" if course.pending_before else ""
    if course.pending_peak > course.pending_before:
        names = ", ".join(course.peak_nodes[:MAX_NAMES])
        peak += f" while {names} {'was' if len(course.peak_nodes) == 1 else 'were'} drained"
    pods = f"{counted(course.evicted, 'pod')} evicted, at most {course.pending_peak:,} pending at a time"
    stuck = {node for stall in course.stalls for node in stall.nodes}
    stalls = f"; {counted(len(stuck), 'node')} left:" if course.stalls else ""
    return f"{done} in {counted(course.steps, 'step')}{time}: {pods}{peak}{stalls}"


def _stall_lines(stalls: Sequence[DrainStall], names: NodeNames) -> Iterator[str]:
    """The stalls; a reason for which evicted pods of several budgets have no node is written once."""
    yield from (f"error: {stall.cause}" for stall in stalls if stall.is_refused)
    alike: dict[str, list[DrainStall]] = {}
    for stall in stalls:
        if stall.is_refused:
            continue
        alike.setdefault(stall.no_node or stall.cause, []).append(stall)
    for reason, group in alike.items():
        if len(group) == 1 or not group[0].no_node:
            yield from (_stall_text(stall, stall.cause, names) for stall in group)
            continue
        yield f"evicted pods of {counted(len(group), 'budget')} have no node: {reason}"
        yield from (f"  {_stall_text(stall, stall.allows, names)}" for stall in group)


def _stall_text(stall: DrainStall, cause: str, names: NodeNames) -> str:
    """`node-3 (2 pods): web allows 1 disruption; its evicted pod web-7 has no node`."""
    more = f" and {len(stall.nodes) - MAX_NAMES:,} more" if len(stall.nodes) > MAX_NAMES else ""
    shown = ", ".join(map(names.short, stall.nodes[:MAX_NAMES])) + more
    return f"{shown} ({counted(len(stall.pods), 'pod')}): {cause}"


def render_search(console: Console, search: NodeSearch) -> None:
    """Print the number of nodes that are needed, and the pods that fit on none of them."""
    style = "bold yellow" if search.hopeless else "bold green" if search.nodes == 0 else "bold"
    conclude(console, Text(search_text(search), style=style))
    alike: dict[str, list[str]] = {}
    for pod, message in search.hopeless.items():
        alike.setdefault(message, []).append(pod)
    for message, pods in alike.items():
        named = pods[0] if len(pods) == 1 else f"{counted(len(pods), 'pod')}, such as {pods[0]},"
        fit = "fits" if len(pods) == 1 else "fit"
        console.print(Text.assemble((named, "yellow"), f" {fit} on no such node: {message}"))
    console.print()


def search_text(search: NodeSearch) -> str:
    """`36 nodes needed: 12 like each of a1, b1, c1; with 35, 2 would wait`."""
    likes = " or ".join(search.likes)
    if search.nodes is None:
        return f"no number of nodes like {likes} helps"
    if search.nodes == 0:
        return "0 nodes are needed: no pod waits"
    nodes = counted(search.nodes, "node")
    if search.is_fewest is False:
        nodes = f"at most {nodes}"
    text = f"{nodes} like {likes} needed"
    if len(search.counts) > 1:
        text = f"{nodes} needed: {_shares(search)}"
    if search.hopeless:
        helped = search.waiting - len(search.hopeless)
        text += f" for {helped:,} of {counted(search.waiting, 'pod')}"
    if search.is_fewest is False:
        text += "; another choice of fewer nodes may be enough"
    elif search.nodes - 1 in search.tried and search.nodes > 1:
        text += f"; with {search.nodes - 1:,}, {search.tried[search.nodes - 1]:,} would wait"
    return text


def _shares(search: NodeSearch) -> str:
    numbers = set(search.counts.values())
    if len(numbers) == 1:
        return f"{numbers.pop():,} like each of {', '.join(search.likes)}"
    return ", ".join(f"{number:,} like {name}" for name, number in search.counts.items() if number)
