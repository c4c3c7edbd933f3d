"""The plugins that place pod groups: which sets of nodes are tried, and which of them is best.

Mirrors pkg/scheduler/framework/plugins/{topologyaware/topology_placement,podgrouppodscount/podgroup_pods_count}.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..api.pod import Pod
from ..api.workloads import PodGroup
from ..framework import (
    MAX_SCORE,
    CycleState,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupAssignments,
    PodGroupInfo,
    Status,
    failure,
)
from ..table import ABSENT, Ints, NodeTable

DOMAIN_UNKNOWN = "cannot determine domain for already scheduled pods: "


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    """One placement per value of the label in the topology constraint of the group; all nodes if it has none."""

    name = "TopologyPlacementGenerator"

    def generate_placements(
        self, state: CycleState, group: PodGroupInfo, parent: Placement
    ) -> Sequence[Placement] | Status:
        found = self.handle.lister.get("PodGroup", group.namespace, group.name)
        if not isinstance(found, PodGroup):
            return failure(f'podgroup.scheduling.k8s.io "{group.name}" not found')
        if not found.topology_keys:
            return (parent,)
        key, table = found.topology_keys[0], self.handle.table
        domain = self._domain_of_scheduled(group, key, table)
        if isinstance(domain, Status):
            return domain
        label = table.labels.column(key)
        codes = table.labels.codes(key)[parent.rows]
        placements = []
        for code in np.unique(codes[codes != ABSENT]).tolist():
            name = label.values[code]
            if domain is None or name == domain:
                placements.append(Placement(name, parent.rows[codes == code]))
        return placements

    def _domain_of_scheduled(
        self, group: PodGroupInfo, key: str, table: NodeTable
    ) -> str | Status | None:
        """The domain that members have nodes in already; None: no member has a node, a Status: it is not one."""
        members = self.handle.pod_groups.members(("PodGroup", group.namespace, group.name))
        domain: str | None = None
        for pod in sorted((pod for pod in members if pod.node_name), key=_by_name):
            row = table.row_of.get(pod.node_name)
            node = None if row is None else table.nodes[row]
            if node is None:
                text = f'getting node for pod {pod.key}: nodeinfo not found for node name "{pod.node_name}"'
                return failure(DOMAIN_UNKNOWN + text)
            found = node.labels.get(key)
            if found is None:
                return failure(f"{DOMAIN_UNKNOWN}no topology domain found for pod {pod.key}")
            if domain and found != domain:
                text = f"more than 1 domain found for pod group: {domain}, {found}"
                return failure(DOMAIN_UNKNOWN + text)
            domain = found
        return domain


def _by_name(pod: Pod) -> str:
    return pod.name


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
