"""PodTopologySpread for a class of pods, as rules on counts of pods per domain.

`filter_rows`, `pre_score`, `score_rows` and `normalize` of the plugin do the same one node at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ...amounts.domain_rules import CountedPods, MaxSkew, Spreading, SpreadPart
from ...api.node import HOSTNAME
from ...api.pod import Pod, PodSpec
from ...table import LabelColumn, NodeTable
from .constraints import Constraint
from .eligibility import Domains, depends_on_labels
from .spread_plans import SpreadPlan


def limits_of(plan: SpreadPlan, pod: Pod) -> tuple[MaxSkew, ...]:
    """Limit on the difference between domains, by each DoNotSchedule constraint."""
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


def nodes_key_of(
    hard: SpreadPlan, soft: SpreadPlan, spec: PodSpec, table: NodeTable
) -> Callable[[], Hashable] | None:
    """Key of the node facts on which the rules of both plans depend (`DomainRules.nodes_key`); None means on more
    than is followed.

    That is whether all nodes have the topology keys, and the domains that there are. Host names are left out where the
    pods of each node count: nodes may come and go.
    """
    for plan in (hard, soft):
        is_complete = plan.has_all_keys is None or len(plan.constraints) == 1
        if plan.require_all and plan.constraints and not is_complete:
            return None
        for constraint, domains in zip(plan.constraints, plan.domains, strict=True):
            if not domains.is_whole or not depends_on_labels(constraint, spec):
                return None
    limiting = [domains.label for domains in hard.domains]
    scoring = [domains.label for domains in soft.domains if domains.label.key != HOSTNAME]
    hosts = [domains.label for domains in soft.domains if domains.label.key == HOSTNAME]

    def nodes_key() -> Hashable:
        nodes = table.node_count
        return (
            tuple([(label.shape(nodes), label.domains_version) for label in limiting]),
            tuple([label.shape(nodes) for label in scoring]),
            tuple([(label.shape(nodes)[1:], label.code_of("")) for label in hosts]),
        )

    return nodes_key


def is_enough(constraint: Constraint, domains: Domains) -> bool:
    """Whether there are as many domains as the constraint requires; otherwise the emptiest counts as empty."""
    return domains.number >= constraint.min_domains


def is_per_node(label: LabelColumn, table: NodeTable) -> bool:
    """Whether every node is a domain of its own."""
    return label.key == HOSTNAME or (label.is_unique and label.labelled == table.node_count)
