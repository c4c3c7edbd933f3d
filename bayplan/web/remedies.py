"""Remedies: what would let a pod run that waits, on the nodes that are nearest to it, as the page tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..answers import ClusterView
from ..answers.counterfactual import find_counterfactuals
from ..api.pod import Pod
from ..errors import BayplanError
from .accounts import NumberOf
from .numbering import Tree

NEAREST = 4
"""On so many nodes."""

MakeView: TypeAlias = Callable[[], ClusterView]
"""Makes the cluster that can be asked, as it is now."""


def remedies_of(view: ClusterView, pod: Pod, number_of: NumberOf) -> list[Tree]:
    """The smallest changes for each of the nearest nodes, found by judging; none where that fails."""
    if view.has_extenders:
        return []  # they would be asked, and may remember
    try:
        found = find_counterfactuals(view, pod, nearest=NEAREST)
    except BayplanError:
        return []
    return [
        {
            "node": number_of(one.node),
            "fits": one.fits,
            "steps": [
                {
                    "plugin": step.plugin,
                    "goal": step.goal,
                    "or": [a.goal for a in step.alternatives],
                }
                for step in one.steps
            ],
            "unknown": [
                f"{refusal.plugin}: {', '.join(refusal.reasons)}" for refusal in one.unknown
            ],
        }
        for one in found
    ]
