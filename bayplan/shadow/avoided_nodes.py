"""Avoided nodes: the label of nodes that a scheduler leaves out although they are best here.

A plugin that is not known here may refuse nodes by a label. Its name is not visible, but the label is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..sim.replay_report import ReplayVerdict
from .decision_account import DecisionDifference, is_refused_here

FEWEST = 5
"""Decisions that a label is drawn from, at least."""
FEWEST_NODES = 2
Labels = Callable[[str], Mapping[str, str]]
"""Gives the labels of the node of a name; none if there is no such node."""


def avoided_labels(differences: Iterable[DecisionDifference], labels: Labels) -> dict[str, str]:
    """By name of a scheduler: a label of all nodes that are best here and were never chosen, and of no chosen one."""
    rows: dict[str, list[DecisionDifference]] = {}
    for one in differences:
        if one.result == ReplayVerdict.OTHER and one.here and not is_refused_here(one):
            rows.setdefault(one.scheduler, []).append(one)
    found = {name: _label_of(each, labels) for name, each in rows.items() if len(each) >= FEWEST}
    return {name: label for name, label in found.items() if label}


def _label_of(rows: list[DecisionDifference], labels: Labels) -> str:
    """The label as `key=value`, "" if there is none."""
    chosen = {one.node for one in rows}
    avoided = {one.here for one in rows} - chosen
    if len(avoided) < FEWEST_NODES:
        return ""
    first, *others = (set(labels(name).items()) for name in avoided)
    common = first.intersection(*others)
    for name in chosen:
        common -= set(labels(name).items())
    return min((f"{key}={value}" for key, value in common), default="")
