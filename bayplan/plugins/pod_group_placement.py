"""The plugins that place pod groups: which sets of nodes are tried, and which of them is best.

Mirrors pkg/scheduler/framework/plugins/{topologyaware/topology_placement,podgrouppodscount/podgroup_pods_count}.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from ..api.pod_groups import PREFERRED_TOPOLOGY, PodGroup
from ..framework import (
    MAX_SCORE,
    CycleState,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Status,
    failure,
    unschedulable,
)
from ..framework.placement import Placement, PodGroupAssignments, PodGroupInfo, placed_by_name
from ..table import ABSENT, Ints

DOMAIN_UNKNOWN = "cannot determine domain for already scheduled pods: "


class PlacementArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of TopologyPlacementGenerator, which kube-scheduler does not have."""

    levels: tuple[str, ...] = ()
    """Labels of nodes that nest, from the smallest domain to the largest."""

    def __post_init__(self) -> None:
        if "" in self.levels or len(set(self.levels)) < len(self.levels):
            raise ValueError(f"levels: expected different labels; got {list(self.levels)}")


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    """One placement per value of the label in the topology constraint of the group; all nodes if it has none.

    With levels, the smallest domain that fits is taken: the domains of each level up to the one of the constraint are a
    tier of their own.
    """

    name = "TopologyPlacementGenerator"

    args_type = PlacementArgs

    def __init__(self, args: PlacementArgs | None = None) -> None:
        self._levels = () if args is None else args.levels

    def generate_placements(
        self, state: CycleState, group: PodGroupInfo, parent: Placement
    ) -> Sequence[Placement] | Status:
        found = self.handle.lister.get("PodGroup", group.namespace, group.name)
        if not isinstance(found, PodGroup):
            return failure(f'podgroup.scheduling.k8s.io "{group.name}" not found')
        wanted = levels_for(found, self._levels)
        if isinstance(wanted, Status):
            return wanted
        placements: list[Placement] = []
        for tier, keys in enumerate(wanted):
            domain = self._domain_of_scheduled(group, keys)
            if not isinstance(domain, Status):
                placements += self._domains(parent, keys, domain, tier)
            elif found.topology_keys and tier == len(wanted) - 1:
                return domain
        if not found.topology_keys:  # without a constraint, all nodes are the last placement
            placements.append(replace(parent, tier=len(wanted)))
        return placements

    def _domains(
        self, parent: Placement, keys: Sequence[str], domain: str | None, tier: int
    ) -> Iterator[Placement]:
        """The domains of a level, that is, nodes with equal values of all `keys`; only `domain` unless it is None."""
        table = self.handle.table
        has_all = np.ones(len(parent.rows), dtype=np.bool_)
        numbers = np.zeros(len(parent.rows), dtype=np.int64)
        for key in keys:
            codes = table.labels.codes(key)[parent.rows]
            has_all &= codes != ABSENT
            numbers = numbers * len(table.labels.column(key).values) + codes
        rows, numbers = parent.rows[has_all], numbers[has_all]
        if not len(rows):
            return
        order = np.argsort(numbers, kind="stable")  # rows stay in ascending order
        starts = np.flatnonzero(np.diff(numbers[order])) + 1
        for within in np.split(rows[order], starts):
            node = table.nodes[within[0]]
            assert node is not None, "rows of a placement have nodes"
            name = _path([node.labels[key] for key in keys])
            if domain is None or name == domain:
                yield Placement(name, within, tier)

    def _domain_of_scheduled(self, group: PodGroupInfo, keys: Sequence[str]) -> str | Status | None:
        """The domain of the members' nodes; None if no member has a node, a Status if they do not have one domain."""
        table = self.handle.table
        members = self.handle.pod_groups.members(("PodGroup", group.namespace, group.name))
        domain: str | None = None
        for pod in placed_by_name(members):
            row = table.row_of.get(pod.node_name)
            node = None if row is None else table.nodes[row]
            if node is None:
                text = f'getting node for pod {pod.key}: nodeinfo not found for node name "{pod.node_name}"'
                return failure(DOMAIN_UNKNOWN + text)
            if any(key not in node.labels for key in keys):
                return failure(f"{DOMAIN_UNKNOWN}no topology domain found for pod {pod.key}")
            found = _path([node.labels[key] for key in keys])
            if domain and found != domain:
                text = f"more than 1 domain found for pod group: {domain}, {found}"
                return failure(DOMAIN_UNKNOWN + text)
            domain = found
        return domain


def levels_for(group: PodGroup, levels: Sequence[str]) -> Sequence[Sequence[str]] | Status:
    """The levels on which the group is placed, the smallest first, each with the labels that distinguish its domains.

    The constraint of the group is the largest level, its annotation the smallest. Below the top a domain is identified
    by the levels above it, too: racks of two blocks may have equal names.
    """
    required, preferred = group.topology_keys[:1], group.annotations.get(PREFERRED_TOPOLOGY)
    if not levels or (required and required[0] not in levels):
        levels = required
    if preferred is not None and preferred not in levels:
        text = f"expected one of {', '.join(levels) or 'the levels of the profile, which has none'}"
        return unschedulable(
            f'pod group {group.key}: annotation {PREFERRED_TOPOLOGY}: {text}; got "{preferred}"'
        )
    if not required and preferred is None:
        return ()
    first = levels.index(preferred) if preferred is not None else 0
    last = levels.index(required[0]) if required else len(levels) - 1
    if first > last:
        text = f"expected {levels[last]}, the topology constraint, or a level below it"
        return unschedulable(
            f'pod group {group.key}: annotation {PREFERRED_TOPOLOGY}: {text}; got "{preferred}"'
        )
    return [levels[position:] for position in range(first, last + 1)]


def _path(values: Sequence[str]) -> str:
    """The name of a domain: the values from the largest level to its own."""
    return "/".join(reversed(values))


class PodGroupPodsCount(PlacementScorePlugin):
    """Prefers the placements that hold the most members."""

    name = "PodGroupPodsCount"

    def score_placement(
        self, state: CycleState, group: PodGroupInfo, assigned: PodGroupAssignments
    ) -> int:
        key = ("PodGroup", group.namespace, group.name)
        return self.handle.pod_groups.placed_count(key) + len(assigned.pods)

    def normalize_placement_scores(self, scores: Ints) -> Ints:
        most = scores.max()
        if most == 0:
            raise ValueError(
                "no pods from pod group are assigned to any of the candidate placements"
            )
        normalized: Ints = scores * MAX_SCORE // most
        return normalized
