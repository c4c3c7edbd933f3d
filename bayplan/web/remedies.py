"""Remedies: the page's counterfactuals of a pending pod on its nearest nodes."""

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
"""Number of nodes."""

MakeView: TypeAlias = Callable[[], ClusterView]
"""Makes the current cluster view."""


def remedies_of(view: ClusterView, pod: Pod, number_of: NumberOf) -> list[Tree]:
    """The smallest changes for each of the nearest nodes; empty where that fails."""
    if view.has_extenders:
        return []  # extenders would be called, and may keep state
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
