"""What if: changes to a cluster, and what would follow from them.

What lives here: the changes one can ask about (`node_changes.py`, `object_changes.py`), the file that holds several
(`change_file.py`), the question itself (`asking.py`, read it first) and its answer (`answer.py`). Who calls it: cli,
and people in their own scripts, through this front.
"""

from .adding_nodes import AddNodes
from .answer import PodChange, State, WhatIf, Where
from .asking import ask_what_if, fit_with_nodes
from .change import ClusterChange
from .node_changes import AddTaint, Cordon, Drain, RemoveTaint, ResizeNode, Uncordon

__all__ = [
    "AddNodes",
    "AddTaint",
    "ClusterChange",
    "Cordon",
    "Drain",
    "PodChange",
    "RemoveTaint",
    "ResizeNode",
    "State",
    "Uncordon",
    "WhatIf",
    "Where",
    "ask_what_if",
    "fit_with_nodes",
]
