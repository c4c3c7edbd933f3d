"""Group measures: the measures of pod groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median

import numpy as np

from ...api.pod_groups import pod_group_of
from ..group_outcomes import GroupOutcome
from ..outcomes import NodeUse
from .amounts import NodeAmounts
from .fragmentation import room_for, typical_request
from .run_record import RunRecord


def measure_groups(report: RunRecord) -> dict[str, float]:
    """How many groups started, after which time, and how fragmented the domains are."""
    groups = report.groups
    members = [r.pod for r in report.pods if pod_group_of(r.pod) is not None]
    typical = typical_request(members, tuple({name for pod in members for name in pod.requests}))
    started = sum(group.has_started for group in groups)
    waits = [g.started_s - g.created_s for g in groups if g.started_s is not None]
    return {
        "podGroupsStarted": started,
        "podGroupsWaiting": len(groups) - started,
        "podGroupMeanLatency": fmean(waits) if waits else 0.0,
        "podGroupMaxLatency": max(waits, default=0.0),
        "domainFragmentation": domain_fragmentation(report.nodes, groups, typical),
    }


def domain_fragmentation(
    nodes: Sequence[NodeUse], groups: Sequence[GroupOutcome], typical: Mapping[str, int]
) -> float:
    """Share of the typical gangs that the free resources could hold, but that no domain can; 0 to 1.

    A gang has the median size of the groups with a topology constraint, and the domains are those of the label that
    most of them name. Without such groups it is 0.
    """
    bound = [group for group in groups if group.topology_key]
    if not bound:
        return 0.0
    size = max(int(median(max(group.min_count, group.members) for group in bound)), 1)
    key = Counter(group.topology_key for group in bound).most_common(1)[0][0]
    fits = room_for(NodeAmounts.of_uses(nodes), typical)
    domains: Counter[str] = Counter()
    left = (use.node.labels.get(key) for use in nodes if use.removed_s is None)
    for domain, count in zip(left, np.asarray(fits).tolist(), strict=True):
        if domain is not None:
            domains[domain] += count
    together = domains.total() // size
    return 1 - sum(count // size for count in domains.values()) / together if together else 0.0
