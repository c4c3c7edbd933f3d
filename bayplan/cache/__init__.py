"""Cache: the nodes, and the pods that are bound to them or assumed.

Lives here: pod states (assumed, added), the node order, the snapshot. The only writer of the table.
May enter: `api`, `framework`, `table`. Must not happen: a decision about a pod. Called by:
`scheduler` (event handlers, assume, forget).
"""

from .cache import Cache, CacheError, NodeTree, Snapshot, Trial

__all__ = ["Cache", "CacheError", "NodeTree", "Snapshot", "Trial"]
