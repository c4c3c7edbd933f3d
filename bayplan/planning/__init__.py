"""Planning: node pools, and the cheapest set of nodes on which the scheduler places every pod.

Contents: `node_types.py` and `pools.py` (available nodes and their prices), `pool_files.py` with the documents that
describe them (`pool_documents.py`, `karpenter.py`, `instance_types.py`, `node_groups.py`); the search for the cheapest
nodes (`fleet_search.py`, read it first; docs/plan.md describes it). Contains no placement rule: the scheduler decides
where a pod can run. `cli/` and `notebook/` call it.
"""

from .instance_types import InstanceTable, InstanceType, read_instance_table
from .node_types import NodeType
from .pool_files import PoolReading, read_pools
from .pools import NodeBudget, NodePool

__all__ = [
    "InstanceTable",
    "InstanceType",
    "NodeBudget",
    "NodePool",
    "NodeType",
    "PoolReading",
    "read_instance_table",
    "read_pools",
]
