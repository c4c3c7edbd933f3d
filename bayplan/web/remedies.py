"""Remedies: the page's counterfactuals of a pending pod on its nearest nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..answers import ClusterView
from ..answers.counterfactual import NEAREST, find_counterfactuals
from ..answers.remedy_rows import remedy_rows
from ..api.pod import Pod
from ..errors import BayplanError
from .accounts import NumberOf
from .value_numbers import Tree

MakeView: TypeAlias = Callable[[], ClusterView]
"""Makes the current cluster view."""


def remedies_of(view: ClusterView, pod: Pod, number_of: NumberOf) -> list[Tree]:
    """The smallest changes for the nearest nodes, in the rows of `bayplan explain`; empty where that fails."""
    if view.has_extenders:
        return []  # extenders would be called, and may keep state
    try:
        found = find_counterfactuals(view, pod, nearest=NEAREST)
    except BayplanError:
        return []
    return [
        {
            "nodes": [number_of(name) for name in names],
            "lines": [[text.strip(), kind.value] for text, kind in lines],
        }
        for names, lines in remedy_rows(found)
    ]
