"""What if: changes to a cluster, and their consequences.

Contents: the possible changes (`*_changes.py`, `resizes.py`), the file format for several (`change_file.py`), the
computation (`question.py`, read it first) and its answer (`answer.py`). Callers: cli, and users' scripts, through
this package.
"""

from .answer import PodChange, WhatIfAnswer, WhatIfState, Where
from .application import Apply
from .change import ClusterChange
from .change_file import read_change_file
from .node_changes import AddNodes, AddTaint, Cordon, RemoveTaint, Uncordon
from .node_search import fit_with_nodes
from .object_changes import Add, Delete, Patch, Scale
from .question import ask_what_if
from .resizes import Resize, parse_resources
from .rounds import Drain, Upgrade

__all__ = [
    "Add",
    "AddNodes",
    "AddTaint",
    "Apply",
    "ClusterChange",
    "Cordon",
    "Delete",
    "Drain",
    "Patch",
    "PodChange",
    "RemoveTaint",
    "Resize",
    "Scale",
    "WhatIfState",
    "Uncordon",
    "Upgrade",
    "WhatIfAnswer",
    "Where",
    "ask_what_if",
    "fit_with_nodes",
    "parse_resources",
    "read_change_file",
]
