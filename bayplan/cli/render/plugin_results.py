"""Plugin results: for each pod the result of every plugin on every node."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from ...scheduler import Attempt, Explanation, Outcome
from ...sim import SimulationReport
from .node_names import WHOLE_NAMES, NodeNames
from .table_layout import Listing, show_listing, wrap_text

PluginPoints: TypeAlias = tuple[str, int, Sequence[int]]
"""A plugin, its weight, and the weighted points it gave each node, in the order of the totals."""
Scores: TypeAlias = Sequence[PluginPoints]

MAX_SCORED = 10
MAX_NAMES = 3
LONG_NAMES = 60
"""Names that together are longer than this are not all shown: their column would be wider than its subject."""
INDENT = 2
_WORDS = re.compile(r"[A-Z][a-z0-9]*")
_EVENT = re.compile(r"(?P<resource>.+?)(?P<actions>(?:Add|Delete|Update|All)[A-Za-z|]*)")


def render_explanations(console: Console, report: SimulationReport, everything: bool) -> None:
    """Print the verdict tables of all pods, in the order they were tried."""
    names = NodeNames.told(console, (use.node.name for use in report.nodes))
    for result in report.pods:
        render_explanation(console, result.attempt, everything, names)
        console.print()


def render_explanation(
    console: Console, attempt: Attempt, everything: bool = False, names: NodeNames = WHOLE_NAMES
) -> None:
    """Print one pod's verdict table; long ones are cut unless `everything`."""
    console.print(_headline(attempt, names), soft_wrap=True)
    explanation = attempt.explanation
    if explanation is None:
        indent(console, Text(attempt.message))
        return
    if not explanation.pre_filter.is_success:
        indent(console, Text(f"PreFilter: {explanation.pre_filter.message}"))
    elif explanation.node_names is not None:
        indent(console, Text(f"PreFilter left {len(explanation.node_names)} nodes to look at"))
    if len(explanation.totals) > 1:
        totals, winner = explanation.totals, attempt.node_name
        scores = [
            (one.plugin, one.weight, [one.normalized[name] * one.weight for name in totals])
            for one in explanation.scores
        ]
        indent(console, score_table(scores, totals, winner, everything, names))
        indent(console, level_scores(scores))
    indent(console, _refusal_table(explanation, everything, names))
    if attempt.message:
        indent(console, Text(attempt.message, style="yellow"))
    indent(console, wait_table(explanation.waits_for))
    by_point = {"filter": explanation.skipped_filter, "score": explanation.skipped_score}
    indent(console, skipped(by_point))


def _headline(attempt: Attempt, names: NodeNames) -> Text:
    text, node = Text(attempt.pod.key, style="bold"), names.short(attempt.node_name)
    if attempt.outcome in (Outcome.WAITING, Outcome.BINDING):
        return text.append(f" is {attempt.outcome.value}, on {node}", style="yellow")
    if not attempt.node_name:
        return text.append(f" is {attempt.outcome.value}", style="yellow")
    text.append(" → ")
    text.append(node, style="bold cyan")
    return text.append(f"  {names.in_text(_margin(attempt))}", style="dim")


def _margin(attempt: Attempt) -> str:
    """The lead of the winning node."""
    totals = attempt.explanation.totals if attempt.explanation else {}
    if attempt.from_nomination:
        return "(nominated earlier)"
    if len(totals) < 2:
        return "(the only node that fits)"
    rivals = {name: total for name, total in totals.items() if name != attempt.node_name}
    best = max(rivals, key=lambda name: rivals[name])
    ahead = totals[attempt.node_name] - rivals[best]
    if ahead == 0:
        equals = sum(total == rivals[best] for total in rivals.values())
        return f"(score {totals[attempt.node_name]}, drawn among {equals + 1} equals)"
    return f"(score {totals[attempt.node_name]}, {ahead} ahead of {best})"


def score_table(
    scores: Scores,
    totals: Mapping[str, int],
    winner: str,
    everything: bool,
    names: NodeNames = WHOLE_NAMES,
) -> Listing:
    """The feasible nodes, best first, those with equal scores in one row; `scores` are weighted points by node."""
    columns = [score for score in scores if not _is_level(score)]
    groups: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    parts = zip(totals.values(), *(points for _, _, points in columns), strict=True)
    for name, own in zip(totals, parts, strict=True):
        groups[own].append(name)
    headings = ["TOTAL", *(_heading(plugin, weight) for plugin, weight, _ in columns)]
    table = Listing(("NODE", *headings), right=headings, text=("NODE",), spare=headings[1:])
    ranked = sorted(groups.items(), key=lambda group: (-group[0][0], winner not in group[1]))
    shown = ranked if everything else ranked[:MAX_SCORED]
    for points, found in shown:
        has_won = winner in found
        found.sort(key=lambda name: name != winner)
        label = f"{'★ ' if has_won else '  '}{name_some(found, everything, names)}"
        table.add(label, *map(str, points), style="bold green" if has_won else "")
    if len(shown) < len(ranked):
        hidden = sum(len(found) for _, found in ranked[len(shown) :])
        best = ranked[len(shown)][0][0]
        more = [(f"  … {hidden} more with {best} or less", "dim")]
        table.add(more, *("" for _ in headings))
    return table


def _is_level(score: PluginPoints) -> bool:
    """Whether all nodes have the same score of the plugin, so that it decided nothing."""
    return len(set(score[2])) <= 1


def _heading(plugin: str, weight: int) -> str:
    """The plugin's name, a word to a line, with its weight."""
    words = _WORDS.findall(plugin) or [plugin]
    return "\n".join((*words, f"×{weight}"))


def level_scores(scores: Scores) -> Text:
    """The plugins that gave all nodes the same."""
    level = [score for score in scores if _is_level(score)]
    said = ", ".join(f"{name} {next(iter(points), 0)}" for name, _, points in level)
    return Text(f"the same for all: {said}" if said else "", style="dim")


def _refusal_table(explanation: Explanation, everything: bool, names: NodeNames) -> Listing | Text:
    """The nodes that were refused, by plugin and reason."""
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, status in explanation.filter.items():
        if not status.is_success:
            groups[status.plugin, status.message].append(name)
    if not groups:
        return Text()
    rows = (
        (str(len(found)), plugin, reason, name_some(found, everything, names))
        for (plugin, reason), found in sorted(groups.items(), key=lambda group: -len(group[1]))
    )
    return refused_table(rows)


def refused_table(rows: Iterable[Sequence[str]]) -> Listing:
    """Refused nodes: their number, the plugin, its reason, and their names."""
    heads = ("REFUSED", "BY", "REASON", "NODES")
    return Listing(heads, rows, right=heads[:1], text=heads[2:])


def wait_table(waits_for: Mapping[str, Sequence[str]]) -> Listing | Text:
    """Events after which a refused pod is tried again: the events that the plugins wait for that refused it."""
    if not waits_for:
        return Text()
    rows = ((plugin, name_events(events)) for plugin, events in waits_for.items())
    return Listing(("REFUSED BY", "WAITS FOR"), rows, text=("WAITS FOR",))


def name_events(events: Iterable[str]) -> str:
    """Events such as `NodeAdd|UpdateNodeLabel`, grouped by their object: `Node (Add, UpdateNodeLabel)`."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for event in events:
        match = _EVENT.fullmatch(event)
        if match is None:
            found[event] = {}
        else:
            found[match["resource"]].update(dict.fromkeys(match["actions"].split("|")))
    return ", ".join(
        f"{resource} ({', '.join(actions)})" if actions else resource
        for resource, actions in found.items()
    )


def skipped(by_point: Mapping[str, Sequence[str]]) -> Text:
    """The plugins that were skipped for this pod, by extension point."""
    parts = [f"{what} {', '.join(names)}" for what, names in by_point.items() if names]
    return Text(f"skipped: {'; '.join(parts)}" if parts else "", style="dim")


def name_some(found: Sequence[str], everything: bool, names: NodeNames = WHOLE_NAMES) -> str:
    """The first few names, fewer if they are long, and how many more there are; or all of them."""
    shown = [names.short(name) for name in (found if everything else found[:MAX_NAMES])]
    while not everything and len(shown) > 1 and len(", ".join(shown)) > LONG_NAMES:
        shown.pop()
    rest = len(found) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


def indent(console: Console, part: Listing | Text) -> None:
    """Print a part of an explanation, unless there is nothing in it."""
    if isinstance(part, Listing):
        show_listing(console, part, INDENT)
    elif part.plain:
        margin = INDENT + len(part.plain) - len(part.plain.lstrip())
        for line in wrap_text(part.plain, console.width - margin):
            console.print(Text(f"{' ' * margin}{line}", style=part.style), soft_wrap=True)
