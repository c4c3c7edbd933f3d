"""PodTopologySpread for a class of pods, as rules on counts of pods per domain.

`filter_rows`, `pre_score`, `score_rows` and `normalize` of the plugin give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import msgspec

from ...amounts.domain_rules import CountedPods, MaxSkew, Spreading, SpreadPart
from ...api.node import HOSTNAME
from ...api.pod import DO_NOT_SCHEDULE, Pod, PodClass, PodSpec
from ...stamped_cache import StampedCache
from ...table import Bools, DomainCounts, LabelColumn, NodeTable
from .constraints import Constraint
from .eligibility import Domains, EligibilityCache, depends_on_labels


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
    """Key of the node facts on which the rules of both plans depend (`DomainRules.nodes_key`); None if they depend on
    other facts.

    The facts are whether all nodes have the topology keys, and the present domains. Host names are left out if pods are
    counted per node, so that nodes may be added and removed.
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
    """Whether there are `minDomains` domains; otherwise the smallest count is taken as 0."""
    return domains.number >= constraint.min_domains


def is_per_node(label: LabelColumn, table: NodeTable) -> bool:
    """Whether every node is a domain of its own."""
    return label.key == HOSTNAME or (label.is_unique and label.labelled == table.node_count)


class SpreadPlan(msgspec.Struct):
    """The constraints with one `whenUnsatisfiable`, with the domains and the counts of each."""

    constraints: tuple[Constraint, ...] = ()
    domains: tuple[Domains, ...] = ()
    counts: tuple[DomainCounts, ...] = ()
    has_all_keys: Bools | None = None
    """bool per row: the node has every topology key; None when all nodes do."""
    require_all: bool = True
    """Whether only nodes with every topology key count."""
    version: int = -1
    """Version of the log of node changes for which domains and keys are valid."""


NO_PLAN = SpreadPlan()


@dataclass(slots=True, eq=False)
class SpreadPlans:
    """Plans by class, invalidated when the terms that are counted change; domains are found again when a node changed.

    Default constraints, for pods without any, also depend on the lister.
    """

    eligibility: EligibilityCache
    constraints_of: Callable[[Pod, str], tuple[Constraint, ...]]
    requires_all: Callable[[Pod], bool]
    lister_version: Callable[[], Hashable]
    _plans: StampedCache[tuple[PodClass, str, str, Hashable], SpreadPlan] = field(
        default_factory=lambda: StampedCache("spread plans"), init=False
    )

    def get(self, pod: Pod, table: NodeTable, action: str) -> SpreadPlan:
        """The plan for `pod`; one without constraints when it has none of that kind. InputError if unusable."""
        is_own = pod.spec.topology_spread_constraints
        # Pods of a class may be pinned to nodes, and then only those nodes count.
        key = (pod.pod_class, pod.spec.pin, action, None if is_own else self.lister_version())
        plan = self._plans.get(key, (table, table.terms.dropped))
        if plan is None:
            constraints = self.constraints_of(pod, action)
            counts = tuple([table.terms.count(constraint.pods) for constraint in constraints])
            plan = SpreadPlan(constraints, (), counts) if constraints else NO_PLAN
            self._plans.put(key, plan)
        if plan is not NO_PLAN and plan.version != table.node_changes.version:
            plan = self._plans.put(key, self._with_domains(plan, pod, table, action))
        return plan

    def _with_domains(
        self, plan: SpreadPlan, pod: Pod, table: NodeTable, action: str
    ) -> SpreadPlan:
        require_all = action == DO_NOT_SCHEDULE or self.requires_all(pod)
        found = self.eligibility.get(table, pod.spec, plan.constraints, require_all)
        return SpreadPlan(
            plan.constraints,
            found.domains,
            plan.counts,
            found.has_all_keys,
            require_all,
            table.node_changes.version,
        )
