"""Remedy rows: remedies for a pod on some nodes, in words; nodes with the same remedies are in one row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from .account import Counterfactual
from .manifest_changes import ObjectChange

MAX_CHANGES = 4
OR = "  or "
AND = "and "
SHORTEST_NAME = 4
"""Shorter node names are not removed from texts: they may be ordinary words."""


class LineKind(StrEnum):
    """Kind of a line of a row."""

    STEP = "step"
    """Something to do."""
    OTHER = "other"
    """Another way to do the same."""
    UNKNOWN = "unknown"
    """A refusal without a known remedy."""


RemedyLine: TypeAlias = tuple[str, LineKind]


def remedy_rows(found: Sequence[Counterfactual]) -> list[tuple[list[str], list[RemedyLine]]]:
    """Nodes, and the remedies for the pod on each of them; no remedy is named twice.

    Where one step is enough, each of its alternatives is a way by itself: those for the same nodes are in one row.
    Where several are necessary, each is shown once for all nodes that need it, and begins with `and` if one of them is
    named before.
    """
    ways: dict[tuple[RemedyLine, ...], dict[str, list[RemedyLine]]] = {}
    steps: dict[tuple[RemedyLine, ...], dict[str, list[RemedyLine]]] = {}
    for one in found:
        for part in _parts(one):
            is_enough = len(one.steps) == 1 and not one.unknown
            for way in (
                [[(text.removeprefix(OR), LineKind.STEP)] for text, _ in part]
                if is_enough
                else [part]
            ):
                shared = tuple((_of_any_node(text, one.node), kind) for text, kind in way)
                (ways if is_enough else steps).setdefault(shared, {})[one.node] = way
    rows: dict[tuple[str, ...], list[RemedyLine]] = {}
    for shared, by_node in ways.items():
        way = list(shared) if len(by_node) > 1 else next(iter(by_node.values()))
        row = rows.setdefault(tuple(by_node), [])
        row += [(f"{OR}{text}", LineKind.OTHER) for text, _ in way] if row else way
    told = {text.removeprefix(OR): nodes[0] for nodes, lines in rows.items() for text, _ in lines}
    return [*((list(nodes), lines) for nodes, lines in rows.items()), *_step_rows(steps, told)]


def _step_rows(
    steps: dict[tuple[RemedyLine, ...], dict[str, list[RemedyLine]]], told: dict[str, str]
) -> Iterator[tuple[list[str], list[RemedyLine]]]:
    """A row for each set of nodes that need the same steps; `told` are texts that were shown, with a node."""
    rows: dict[tuple[str, ...], list[RemedyLine]] = {}
    named: set[str] = set()
    for shared, by_node in sorted(steps.items(), key=lambda step: -len(step[1])):
        part = list(shared) if len(by_node) > 1 else next(iter(by_node.values()))
        row = rows.setdefault(tuple(by_node), [])
        lines = _without_told(part, told, next(iter(by_node)))
        if not named.isdisjoint(by_node):
            lines[0] = (f"{AND}{lines[0][0]}", lines[0][1])
        row += lines
        named.update(by_node)
    for nodes, lines in rows.items():
        yield list(nodes), lines


def _without_told(part: Sequence[RemedyLine], told: dict[str, str], node: str) -> list[RemedyLine]:
    """The lines of a step; the first of those that were shown before refers to the node where."""
    lines: list[RemedyLine] = []
    refers = False
    for i, (text, kind) in enumerate(part):
        bare = text.removeprefix(OR)
        if bare not in told:
            told[bare] = node
            lines.append((text, kind))
        elif not refers:
            refers = True
            lines.append((f"{OR if i else ''}as for {told[bare]}", kind))
    return lines


def _parts(found: Counterfactual) -> Iterator[list[RemedyLine]]:
    """The lines of each step."""
    for step in found.steps:
        others = (f"{OR}{what_to_do(o.goal, o.changes)}" for o in step.alternatives)
        yield [
            (what_to_do(step.goal, step.changes), LineKind.STEP),
            *((text, LineKind.OTHER) for text in others),
        ]
    for refusal in found.unknown:
        said = f"{refusal.plugin}: {', '.join(refusal.reasons)}"
        yield [(f"nothing is known that would change the mind of {said}", LineKind.UNKNOWN)]
    if not found.steps and not found.unknown:
        yield [("nothing: it fits", LineKind.STEP)]


def _of_any_node(text: str, node: str) -> str:
    """The text about a node, without its name. A name that could be an ordinary word is kept."""
    if len(node) < SHORTEST_NAME:
        return text
    named = re.compile(rf"(?:\bnode )?(?<![\w.-]){re.escape(node)}(?![\w.-])")
    return named.sub("the node", text)


def what_to_do(goal: str, changes: Sequence[ObjectChange]) -> str:
    """The goal, and the changes where they add something."""
    texts = [text for text in dict.fromkeys(change.text for change in changes) if text not in goal]
    if len(texts) > MAX_CHANGES:
        texts = [*texts[:MAX_CHANGES], f"and {len(texts) - MAX_CHANGES} more"]
    return f"{goal}: {'; '.join(texts)}" if texts else goal
