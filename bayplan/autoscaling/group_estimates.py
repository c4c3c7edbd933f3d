"""Group estimates: new nodes as Cluster Autoscaler plans them, all of one group at a time.

Facts from cluster-autoscaler 1.36 (core/podlistprocessor, estimator, processors/nodegroupset): pods that fit on nodes
that exist or boot are left out; each search for a node begins after the one that was found last. For each group it is
estimated how many nodes the other pods need, by packing them, the largest first, on nodes of the group. An expander
chooses one group, which grows by that number, if asked for together with similar groups; other pods wait for the next
scan. A group is here a type of a pool, and a new node is put in the zone that has the fewest nodes of its pool, as
providers balance zones. The shadow decides which node can run a pod.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from ..api.node import HOSTNAME, ZONE, Node
from ..api.pod import Pod
from ..api.pod_spec import PodSpec
from ..api.resources import CPU, MEMORY
from ..cluster.objects.object_index import ClusterObject
from ..config.plugin_args import NodeAffinityArgs, PodTopologySpreadArgs
from ..planning.node_groups import GROUP_LABELS
from ..planning.node_types import INSTANCE_TYPE, POOL_LABEL, NodeType
from ..sim.settings import Settings
from ..table import Ints, NodeTable
from ..trials import TrialCluster
from .amount_packer import MAX_NODES, AmountPacking, amount_packing
from .autoscaler_settings import AutoscalerOptions
from .cluster_autoscaler_flags import ClusterAutoscalerFlags
from .expanders import ExpanderChain, GroupEstimate
from .launch_options import ChoiceKey, LaunchOption, LaunchOptions, LaunchPlan, choice_key
from .pool_nodes import PoolNodes, PoolUse

NODE = "bayplan-estimate-"
IGNORED_LABELS = frozenset(
    {
        HOSTNAME,
        ZONE,
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        POOL_LABEL,
        "karpenter.sh/nodepool",
        *GROUP_LABELS,
    }
)
"""In which similar groups may differ."""


class GroupPlanner:
    """Plans the growth of one group."""

    def __init__(
        self,
        options: LaunchOptions,
        shadow: TrialCluster,
        nodes: PoolNodes,
        chosen: AutoscalerOptions,
        settings: Settings,
    ) -> None:
        self._options, self._shadow, self._nodes = options, shadow, nodes
        self._flags, self._settings, self._use = chosen.flags, settings, nodes.use
        self._expanders = ExpanderChain(
            chosen.flags.expanders, chosen.priorities, random.Random(chosen.seed)
        )
        self._last_row = 0
        """Place of the last pod that was found to fit; the next search begins after it."""

    def plan(self, pods: list[Pod]) -> LaunchPlan:
        """Leave out the pods that fit on nodes that are there, and choose a group for the others."""
        found = LaunchPlan()
        with self._shadow.trial():
            left = self._without_fitting(pods, found)
            estimates = [one for one in self._estimates(left) if one.launches]
        if estimates:
            chosen = self._expanders.choose(estimates, len(self._nodes.live))
            found.launches = chosen.launches[: self._most_nodes()]
            if self._flags.balance_similar_node_groups:
                found.launches = self._balanced(found.launches, estimates)
            served = {pod.uid for _, planned in found.launches for pod in planned}
            left = [pod for pod in left if pod.uid not in served]
        found.left = left
        return found

    def _without_fitting(self, pods: list[Pod], plan: LaunchPlan) -> list[Pod]:
        """Put pods on the nodes that are there, higher priorities first; returns the others."""
        left: list[Pod] = []
        full: set[ChoiceKey] = set()
        for pod in sorted(pods, key=lambda pod: -pod.priority):
            if choice_key(pod) not in full:
                rows = np.flatnonzero(self._shadow.totals(pod) >= 0)
                if len(rows):
                    self._last_row = row = _next_of(rows, self._last_row)
                    name = self._shadow.table.names[row]
                    self._shadow.place(pod, name)
                    plan.existing[pod.uid] = name
                    continue
                full.add(choice_key(pod))
            left.append(pod)
        return left

    def _estimates(self, pods: list[Pod]) -> list[GroupEstimate]:
        """Estimates of all groups; of groups that are alike one is packed."""
        if not pods:
            return []
        groups: dict[str, list[LaunchOption]] = {}
        for option in self._options.all:
            groups.setdefault(option.label, []).append(option)
        quick = amount_packing(self._options, self._shadow, self._settings, pods)
        alike = AlikeGroups(self._settings, self._shadow.table, pods)
        packed: dict[Hashable, tuple[list[LaunchOption], GroupEstimate]] = {}
        found: list[GroupEstimate] = []
        for members in groups.values():
            key = alike.key(members)
            if key not in packed:
                packed[key] = members, self._estimate(members, pods, quick)
            first, estimate = packed[key]
            found.append(estimate if first is members else estimate.of(first, members))
        had = [] if quick is not None else [len(one.launches) for _, one in packed.values()]
        settle_rows(self._shadow, had, [len(one.launches) for one in found])
        return found

    def _estimate(
        self, members: list[LaunchOption], pods: list[Pod], quick: AmountPacking | None
    ) -> GroupEstimate:
        """Pack the pods on new nodes of a group, whose options differ in the zone."""
        if quick is not None:
            return GroupEstimate(quick.pack(members, self._use.copy()))
        packing = _GroupPacking(self._options, self._shadow, self._use.copy(), members)
        for pod in packing.in_order(pods):
            packing.add(pod)
        packing.close()
        return packing.estimate

    def _most_nodes(self) -> int:
        """Limit on the nodes that are launched at once."""
        most, total = self._flags.max_nodes_per_scaleup, self._flags.max_nodes_total
        return min(most, max(total - len(self._nodes.live), 0)) if total else most

    def _balanced(
        self,
        launches: list[tuple[LaunchOption, list[Pod]]],
        estimates: Sequence[GroupEstimate],
    ) -> list[tuple[LaunchOption, list[Pod]]]:
        """Divide new nodes between the group and similar ones that could take all its pods, the smallest first."""
        groups = self._similar_groups(launches, estimates)
        if len(groups) < 2:
            return launches
        sizes = Counter((node.pool.name, node.type.name) for node in self._nodes)
        use, found = self._use.copy(), list[tuple[LaunchOption, list[Pod]]]()

        def size(members: list[LaunchOption]) -> int:
            return sizes[members[0].pool.name, members[0].type.name]

        for option, pods in launches:
            able = [one for one in groups if use.allows(one[0].pool, one[0].type)]
            if not able:
                break
            members = min(able, key=size)
            if option not in members:
                option = min(
                    members, key=lambda one: (use.zones[one.pool.name, one.zone], one.zone)
                )
            sizes[option.pool.name, option.type.name] += 1
            use.add(option.pool, option.zone, option.type.capacity)
            found.append((option, pods))
        return found

    def _similar_groups(
        self,
        launches: list[tuple[LaunchOption, list[Pod]]],
        estimates: Sequence[GroupEstimate],
    ) -> list[list[LaunchOption]]:
        """The options of the group, and of each that is similar and takes the same pods."""
        first = launches[0][0]
        wanted = {pod.uid for _, pods in launches for pod in pods}
        able = {one.group for one in estimates if wanted <= {pod.uid for pod in one.pods}} | {
            first.label
        }
        groups: dict[str, list[LaunchOption]] = {}
        for option in self._options.all:
            if option.label in able and is_similar(first, option, self._flags):
                groups.setdefault(option.label, []).append(option)
        return list(groups.values())


def is_similar(one: LaunchOption, other: LaunchOption, flags: ClusterAutoscalerFlags) -> bool:
    """Whether nodes of two groups have about the same amounts, and the same labels apart from names and zones."""
    if one.label == other.label:
        return True
    a, b = one.type, other.type
    for name in {*a.capacity, *b.capacity}:
        ratio = flags.memory_difference_ratio if name == MEMORY else 0.0
        if not _is_near(a.capacity.get(name, 0), b.capacity.get(name, 0), ratio):
            return False
    for name in {*a.allocatable, *b.allocatable}:
        mine, others = a.allocatable.get(name, 0), b.allocatable.get(name, 0)
        free = mine - one.daemons.get(name, 0), others - other.daemons.get(name, 0)
        if not _is_near(mine, others, flags.max_allocatable_difference_ratio):
            return False
        if not _is_near(*free, flags.max_free_difference_ratio):
            return False
    return _kept_labels(a) == _kept_labels(b) and set(a.taints) == set(b.taints)


def _is_near(one: int, other: int, ratio: float) -> bool:
    return abs(one - other) <= max(one, other) * ratio


def _kept_labels(kind: NodeType) -> dict[str, str]:
    labels = {INSTANCE_TYPE: kind.name, **kind.labels}
    return {key: value for key, value in labels.items() if key not in IGNORED_LABELS}


def _next_of(rows: Ints, last: int) -> int:
    """The first of the rows after `last`, else the first of all."""
    later = rows[rows > last]
    return int(later[0] if len(later) else rows[0])


class _GroupPacking:
    """New nodes of one group in the shadow, and the pods on them."""

    def __init__(
        self,
        options: LaunchOptions,
        shadow: TrialCluster,
        use: PoolUse,
        members: list[LaunchOption],
    ) -> None:
        self._options, self._shadow, self._use = options, shadow, use
        self._members = members
        self._objects: list[list[ClusterObject]] = []
        self._rows: list[int] = []
        self._placed = 0
        self._last = 0
        """The node that a pod fitted on last, of those that were there before it; the next search begins after it."""
        self._full: set[ChoiceKey] = set()
        self._grown_for: ChoiceKey | None = None
        """The pods for which the newest node was added."""
        self.estimate = GroupEstimate()

    def in_order(self, pods: list[Pod]) -> list[Pod]:
        """The pods that the group can run, those with the largest shares of a node first."""
        offered = self._members[0].type.allocatable

        def share(pod: Pod) -> float:
            return sum(pod.requests.get(r, 0) / max(offered.get(r, 0), 1) for r in (CPU, MEMORY))

        able = [
            pod
            for pod in pods
            if any(self._options.choice(pod).accepts[one.number] for one in self._members)
        ]
        return sorted(able, key=lambda pod: -share(pod))

    def add(self, pod: Pod) -> None:
        """Put the pod on the first of the new nodes that can run it, else on a further one, if there may be one."""
        key = choice_key(pod)
        if key in self._full:
            return
        if self._rows:
            totals = self._shadow.totals(pod)
            fitting = np.flatnonzero(totals[self._rows] >= 0)
            newest = len(self._rows) - 1
            if key == self._grown_for and totals[self._rows[newest]] >= 0:
                self._place(pod, newest)  # no search
                return
            if len(fitting):
                self._last = _next_of(fitting, self._last)
                self._place(pod, self._last)
                return
        self._grown_for = key
        if not self._grow(pod):
            self._full.add(key)

    def _place(self, pod: Pod, number: int) -> None:
        self._shadow.place(pod, self._shadow.table.names[self._rows[number]])
        self._placed += 1
        self.estimate.launches[number][1].append(pod)

    def _grow(self, pod: Pod) -> bool:
        """Add a node in the zone with the fewest ones that can run the pod; False: no zone, or no more nodes."""
        accepts = self._options.choice(pod).accepts
        able = [one for one in self._members if accepts[one.number]]
        pool = self._members[0].pool
        able.sort(key=lambda one: (self._use.zones[pool.name, one.zone], one.zone))
        for option in able:
            if len(self._rows) >= MAX_NODES or not self._use.allows(pool, option.type):
                return False
            name = f"{NODE}{len(self._rows)}"
            objects = option.make_objects(name, is_shadow=True)
            self._shadow.put(objects)
            row = self._shadow.table.row_of[name]
            totals: Ints = self._shadow.totals(pod)
            if totals[row] >= 0:
                self._objects.append(objects)
                self._rows.append(row)
                self._use.add(pool, option.zone, option.type.capacity)
                self.estimate.launches.append((option, []))
                self._place(pod, len(self._rows) - 1)
                return True
            self._shadow.drop(objects)
        return False

    def close(self) -> None:
        """Take the pods off, and remove the nodes."""
        self._shadow.take_back(self._placed)
        for objects in self._objects:
            self._shadow.drop(objects)


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


class AlikeGroups:
    """Properties that distinguish the groups for some pods."""

    def __init__(self, settings: Settings, table: NodeTable, pods: Sequence[Pod]) -> None:
        specs = {pod.spec for pod in pods}
        self._is_clear = not any(
            spec.resource_claims or any(volume.is_relevant for volume in spec.volumes or ())
            for spec in specs
        )
        self._is_clear &= not reads_labels(settings)
        if table.carried:
            specs |= {pod.spec for on_node in table.pods for pod in on_node.values()}
        self._labels = sorted(labels_read(specs))

    def key(self, members: Sequence[LaunchOption]) -> Hashable:
        """Equal for groups that are alike."""
        if not self._is_clear or any(one.type.slices for one in members):
            return members[0].label
        return members[0].pool.name, tuple(map(self._option_key, members))

    def _option_key(self, option: LaunchOption) -> Hashable:
        kind = option.type
        labels = {INSTANCE_TYPE: kind.name, **kind.labels}
        return (
            option.zone,
            frozenset(kind.allocatable.items()),
            frozenset(option.daemons.items()),
            tuple(kind.capacity.get(name, 0) for name in option.pool.limits),
            kind.taints,
            tuple(labels.get(name) for name in self._labels),
        )


def labels_read(specs: Iterable[PodSpec]) -> set[str]:
    """The labels of nodes on which it depends where pods of these specs can run, and whom they keep away."""
    found: set[str] = set()
    for spec in specs:
        found.update(spec.node_selector or ())
        found.update(one.topology_key for one in spec.topology_spread_constraints or ())
        if spec.affinity is None:
            continue
        wishes = spec.affinity.node_affinity
        if wishes is not None and wishes.required is not None:
            for term in wishes.required.terms:
                found.update(one.key for one in term.expressions)
        for part in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if part is not None:
                found.update(one.topology_key for one in part.required)
    return found


def reads_labels(settings: Settings) -> bool:
    """Whether a scheduler may read labels of nodes that no pod names."""
    config = settings.effective_config
    for profile in config.profiles:
        for args in profile.plugin_config.values():
            if isinstance(args, NodeAffinityArgs) and args.added_affinity is not None:
                return True
            if isinstance(args, PodTopologySpreadArgs) and args.default_constraints:
                return True
    return bool(settings.plugins)
