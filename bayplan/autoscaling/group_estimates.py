"""Group estimates: new nodes as Cluster Autoscaler plans them, all of one group at a time.

Facts from cluster-autoscaler 1.36 (core/podlistprocessor, estimator, processors/nodegroupset): pods that fit on nodes
that exist or boot are left out; each search for a node begins after the one that was found last. For each group it is
estimated how many nodes the pods need that a first new node of it would take, by packing them, the largest first, on
as many nodes as limits and maxima allow. An expander chooses one group, which grows by that number, together with
similar groups if they are to be balanced; other pods wait for the next scan. A group is here a type of a pool, and a
new node is put in the zone that has the fewest nodes of its pool, as providers balance zones. The shadow decides which
node can run a pod.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..api.node import HOSTNAME, ZONE
from ..api.pod import Pod
from ..api.pod_spec import PodSpec
from ..api.resources import MEMORY, PODS
from ..config.plugin_args import NodeAffinityArgs, PodTopologySpreadArgs
from ..planning.node_groups import GROUP_LABELS
from ..planning.node_types import INSTANCE_TYPE, POOL_LABEL, NodeType
from ..sim.settings import Settings
from ..table import NodeTable
from ..trials import TrialCluster
from .amount_packer import AmountPacking, amount_packing, classes_of
from .autoscaler_settings import AutoscalerOptions
from .cluster_autoscaler_flags import ClusterAutoscalerFlags
from .expanders import ExpanderChain, GroupEstimate
from .group_packing import GroupPacking, settle_rows, takes_some
from .launch_options import ChoiceKey, LaunchOption, LaunchOptions, LaunchPlan, choice_key
from .pool_nodes import PoolNodes, next_of

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
"""Labels in which similar groups may differ."""


@dataclass(frozen=True, slots=True)
class _Growth:
    """A group that may grow."""

    members: list[LaunchOption]
    """The options of the group, which differ in the zone."""
    able: set[ChoiceKey]
    """The classes of pods that a first new node takes."""

    @property
    def label(self) -> str:
        return self.members[0].label


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
        self._growing: list[_Growth] = []
        """The groups that were estimated last."""

    def plan(self, pods: list[Pod]) -> LaunchPlan:
        """Leave out the pods that fit on existing nodes, and choose a group for the others."""
        found = LaunchPlan()
        with self._shadow.trial():
            left = self._without_fitting(pods, found)
            estimates = [one for one in self._estimates(left) if one.launches]
        if estimates:
            chosen = self._expanders.choose(
                estimates, self._node_count() - len(self._nodes.booting)
            )
            found.launches = chosen.launches
            if self._flags.balance_similar_node_groups:
                found.launches = self._balanced(found.launches)
            served = {pod.uid for _, planned in found.launches for pod in planned}
            left = [pod for pod in left if pod.uid not in served]
        found.left = left
        return found

    def _without_fitting(self, pods: list[Pod], plan: LaunchPlan) -> list[Pod]:
        """Put pods on the existing nodes, higher priorities first; returns the others."""
        left: list[Pod] = []
        full: set[ChoiceKey] = set()
        for pod in sorted(pods, key=lambda pod: -pod.priority):
            if choice_key(pod) not in full:
                rows = np.flatnonzero(self._shadow.totals(pod) >= 0)
                if len(rows):
                    self._last_row = row = next_of(rows, self._last_row)
                    name = self._shadow.table.names[row]
                    self._shadow.place(pod, name)
                    plan.existing[pod.uid] = name
                    continue
                full.add(choice_key(pod))
            left.append(pod)
        return left

    def _estimates(self, pods: list[Pod]) -> list[GroupEstimate]:
        """Estimates of all groups that may grow; of groups that are alike one is packed."""
        most = self._most_nodes(len(pods))
        if not pods or most <= 0:
            return []
        quick = amount_packing(self._options, self._shadow, self._settings, pods)
        alike = AlikeGroups(self._settings, self._shadow.table, pods)
        growths = self._growths(pods, quick, alike)
        packed: dict[Hashable, tuple[list[LaunchOption], GroupEstimate]] = {}
        found: list[GroupEstimate] = []
        for one in growths:
            room = min([most, *self._rooms(one, growths)])
            key = alike.key(one.members), room
            if key not in packed:
                packed[key] = one.members, self._estimate(one, room, pods, quick)
            first, estimate = packed[key]
            found.append(estimate if first is one.members else estimate.of(first, one.members))
        had = [] if quick is not None else [one.tried for _, one in packed.values()]
        settle_rows(self._shadow, had, [one.tried for one in found])
        self._growing = growths
        return found

    def _growths(
        self, pods: list[Pod], quick: AmountPacking | None, alike: AlikeGroups
    ) -> list[_Growth]:
        """The groups that have room for a node, with the classes of pods that such a node takes."""
        groups: dict[str, list[LaunchOption]] = {}
        for option in self._options.all:
            if self._use.allows(option.pool, option.type):
                groups.setdefault(option.label, []).append(option)
        classes = classes_of(pods)
        known: dict[Hashable, set[ChoiceKey]] = {}
        found = []
        for members in groups.values():
            key = alike.key(members)
            if key not in known:
                known[key] = (
                    takes_some(members, self._options, self._shadow, classes)
                    if quick is None
                    else quick.taken_by(members)
                )
            found.append(_Growth(members, known[key]))
        return found

    def _estimate(
        self, growth: _Growth, most: int, pods: list[Pod], quick: AmountPacking | None
    ) -> GroupEstimate:
        """Pack the pods on up to `most` new nodes of a group, whose options differ in the zone."""
        members, use = growth.members, self._use.copy()
        use.without_maximum = True  # it is in `most`, with those of similar groups
        if quick is not None:
            return GroupEstimate(quick.pack(members, use, most))
        packing = GroupPacking(self._options, self._shadow, use, members, most)
        return packing.estimate([pod for pod in pods if choice_key(pod) in growth.able])

    def _most_nodes(self, pods: int) -> int:
        """Limit on the nodes that are launched at once for so many pods."""
        most, total = self._flags.max_nodes_per_scaleup, self._flags.max_nodes_total
        bounds = [2 * pods]  # some nodes that are tried may stay empty
        bounds += [most] if most else []
        bounds += [total - self._node_count()] if total else []
        return min(bounds)

    def _node_count(self) -> int:
        """Number of nodes, those that boot included."""
        return len(self._shadow.node_names())

    def _rooms(self, growth: _Growth, growths: list[_Growth]) -> list[int]:
        """Number of nodes that the group may add, with the similar ones among which they are divided; none if any."""
        groups = [growth]
        if self._flags.balance_similar_node_groups:
            groups = self._similar(growth, growths)
        pools = {one.members[0].pool.name: one.members[0].pool for one in groups}
        rooms = [self._use.room(pool) for pool in pools.values()]
        known = [room for room in rooms if room is not None]
        return [sum(known)] if len(known) == len(rooms) else []

    def _similar(self, growth: _Growth, growths: list[_Growth]) -> list[_Growth]:
        """The group, and each that is similar and takes the same pods."""
        first = growth.members[0]
        return [
            one
            for one in growths
            if growth.able <= one.able and is_similar(first, one.members[0], self._flags)
        ]

    def _balanced(
        self, launches: list[tuple[LaunchOption, list[Pod]]]
    ) -> list[tuple[LaunchOption, list[Pod]]]:
        """Divide new nodes between the group and similar ones that take its pods, the smallest first."""
        label = launches[0][0].label
        growth = next(one for one in self._growing if one.label == label)
        others = [one for one in self._similar(growth, self._growing) if one is not growth]
        groups = [one.members for one in (growth, *others)]
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
        daemons = [0 if name == PODS else each.daemons.get(name, 0) for each in (one, other)]
        free = mine - daemons[0], others - daemons[1]
        if not _is_near(mine, others, flags.max_allocatable_difference_ratio):
            return False
        if not _is_near(*free, flags.max_free_difference_ratio):
            return False
    return _kept_labels(a) == _kept_labels(b)


def _is_near(one: int, other: int, ratio: float) -> bool:
    return abs(one - other) <= max(one, other) * ratio


def _kept_labels(kind: NodeType) -> dict[str, str]:
    labels = {INSTANCE_TYPE: kind.name, **kind.labels}
    return {key: value for key, value in labels.items() if key not in IGNORED_LABELS}


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
    """The labels of nodes that decide where pods of these specs can run, and which pods they exclude."""
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
