"""Inventory: the devices that each node can reach, kept as slices and nodes come, change and go."""

from __future__ import annotations

from collections.abc import Iterable

from ...api.devices import ResourceSlice
from ...table import ChangeLog, NodeTable
from .features import ALL_FEATURES, DeviceFeatures
from .pools import Offer, Pool, PoolId, PoolView
from .selection import ExpressionFault, Selection

Candidate = tuple[Offer, ExpressionFault | None, PoolView]
"""A device that a request picks, or that could not be judged; and the pool it comes from."""


EVERY_ROW = -1


class NodeOffers:
    """What one node can reach, pool by pool, in the order in which it is tried."""

    __slots__ = ("_candidates", "_plain", "_usable", "views")

    def __init__(self, views: tuple[PoolView, ...]) -> None:
        self.views = views
        self._candidates: dict[Selection, list[Candidate]] = {}
        self._usable: dict[Selection, list[Candidate]] = {}
        self._plain: dict[Selection, bool] = {}

    def candidates(self, selection: Selection) -> list[Candidate]:
        """The devices that `selection` picks, tainted or not, in order."""
        return self._candidates[selection]

    def usable(self, selection: Selection) -> list[Candidate]:
        """Those without the ones whose taints are not tolerated; one that could not be judged stays."""
        return self._usable[selection]

    def knows(self, selection: Selection) -> bool:
        """Whether the devices were judged already."""
        return selection in self._usable

    def learn(self, selection: Selection, found: list[Candidate]) -> None:
        """Keep what `selection` picks."""
        self._candidates[selection] = found
        usable = [c for c in found if c[1] or selection.tolerates(c[0])]
        self._usable[selection] = usable
        self._plain[selection] = all(offer.is_plain for offer, _, _ in usable)

    def are_plain(self, selection: Selection) -> bool:
        """Whether all of the usable ones are just free or in use."""
        return self._plain[selection]


class Inventory:
    """The pools there are, and for each row what its node sees of them.

    `changes` logs the rows whose nodes see something else than before, EVERY_ROW when that may be any.
    Pools have numbers, for logs of their own; see `number_of` and `rows_of`.
    """

    def __init__(self, table: NodeTable, features: DeviceFeatures = ALL_FEATURES) -> None:
        self._table = table
        self._features = features
        self._node_version = -1
        self._slices: dict[str, PoolId] = {}
        self._pools: dict[PoolId, Pool] = {}
        self._numbers: dict[PoolId, int] = {}
        self._ids: list[PoolId] = []
        self._local: dict[str, dict[PoolId, None]] = {}
        self._shared: dict[PoolId, None] = {}
        self._rows: dict[int, NodeOffers] = {}
        self.changes = ChangeLog()

    def set_slice(self, name: str, made: ResourceSlice | None) -> None:
        """A slice came, changed or (None) went."""
        before = self._slices.pop(name, None)
        after = (made.spec.driver, made.spec.pool.name) if made is not None else None
        if before is not None and before != after:
            self._set(before, name, None)
        if made is not None and after is not None:
            self._slices[name] = after
            self._set(after, name, made)
        elif before is not None:
            self._set(before, name, None)

    def _set(self, pool_id: PoolId, name: str, made: ResourceSlice | None) -> None:
        pool = self._pools.setdefault(pool_id, Pool(pool_id, self._features))
        self._forget(pool)
        pool.put(name, made)
        names = pool.node_names
        if names is None:
            self._shared[pool_id] = None
        for node_name in names or ():
            self._local.setdefault(node_name, {})[pool_id] = None
        self._forget_rows(pool)

    def _forget(self, pool: Pool) -> None:
        """Invalidate what is cached about the pool."""
        self._forget_rows(pool)
        self._shared.pop(pool.id, None)
        for node_name in pool.node_names or ():
            self._local.get(node_name, {}).pop(pool.id, None)

    def _forget_rows(self, pool: Pool) -> None:
        names = pool.node_names
        if names is None:
            self._rows.clear()
            self.changes.mark(EVERY_ROW)
            return
        for node_name in names:
            row = self._table.row_of.get(node_name)
            if row is not None:
                self._rows.pop(row, None)
                self.changes.mark(row)

    def forget_selections(self) -> None:
        """The classes changed, and with them what requests pick."""
        self._rows.clear()

    def number_of(self, pool: PoolId) -> int:
        """The number that stands for a pool; a pool without slices has one, too."""
        number = self._numbers.get(pool)
        if number is None:
            number = self._numbers[pool] = len(self._ids)
            self._ids.append(pool)
        return number

    def rows_of(self, number: int) -> list[int] | None:
        """The rows that may see the pool of that number; None: any may."""
        pool = self._pools.get(self._ids[number])
        names = pool.node_names if pool is not None else ()
        if names is None:
            return None
        found = (self._table.row_of.get(name) for name in names)
        return [row for row in found if row is not None]

    def at(self, row: int) -> NodeOffers:
        """What the node at `row` can reach; `follow_nodes` comes before."""
        offers = self._rows.get(row)
        if offers is None:
            offers = self._rows[row] = NodeOffers(self._views(row))
        return offers

    def candidates_at(self, row: int, selection: Selection) -> NodeOffers:
        """The same, with the devices that `selection` picks judged."""
        offers = self.at(row)
        if not offers.knows(selection):
            node = self._table.nodes[row]
            assert node is not None, "only rows with a node are judged"
            found: list[Candidate] = []
            for view in offers.views:
                for offer in view.offers:
                    if not offer.is_selectable:
                        continue
                    judged = selection.judge(offer)
                    if judged is not True and judged is not False:
                        found.append((offer, judged, view))
                    elif judged and offer.is_on(node):
                        found.append((offer, None, view))
            offers.learn(selection, found)
        return offers

    def reached(self, row: int) -> Iterable[Offer]:
        """All devices that the node at `row` can reach, be their pools complete or not."""
        node = self._table.nodes[row]
        assert node is not None, "only rows with a node are judged"
        for pool in self._pools_of(node.name):
            yield from self._pools[pool].reached(node)

    def follow_nodes(self) -> list[int] | None:
        """Look again at nodes that changed; returns their rows, None when that may be any."""
        log = self._table.node_changes
        if self._node_version == log.version:
            return []
        rows = log.since(self._node_version) if self._node_version >= 0 else None
        self._node_version = log.version
        if rows is None:
            self._rows.clear()
        for row in rows or ():
            self._rows.pop(row, None)
        return rows

    def _views(self, row: int) -> tuple[PoolView, ...]:
        """The pools in order: those with binding conditions last, otherwise by driver and name."""
        node = self._table.nodes[row]
        assert node is not None, "only rows with a node are judged"
        seen: list[PoolView] = []
        for pool in self._pools_of(node.name):
            view = self._pools[pool].view(node)
            if view is not None:
                seen.append(view)
        return tuple(sorted(seen, key=lambda view: (view.has_conditions, view.id)))

    def _pools_of(self, node_name: str) -> Iterable[PoolId]:
        return (*self._local.get(node_name, ()), *self._shared)
