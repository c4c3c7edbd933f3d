"""Pending rows: a line for the pods of a workload that wait for the same reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from ...api.workloads import BARE
from ...errors import counted
from ...sim.pending_pods import PendingGroup
from .node_names import NodeNames
from .table_layout import wrap_text
from .tables import hint

MAX_GROUPS = 20
TEXT_WIDTH = 100
"""Names and messages are broken at this width, also without a terminal."""
INDENT = 2
PREFIXES = ("node(s) had ", "node(s) were ", "node(s) ")


def render_pending(
    console: Console,
    groups: Sequence[PendingGroup],
    names: NodeNames,
    *,
    details: bool = False,
    everything: bool = False,
) -> None:
    """Print the groups; with `details` also the whole message and the names of the pods."""
    if not groups:
        return
    console.print(Text("PENDING", style="bold"))
    shown = groups if everything or details else groups[:MAX_GROUPS]
    for group in shown:
        width = min(console.width, 2 * TEXT_WIDTH)
        console.print(_line(group, names, width), soft_wrap=True)
        for text in (names.in_text(group.message), ", ".join(group.pods)) if details else ():
            for line in wrap_text(text, min(console.width, TEXT_WIDTH) - INDENT):
                console.print(Text(f"{' ' * INDENT}{line}", style="dim"), soft_wrap=True)
    hint(console, len(groups) - len(shown), "group")
    console.print()


def _line(group: PendingGroup, names: NodeNames, width: int) -> Text:
    """`web (12 of 40 pods): 9 x Insufficient cpu on 40 nodes`, with the reasons that there is room for."""
    text = Text.assemble((group.workload, "yellow"))
    others = len(group.pods) - 1
    if group.kind != BARE:
        text.append(f" ({group.waiting:,} of {counted(group.of, 'pod')})", style="dim")
    elif others:
        text.append(f" and {counted(others, 'more pod')}", style="dim")
        if group.devices:
            listed = ", ".join(f"{amount:,} {name}" for name, amount in group.devices.items())
            text.append(f" with {listed}", style="dim")
    text.append(": ")
    if len(group.pods) != group.waiting:
        text.append(f"{len(group.pods):,} x ")
    reasons = refusal_texts(group.refusals) or [names.in_text(group.message)]
    return text.append(fitted(reasons, width - len(text.plain)))


def refusal_texts(refusals: Mapping[str, int]) -> list[str]:
    """`Insufficient cpu on 40 nodes`, `untolerated taint(s) on 6`."""
    texts: list[str] = []
    for reason, nodes in refusals.items():
        for prefix in PREFIXES:
            reason = reason.removeprefix(prefix)
        number = f"{nodes:,}" if texts else counted(nodes, "node")
        texts.append(f"{reason} on {number}")
    return texts


def fitted(parts: Sequence[str], room: int) -> str:
    """The first part, and as many of the others as there is room for."""
    text = parts[0]
    for i, part in enumerate(parts[1:], 2):
        longer = f"{text}, {part}"
        if len(longer) + (3 if i < len(parts) else 0) > room:
            return f"{text}, …"
        text = longer
    return text
