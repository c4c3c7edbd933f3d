"""Group packing: the pods of one scale-up on new nodes of one group, one after the other, as the scheduler decides.

Facts from cluster-autoscaler 1.36 (estimator/binpacking_estimator.go): equal pods of a controller stay together. They
go to the new nodes in turn while all fit; from the first that does not, only to the newest node and to further ones. A
further node that cannot run its first pod stays as an empty one, which counts for the limit and as a domain, and ends
the search for its pods. A pod with a spread over hosts that the newest node refuses for its spread may go to any other
node; one that exists then counts as one more new node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..api.node import HOSTNAME, Node
from ..api.pod import Pod
from ..api.resources import CPU, MEMORY
from ..cluster.objects.object_index import ClusterObject
from ..table import Ints
from ..trials import TrialCluster
from .expanders import GroupEstimate
from .launch_options import ChoiceKey, LaunchOption, LaunchOptions, choice_key
from .pool_nodes import PoolUse, next_of

NODE = "bayplan-estimate-"
SPREAD = "PodTopologySpread"


class GroupPacking:
    """New nodes of one group in the shadow, and the pods on them."""

    def __init__(
        self,
        options: LaunchOptions,
        shadow: TrialCluster,
        use: PoolUse,
        members: list[LaunchOption],
        most: int,
    ) -> None:
        """`members` differ in the zone; at most `most` nodes are added."""
        self._options, self._shadow, self._use = options, shadow, use
        self._members, self._most = members, most
        self._objects: list[list[ClusterObject]] = []
        self._rows: list[int] = []
        self._launches: list[tuple[LaunchOption, list[Pod]]] = []
        self._existing: dict[int, list[Pod]] = {}
        """By row: the pods on existing nodes."""
        self._placed = 0
        self._last = 0
        """The existing node on which a pod fitted last; the next search begins after it."""
        self._may_grow = True

    def estimate(self, pods: Iterable[Pod]) -> GroupEstimate:
        """Pack the pods, and leave the shadow as it was."""
        for equal in self._in_order(pods):
            left = self._on_nodes(equal)
            if left and self._may_grow:
                self._on_new_nodes(left)
        self._shadow.take_back(self._placed)
        for objects in self._objects:
            self._shadow.drop(objects)
        found = [one for one in self._launches if one[1]]
        found += [(self._members[0], pods) for pods in self._existing.values()]
        return GroupEstimate(found, tried=len(self._rows))

    def _in_order(self, pods: Iterable[Pod]) -> list[list[Pod]]:
        """Equal pods together, those with the largest shares of a node first."""
        offered = self._members[0].type.allocatable
        groups: dict[ChoiceKey | str, list[Pod]] = {}
        for pod in pods:
            groups.setdefault(pod.uid if pod.controller is None else choice_key(pod), []).append(
                pod
            )

        def share(equal: list[Pod]) -> float:
            requests = equal[0].requests
            return sum(requests.get(r, 0) / max(offered.get(r, 0), 1) for r in (CPU, MEMORY))

        return sorted(groups.values(), key=lambda equal: -share(equal))

    def _on_nodes(self, pods: list[Pod]) -> list[Pod]:
        """Put equal pods on the new nodes in turn; returns the first that does not fit, and those after it."""
        for i, pod in enumerate(pods):
            fitting = self._fitting(pod)
            if not len(fitting):
                return pods[i:]
            self._last = next_of(fitting, self._last)
            self._place(pod, self._last)
        return []

    def _fitting(self, pod: Pod) -> Ints:
        """The numbers of the new nodes that can run the pod."""
        if not self._rows:
            return np.empty(0, dtype=np.int64)
        found: Ints = np.flatnonzero(self._shadow.totals(pod)[self._rows] >= 0)
        return found

    def _on_new_nodes(self, pods: list[Pod]) -> None:
        """Put equal pods on the newest node and on further ones."""
        for pod in pods:
            if self._rows and self._is_on_newest(pod):
                continue
            if self._rows and not self._launches[-1][1]:
                return
            if not self._grow(pod):
                return

    def _is_on_newest(self, pod: Pod) -> bool:
        """Whether the pod was put on the newest node, or on another node that its spread over hosts allows."""
        totals, newest = self._shadow.totals(pod), self._rows[-1]
        if totals[newest] >= 0:
            self._place(pod, len(self._rows) - 1)
            return True
        if not _is_spread_over_hosts(pod):
            return False
        others = np.flatnonzero(totals >= 0)
        if not len(others) or not self._is_refused_for_spread(pod):
            return False
        row = int(others[0])
        if row in self._rows:
            self._place(pod, self._rows.index(row))
        else:
            self._put(pod, row)
            self._existing.setdefault(row, []).append(pod)
        return True

    def _is_refused_for_spread(self, pod: Pod) -> bool:
        """Whether the newest node refuses the pod for its spread constraints."""
        name = self._shadow.table.names[self._rows[-1]]
        found = self._shadow.ask(pod).refusals()
        return any(status.plugin == SPREAD and name in names for status, names in found)

    def _place(self, pod: Pod, number: int) -> None:
        self._put(pod, self._rows[number])
        self._launches[number][1].append(pod)

    def _put(self, pod: Pod, row: int) -> None:
        self._shadow.place(pod, self._shadow.table.names[row])
        self._placed += 1

    def _grow(self, pod: Pod) -> bool:
        """Add a node that can run the pod, in the zone with the fewest such nodes; False if there is none."""
        accepts = self._options.choice(pod).accepts
        pool = self._members[0].pool
        able = [one for one in self._members if accepts[one.number]]
        able.sort(key=lambda one: (self._use.zones[pool.name, one.zone], one.zone))
        for i, option in enumerate(able):
            if len(self._rows) >= self._most or not self._use.allows(pool, option.type):
                self._may_grow = False
                return False
            name = f"{NODE}{len(self._rows)}"
            objects = option.make_objects(name, is_shadow=True)
            self._shadow.put(objects)
            row = self._shadow.table.row_of[name]
            fits = bool(self._shadow.totals(pod)[row] >= 0)
            if fits or i == len(able) - 1:
                self._objects.append(objects)
                self._rows.append(row)
                self._use.add(pool, option.zone, option.type.capacity)
                self._launches.append((option, []))
                if fits:
                    self._place(pod, len(self._rows) - 1)
                return fits
            self._shadow.drop(objects)
        return False


def takes_some(
    members: Sequence[LaunchOption], options: LaunchOptions, shadow: TrialCluster, pods: list[Pod]
) -> set[ChoiceKey]:
    """The classes of `pods`, one of each, that a first new node of the group can run beside the pods of the cluster."""
    found: set[ChoiceKey] = set()
    for option in members:
        left = [
            pod
            for pod in pods
            if options.choice(pod).accepts[option.number] and choice_key(pod) not in found
        ]
        if not shadow.table.carried:
            found |= {choice_key(pod) for pod in left if not _compares_pods(pod)}
            left = [pod for pod in left if _compares_pods(pod)]
        if left:
            objects = option.make_objects(f"{NODE}0", is_shadow=True)
            shadow.put(objects)
            row = shadow.table.row_of[objects[0].name]
            found |= {choice_key(pod) for pod in left if shadow.totals(pod)[row] >= 0}
            shadow.drop(objects)
    return found


def _compares_pods(pod: Pod) -> bool:
    """Whether other pods may keep the pod off a new node."""
    spec = pod.spec
    return bool(
        spec.topology_spread_constraints or spec.required_affinity or spec.required_anti_affinity
    )


def _is_spread_over_hosts(pod: Pod) -> bool:
    constraints = pod.spec.topology_spread_constraints or ()
    return any(one.topology_key == HOSTNAME for one in constraints)


def settle_rows(shadow: TrialCluster, had: Sequence[int], counts: Sequence[int]) -> None:
    """Leave the free rows of the shadow as if `counts` nodes had been there in turn, where `had` nodes were.

    Of nodes with equal scores that with the first row is taken, so the rows of the nodes that are launched next count.
    Each group takes the rows that were freed last, and frees them in the same order.
    """
    before, after = _freed(had, max(counts, default=0)), _freed(counts, max(counts, default=0))
    if before == after:
        return
    nodes = [Node(f"{NODE}{i}") for i in range(len(after))]
    shadow.put(nodes)
    for row in reversed(after):
        shadow.drop([nodes[before.index(row)]])


def _freed(counts: Sequence[int], size: int) -> list[int]:
    """Free rows, the next one first."""
    rows = list(range(size))
    for count in counts:
        rows[:count] = reversed(rows[:count])
    return rows
