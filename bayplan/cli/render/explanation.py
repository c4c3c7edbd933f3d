"""Explanation: the answer of `bayplan explain` as people like to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ...answers.account import (
    Choice,
    Counterfactual,
    PodExplanation,
    PodRef,
    PodRefOnNode,
    PodVerdict,
    RefusedNodes,
    RunnerUp,
)
from ...answers.remedy_rows import LineKind, remedy_rows, what_to_do
from ...choices import NEAREST
from ...errors import counted
from .consoles import conclude
from .node_names import NodeNames
from .plugin_results import (
    LONG_NAMES,
    Scores,
    indent,
    level_scores,
    name_some,
    refused_table,
    score_table,
    skipped,
    wait_table,
)
from .table_layout import Listing, Piece
from .tables import section

if TYPE_CHECKING:
    from ...doctor.checks import Finding
    from ...drivers.decision_log import LoggedAttempt

MAX_GROUPS = 8
MAX_VICTIMS = 5
REMEDY = "WHAT WOULD LET IT RUN THERE"
WORDS = {
    PodVerdict.PLACED: ("is on ", ""),
    PodVerdict.FITS: ("would go to ", ""),
    PodVerdict.UNSCHEDULABLE: ("is pending", "yellow"),
    PodVerdict.GATED: ("is held back", "yellow"),
    PodVerdict.FINISHED: ("has finished", ""),
    PodVerdict.ERROR: ("cannot be judged", "red"),
}
STYLES = {LineKind.STEP: "", LineKind.OTHER: "dim", LineKind.UNKNOWN: "yellow"}


def render_account(
    console: Console,
    account: PodExplanation,
    others: Sequence[PodRef] = (),
    *,
    wide: bool = False,
    everything: bool = False,
    concludes: bool = False,
) -> None:
    """Print one pod's account, which also holds of `others`; long tables are cut unless `everything`.

    If it `concludes`, its first line is the answer to the question.
    """
    names = NodeNames.told(console, _nodes_of(account))
    if concludes:
        conclude(console, _headline(account, names))
    else:
        console.print(_headline(account, names), soft_wrap=True)
    if others:
        pods = name_some([f"{pod.namespace}/{pod.name}" for pod in others], everything)
        indent(console, Text(f"the same holds of {pods}"))
    _render_alike(console, account.alike, everything, names)
    if account.group is not None and account.group.cause:
        waits = f"pod group {account.group.name} waits: {account.group.cause}"
        indent(console, Text(waits, style="yellow"))
    for cause in account.causes:
        indent(console, Text(f"cause: {cause}", style="yellow"))
    for remark in account.remarks:
        indent(console, Text(f"note: {remark}", style="yellow"))
    if account.gate is not None:
        held = f"held back by {account.gate.plugin}: {', '.join(account.gate.reasons)}"
        indent(console, Text(held, style="yellow"))
    if account.pre_filter is not None:
        refused = f"{account.pre_filter.plugin}: {', '.join(account.pre_filter.reasons)}"
        indent(console, Text(f"refused without a look at the nodes: {refused}"))
    _render_scores(console, account, everything, names)
    if account.refused:
        indent(console, _refused_table(account.refused, everything, names))
        hidden = len(account.refused) - MAX_GROUPS
        if hidden > 0 and not everything:
            indent(console, Text(f"… {hidden} more groups; --all shows them", style="dim"))
    _render_preemption(console, account, names)
    if account.message and account.verdict is not PodVerdict.PLACED:
        indent(console, Text(account.message, style="yellow"))
    if account.counterfactuals:
        console.print()
        indent(console, _counterfactual_table(account.counterfactuals, everything, names))
    _render_runner_up(console, account.runner_up, names)
    if wide:
        indent(console, wait_table(account.waits_for))
        indent(console, skipped(account.skipped))


def render_numbers(console: Console, accounts: Sequence[PodExplanation]) -> None:
    """Print how many of several pods have a node."""
    numbers = Counter[str]()
    for account in accounts:
        is_asked = account.verdict is PodVerdict.FITS and account.settled.as_is
        has_node = account.verdict in (PodVerdict.PLACED, PodVerdict.FITS)
        fate = "with a node" if has_node else "without a node"
        numbers["that would get a node, each by itself" if is_asked else fate] += 1 + len(
            account.alike
        )
    if numbers.total() > 1:
        told = ", ".join(f"{number} {fate}" for fate, number in numbers.items())
        console.print(Text(f"{numbers.total()} pods: {told}"))


def _render_alike(
    console: Console, alike: Sequence[PodRefOnNode], everything: bool, names: NodeNames
) -> None:
    if not alike:
        return
    pods = names.in_text(name_some([str(pod) for pod in alike], everything))
    if not alike[0].node:
        indent(console, Text(f"the same holds of {pods}"))
        return
    indent(console, Text(f"equal pods with a node: {pods}; --all explains each"))


def _nodes_of(account: PodExplanation) -> list[str]:
    """The nodes that are named."""
    refused = [name for group in account.refused for name in group.nodes]
    return [*refused, *(node.name for node in account.scores), *filter(None, (account.node,))]


def _headline(account: PodExplanation, names: NodeNames) -> Text:
    pod = account.pod
    text = Text(f"{pod.namespace}/{pod.name}", style="bold")
    nodes = f"{account.feasible_nodes} of {account.node_count} nodes fit"
    words, style = WORDS[account.verdict]
    text.append(f" {words}", style=style)
    if account.verdict in (PodVerdict.FINISHED, PodVerdict.ERROR):
        return text
    if account.verdict in (PodVerdict.PLACED, PodVerdict.FITS):
        text.append(names.short(account.node or ""), style="bold cyan")
    return text.append(f"  ({nodes})", style="dim")


def _render_scores(
    console: Console, account: PodExplanation, everything: bool, names: NodeNames
) -> None:
    choice = account.choice
    if choice is None:
        return
    indent(console, Text(names.in_text(_margin(choice))))
    if len(account.scores) < 2 and not everything:
        return
    scores: Scores = [
        (given.plugin, given.weight, [n.points.get(given.plugin, 0) for n in account.scores])
        for given in account.score_plugins
    ]
    totals = {node.name: node.total for node in account.scores}
    winner = account.node if account.node in totals else choice.node
    indent(console, score_table(scores, totals, winner or "", everything, names))
    indent(console, level_scores(scores))


def _margin(choice: Choice) -> str:
    """Reason why the node is the best one."""
    if choice.from_nomination:
        return f"{choice.node}: nominated earlier, and taken without comparing"
    if choice.runner_up is None:
        return f"{choice.node} is the only node that fits"
    if choice.margin == 0:
        others = choice.equals - 1
        equals = "has 1 other node" if others == 1 else f"have {others} other nodes"
        return f"{choice.node} has {choice.total} points, as {equals}: chosen at random"
    why = ", ".join(f"{part.plugin} {part.points:+d}" for part in choice.ahead)
    return f"{choice.node} has {choice.total} points, {choice.margin} ahead of {choice.runner_up}: {why}"


def _refused_table(groups: list[RefusedNodes], everything: bool, names: NodeNames) -> Listing:
    """The nodes that each plugin refuses; a node that several refuse has a line for each of them."""
    return refused_table(
        (
            "" if i else str(len(group.nodes)),
            refusal.plugin,
            ", ".join(refusal.reasons),
            "" if i else name_some(group.nodes, everything, names),
        )
        for group in (groups if everything else groups[:MAX_GROUPS])
        for i, refusal in enumerate(group.refusals)
    )


def _render_preemption(console: Console, account: PodExplanation, names: NodeNames) -> None:
    found = account.preemption
    if found is None or not found.victims:
        return
    victims = [f"{pod.namespace}/{pod.name}" for pod in found.victims]
    shown = ", ".join(victims[:MAX_VICTIMS])
    rest = len(victims) - MAX_VICTIMS
    more = f" and {rest} more" if rest > 0 else ""
    broken = f", against {found.pdb_violations} disruption budgets" if found.pdb_violations else ""
    indent(
        console, Text(f"it would push out {shown}{more} on {names.short(found.node or '')}{broken}")
    )


def _counterfactual_table(
    found: Sequence[Counterfactual], everything: bool, names: NodeNames
) -> Listing:
    """Changes that would let the pod run on each node, one line each; nodes that need the same are in one row."""
    table = Listing(("NODE", REMEDY), text=("NODE", REMEDY))
    for nodes, lines in remedy_rows(found):
        told: list[Piece] = []
        for i, (text, kind) in enumerate(lines):
            told.append((f"{chr(10) if i else ''}{names.in_text(text)}", STYLES[kind]))
        table.add(_name_by_line(nodes, everything, names), told)
    return table


def _name_by_line(nodes: Sequence[str], everything: bool, names: NodeNames) -> str:
    """The names; if they are long, each of a few in a line of its own, so that the column stays narrow."""
    is_long = len(", ".join(map(names.short, nodes))) > LONG_NAMES
    if is_long and (everything or len(nodes) <= NEAREST):
        return "\n".join(map(names.short, nodes))
    return name_some(nodes, everything, names)


def _render_runner_up(console: Console, runner_up: RunnerUp | None, names: NodeNames) -> None:
    if runner_up is None:
        return
    head = f"{names.short(runner_up.node)} is {counted(runner_up.gap, 'point')} behind"
    if not runner_up.ways:
        indent(console, Text(f"{head}; nothing is known that would let it win"))
        return
    indent(console, Text(f"{head}; it would win with"))
    for way in runner_up.ways:
        indent(console, Text(f"  {names.in_text(what_to_do(way.goal, way.changes))}"))


def render_attempts(console: Console, attempts: Sequence[LoggedAttempt]) -> None:
    """Print a sentence about the last attempt, and a line for each."""
    console.print(Text(sentence_of(attempts[-1]), style="bold"), soft_wrap=True)
    console.print()
    heads = ("TIME", "ATTEMPT", "RESULT", "NODE", "TOTAL", "RUNNER-UP", "MARGIN", "FIT", "REASON")
    rows = (
        (
            time_of(one),
            f"{one.attempt}",
            one.result,
            one.node or "-",
            "-" if one.total is None else f"{one.total:,}",
            f"{one.runner_up} ({one.runner_up_total:,})" if one.runner_up else "-",
            "-" if one.margin is None else f"{one.margin:,}",
            f"{one.feasible_nodes:,} of {one.nodes:,}",
            _reason(one),
        )
        for one in attempts
    )
    section(console, Listing(heads, rows, spare=("ATTEMPT",)))


def sentence_of(one: LoggedAttempt) -> str:
    """Reason why the pod went where it went then, or nowhere."""
    key = f"{one.namespace}/{one.name}"
    if not one.node:
        victims = f"; evicted for it: {', '.join(one.victims)}" if one.victims else ""
        return f"{key} got no node at {time_of(one)}: {one.message}{victims}"
    start = f"{key} went to {one.node} at {time_of(one)}"
    if one.from_nomination:
        return f"{start}: it was nominated there, and fits"
    if one.feasible_nodes <= 1 or one.total is None:
        return f"{start}: the only one of {counted(one.nodes, 'node')} that fits"
    start = f"{start}: {one.total:,} points, the highest of {one.feasible_nodes:,} nodes that fit"
    if one.margin == 0:
        return f"{start}; {one.runner_up} had as many, the draw decided"
    if one.margin is None:
        return start
    return f"{start}; {one.runner_up} had {one.margin:,} less"


def time_of(one: LoggedAttempt) -> str:
    """The time of an attempt, in UTC."""
    return datetime.fromtimestamp(one.time, UTC).isoformat(timespec="milliseconds")


def _reason(one: LoggedAttempt) -> str:
    parts = [f"{plugin} {number:,}" for plugin, number in one.refusals.items()]
    if one.victims:
        parts.append(f"evicts {', '.join(one.victims)} on {one.nominated_node}")
    return ", ".join(parts)


def render_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print the findings, those that may make answers differ first, and a headline."""
    for one in findings:
        mark, style = ("!", "yellow") if one.differs else ("-", "")
        console.print(Text(f"{mark} {one.subject}: {one.text}", style=style), soft_wrap=True)
        if one.means:
            console.print(Text(f"    {one.means}", style="dim"), soft_wrap=True)
        if one.command:
            console.print(Text(f"    try: {one.command}", style="dim"), soft_wrap=True)
    number = sum(one.differs for one in findings)
    text = "nothing found that makes answers differ"
    if number:
        text = f"answers may differ: {counted(number, 'finding')}"
    conclude(console, Text(text, style="bold yellow" if number else "bold green"))
