"""Notebook: questions about a cluster for notebooks and scripts, with answers as objects, frames and plots.

Contents: `Cluster`, the commands' questions as functions (`questions.py`), and plots. Imports: answers, sweeps, sim,
scheduler, config, cluster, api. Never: results that differ from the commands', or printing. Callers: the package's
public names, `from bayplan import Cluster, simulate, explain, compare`.
"""

from ..answers.what_if import (
    Add,
    AddNodes,
    AddTaint,
    Cordon,
    Delete,
    Drain,
    Patch,
    RemoveTaint,
    Resize,
    Scale,
    Uncordon,
    Upgrade,
)
from .cluster import Cluster
from .pictures import plot
from .questions import capacity, compare, explain, plan, rebalance, replay, simulate, sweep, what_if

__all__ = [
    "Add",
    "AddNodes",
    "AddTaint",
    "Cluster",
    "Cordon",
    "Delete",
    "Drain",
    "Patch",
    "RemoveTaint",
    "Resize",
    "Scale",
    "Uncordon",
    "Upgrade",
    "capacity",
    "compare",
    "explain",
    "plan",
    "plot",
    "rebalance",
    "replay",
    "simulate",
    "sweep",
    "what_if",
]
