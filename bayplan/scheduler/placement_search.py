"""PlacementSearch: the placements on which a pod group fits, without trying its members, if only amounts matter.

The kernel puts the members on the rows of many placements at once. They are then tried in full on one placement: the
best, or the first when there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..amounts.filling import Fillings, fill
from ..api.pod import Pod
from ..api.pod_groups import PodGroup
from ..cache import Cache
from ..framework.placement import GroupRoom, Placement, PodGroupAssignments, PodGroupInfo
from ..runtime import ProfileRuntime
from ..runtime.plugin_failures import is_in_tree
from ..table import Ints, NodeTable
from .deciding import Decider
from .select_host import TieBreak

GANG_SCHEDULING = "GangScheduling"
"""The Permit plugin that only counts members with a node."""
FEW_PLACEMENTS = 4
"""Number of placements up to which all are tried in full."""


class PlacementSearch:
    """Finds the placements that hold enough members of a group."""

    def __init__(self, cache: Cache, decider: Decider, ties: TieBreak) -> None:
        self._cache = cache
        self._decider = decider
        self._ties = ties

    def find(
        self, profile: ProfileRuntime, group: PodGroupInfo, placements: Sequence[Placement]
    ) -> list[PodGroupAssignments] | None:
        """The placements on which the group fits, with a node for each member that gets one; None means unknown."""
        if len(placements) <= FEW_PLACEMENTS or self._reserves(profile, group.pods):
            return None
        if not all(is_in_tree(plugin) for plugin in profile.filtering.post_filters):
            return None  # PostFilter plugins of this package do nothing for members with a choice of placements
        needed = self._needed(profile, group)
        fillings = self._decider.fillings(profile, group.pods) if needed is not None else None
        if needed is None or fillings is None:
            return None
        table = self._cache.table
        rows = np.concatenate([placement.rows for placement in placements])
        ends = np.cumsum([len(placement.rows) for placement in placements])
        ranks = self._ties.ranks(table)
        hosts, _ = fill(table, fillings.kinds, fillings.classes, rows, ends, ranks)
        counts = np.count_nonzero(hosts >= 0, axis=1).tolist()
        return [
            _assignments(placement, group.pods, found, count)
            for placement, found, count in zip(placements, hosts, counts, strict=True)
            if count >= needed
        ]

    def fillings(self, profile: ProfileRuntime, group: PodGroupInfo) -> Fillings | None:
        """The classes of the members; None if the result depends on more than amounts and the number of members."""
        if self._reserves(profile, group.pods) or self._needed(profile, group) is None:
            return None
        return self._decider.fillings(profile, group.pods)

    def room(
        self, profile: ProfileRuntime, group: PodGroupInfo, fillings: Fillings
    ) -> GroupRoom | None:
        """The room that the group needs anywhere.

        None if its pods are not equal, are too few at the moment, or may be served by devices.
        """
        needed = self._needed(profile, group)
        if needed is None or needed > len(group.pods) or len(fillings.kinds) != 1:
            return None
        kind = fillings.kinds[0]
        fit = kind.rules.fit
        if fit is None or fit.left_to_devices:
            return None
        return GroupRoom(fit.amounts, kind.base >= 0, needed)

    def filling(
        self, profile: ProfileRuntime, group: PodGroupInfo, fillings: Fillings
    ) -> GroupFilling | None:
        """Make a `GroupFilling`; None if a choice between equal rows depends on all rows."""
        needed, table = self._needed(profile, group), self._cache.table
        if needed is None or self._ties.reads_others:
            return None
        return GroupFilling(fillings, needed, self._ties.ranks(table), table)

    @staticmethod
    def _reserves(profile: ProfileRuntime, pods: Sequence[Pod]) -> bool:
        """Whether some Reserve plugin has something to do for the pods."""
        return any(profile.committing.plan(pod.spec).reserves for pod in pods)

    def _needed(self, profile: ProfileRuntime, group: PodGroupInfo) -> int | None:
        """Number of members that need a node; None if Permit depends on more than their number."""
        key = ("PodGroup", group.namespace, group.name)
        permits = profile.committing.plan(group.pods[0].spec).permits
        if not permits:
            return 1
        found = profile.handle.lister.get(*key) if len(permits) == 1 else None
        if permits[0].name != GANG_SCHEDULING or not isinstance(found, PodGroup):
            return None
        return max(1, found.min_count - self._cache.pod_groups.placed_count(key))


def _assignments(
    placement: Placement, pods: Sequence[Pod], found: Ints, count: int
) -> PodGroupAssignments:
    rows = found.tolist()
    if count == len(pods):
        return PodGroupAssignments(placement, pods, rows)
    placed = [(pod, row) for pod, row in zip(pods, rows, strict=True) if row >= 0]
    return PodGroupAssignments(placement, [pod for pod, _ in placed], [row for _, row in placed])


class GroupFilling:
    """The values of all rows for each class of the members, updated row by row; for groups that only need amounts.

    A row without a member has the same value in every step. When such a row changes, the assignment of the members
    stays the same as long as the row's value is lower than those of all rows that have members of the class.
    """

    def __init__(self, fillings: Fillings, needed: int, ranks: Ints, table: NodeTable) -> None:
        self._kinds = [kind._replace(values=kind.values.copy()) for kind in fillings.kinds]
        self._classes = fillings.classes
        self._needed = needed
        self._ranks = ranks
        self._table = table
        self._rows = table.numbers(table.live_rows)
        self._is_followed = False
        self._hosts: set[int] = set()
        self._lowest: list[int] = []
        """Per class, the lowest value of a row that a member is put on; 0 when one is put on none."""

    def fits_beside(self, pods: Sequence[Pod]) -> bool:
        """Whether the group fits after `pods` were put back on their nodes; if not, the caller removes them again."""
        if not self._is_followed:
            self._judge(None)
            self._is_followed = self._fits()
            return self._is_followed
        rows = {self._table.row_of[pod.node_name] for pod in pods}
        changed = np.array(list(rows), dtype=np.int64)
        before = [kind.values[changed] for kind in self._kinds]
        self._judge(changed)
        if self._hosts.isdisjoint(rows) and self._goes_the_same_way(changed, before):
            return True
        if self._fits():
            return True
        for kind, values in zip(self._kinds, before, strict=True):
            kind.values[changed] = values
        return False

    def _judge(self, rows: Ints | None) -> None:
        for kind in self._kinds:
            kind.judge.judge(kind.values, kind.base, rows)

    def _goes_the_same_way(self, changed: Ints, before: Sequence[Ints]) -> bool:
        for kind, old, lowest in zip(self._kinds, before, self._lowest, strict=True):
            new = kind.values[changed]
            if np.count_nonzero((new != old) & (new >= lowest)):
                return False
        return True

    def _fits(self) -> bool:
        """Put the members on rows; the assignment is stored if enough of them fit."""
        ends = np.array([len(self._rows)], dtype=np.int64)
        hosts, values = fill(self._table, self._kinds, self._classes, self._rows, ends, self._ranks)
        rows = hosts[0].tolist()
        if sum(row >= 0 for row in rows) < self._needed:
            return False
        self._hosts = set(rows)
        self._lowest = [
            max(int(values[0, self._classes == number].min()), 0)
            for number in range(len(self._kinds))
        ]
        return True
