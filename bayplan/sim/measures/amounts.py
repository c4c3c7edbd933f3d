"""Amounts: the capacity of nodes and its use by pods, as one array per resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...errors import PluginError
from ...scheduler import Scheduler
from ...table import Bools, Ints
from ..outcomes import NodeUse
from ..totals import MAIN_RESOURCES, PODS

Floats = NDArray[np.float64]


def shares_of(amounts: Ints | Floats, whole: Ints | Floats) -> Floats:
    """float64: each amount as a share of the whole; 0 where that is 0."""
    shares = np.zeros(len(amounts))
    np.divide(amounts, whole, out=shares, where=whole > 0)
    return shares


class NodeAmounts(msgspec.Struct, frozen=True):
    """Offered and used amounts of nodes, int64 per node; cpu in milli, others in whole units, `pods` among them."""

    offered: Mapping[str, Ints]
    used: Mapping[str, Ints]
    is_open: Bools
    """Whether the node is not cordoned."""

    @staticmethod
    def of_uses(uses: Iterable[NodeUse]) -> NodeAmounts:
        """The nodes at the end of a run."""
        left = [use for use in uses if use.removed_s is None]
        names = dict.fromkeys((*MAIN_RESOURCES, *(n for use in left for n in use.node.allocatable)))
        used = {name: _column([use.after.get(name, 0) for use in left]) for name in names}
        return NodeAmounts(
            {name: _column([use.node.allocatable.get(name, 0) for use in left]) for name in names},
            {**used, PODS: _column([use.pods_after for use in left])},
            np.array([not use.node.unschedulable for use in left], dtype=np.bool_),
        )

    def __len__(self) -> int:
        return len(self.is_open)

    def free(self, resource: str) -> Ints:
        """int64 per node: free amount; 0 on cordoned nodes, and of a resource that no node has."""
        if resource not in self.offered:
            return np.zeros(len(self), dtype=np.int64)
        left = np.maximum(self.offered[resource] - self.used[resource], 0)
        free: Ints = np.where(self.is_open, left, 0)
        return free

    def shares(self, resource: str) -> Floats:
        """float64 per node: the part in use; 0 without capacity."""
        return shares_of(self.used[resource], self.offered[resource])

    def total_share(self, resource: str) -> float:
        """Share of all nodes' capacity that is in use; 0 without capacity."""
        offered = int(self.offered[resource].sum())
        return int(self.used[resource].sum()) / offered if offered else 0.0


def _column(amounts: Sequence[int]) -> Ints:
    return np.array(amounts, dtype=np.int64)


FreeParts: TypeAlias = Mapping[str, Ints]
"""By resource: int64 per node and part."""


def free_parts(scheduler: Scheduler, nodes: Sequence[str]) -> dict[str, Ints]:
    """The free amounts of parts of the nodes of these names that plugins report; if several plugins report a resource,
    the first counts.

    Raises PluginError when a plugin fails.
    """
    found: dict[str, Ints] = {}
    rows: Ints | None = None
    table, profiles = scheduler.cache.table, scheduler.profiles.values()
    for plugin in (plugin for profile in profiles for plugin in profile.plugins.values()):
        try:
            given = plugin.free_parts(table)
        except Exception as error:  # a plugin may raise anything
            raise PluginError(
                f"{plugin.name}: free_parts: {type(error).__name__}: {error}"
            ) from error
        for resource, parts in given.items():
            if np.ndim(parts) != 2 or len(parts) < len(table.live):
                raise PluginError(
                    f"{plugin.name}: free_parts: {resource}: expected an array with a line per row of the table and "
                    f"a column per part; got one of shape {np.shape(parts)}"
                )
            if rows is None:
                rows = np.array([table.row_of[name] for name in nodes], dtype=np.int64)
            found.setdefault(resource, np.asarray(parts)[rows])
    return found
