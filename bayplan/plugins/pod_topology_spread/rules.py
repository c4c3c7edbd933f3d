"""What PodTopologySpread does for a class of pods, as rules on counts of pods per domain.

`filter_rows`, `pre_score`, `score_rows` and `normalize` of the plugin say the same one node at a time.
"""

from __future__ import annotations

from ...amounts.domain_rules import CountedPods, MaxSkew, Spreading, SpreadPart
from ...api.node import HOSTNAME
from ...api.pod import Pod
from ...table import LabelColumn, NodeTable
from .constraints import Constraint
from .eligibility import Domains
from .plans import SpreadPlan


def limits_of(plan: SpreadPlan, pod: Pod) -> tuple[MaxSkew, ...]:
    """How far apart domains may be, by each DoNotSchedule constraint."""
    return tuple(
        MaxSkew(
            domains.counted(counts),
            constraint.max_skew - constraint.selects(pod),
            domains.present if is_enough(constraint, domains) else None,
            plan.has_all_keys is not None,
        )
        for constraint, domains, counts in zip(
            plan.constraints, plan.domains, plan.counts, strict=True
        )
    )


def score_of(plan: SpreadPlan, table: NodeTable) -> Spreading | None:
    """The score by ScheduleAnyway constraints; None when there are none."""
    if not plan.constraints:
        return None
    parts = []
    for constraint, domains, counts in zip(
        plan.constraints, plan.domains, plan.counts, strict=True
    ):
        by_row = constraint.topology_key == HOSTNAME
        pods = CountedPods(domains.label, counts) if by_row else domains.counted(counts)
        parts.append(
            SpreadPart(pods, constraint.max_skew, by_row, is_per_node(domains.label, table))
        )
    return Spreading(tuple(parts), plan.has_all_keys is not None, plan.require_all)


def is_enough(constraint: Constraint, domains: Domains) -> bool:
    """Whether there are as many domains as the constraint asks for; otherwise the emptiest counts as empty."""
    return domains.number >= constraint.min_domains


def is_per_node(label: LabelColumn, table: NodeTable) -> bool:
    """Whether every node is a domain of its own."""
    return label.key == HOSTNAME or (label.is_unique and label.labelled == table.node_count)
