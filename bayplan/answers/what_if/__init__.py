"""What if: changes to a cluster, and their consequences.

What lives here: the possible changes (`*_changes.py`, `resizing.py`), the file format for several
(`change_file.py`), the computation (`asking.py`, read it first) and its answer (`answer.py`). Who
calls it: cli, and users' scripts, through this package.
"""

from .adding_nodes import AddNodes
from .answer import PodChange, WhatIfAnswer, WhatIfState, Where
from .asking import ask_what_if
from .change import ClusterChange
from .change_file import read_change_file
from .draining import Drain
from .node_changes import AddTaint, Cordon, RemoveTaint, Uncordon
from .node_search import fit_with_nodes
from .object_changes import Add, Delete, Patch, Scale
from .resizing import Resize, parse_resources
from .upgrading import Upgrade

__all__ = [
    "Add",
    "AddNodes",
    "AddTaint",
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
