"""For notebooks and scripts: a cluster, questions to it, and answers as plain objects, frames and pictures.

What lives here: `Cluster`, the questions of the command line as functions (`questions.py`), and pictures. What may
enter: answers, sim, scheduler, config, cluster, api. What must not happen: anything that the commands do differently,
or printing. Who calls it: the package's front, `from bayplan import Cluster, simulate, explain, compare`.
"""

from .cluster import Cluster
from .pictures import plot
from .questions import capacity, compare, explain, rebalance, simulate, what_if

__all__ = ["Cluster", "capacity", "compare", "explain", "plot", "rebalance", "simulate", "what_if"]
