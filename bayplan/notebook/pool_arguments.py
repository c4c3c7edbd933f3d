"""Pool arguments: the node pools that a function is given, as objects or files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from ..api.node import Node
from ..errors import InputError
from ..planning import InstanceTable, NodePool, read_instance_table, read_pools
from .cluster import Cluster

PoolSource: TypeAlias = NodePool | str | Path


def pools_of(
    function: str,
    cluster: Cluster,
    pools: PoolSource | Iterable[PoolSource],
    instance_types: str | Path | None,
) -> list[NodePool]:
    """The pools; raises InputError, which names the function, if there are none."""
    table = read_instance_table(instance_types) if instance_types is not None else InstanceTable()
    listed = [pools] if isinstance(pools, NodePool | str | Path) else list(pools)
    found = [one for one in listed if isinstance(one, NodePool)]
    files = [one for one in listed if not isinstance(one, NodePool)]
    if files:
        nodes = [obj for obj in cluster.objects if isinstance(obj, Node)]
        found += read_pools(files, table, nodes).pools
    if not found:
        raise InputError(f"{function}: expected at least one pool; got none")
    return found
