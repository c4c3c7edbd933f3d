"""Constraints, domains and counts for a kind of pod: constraints, the domains that count, and the counts of matching
pods.

None of it changes from pod to pod, so it is put together once per class of pods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import msgspec

from ...api.pod import DO_NOT_SCHEDULE, Pod, PodClass
from ...stamped_cache import StampedCache
from ...table import Bools, DomainCounts, NodeTable
from .constraints import Constraint
from .eligibility import Domains, EligibilityCache


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
    """That of the log of node changes, for which domains and keys are right."""


NO_PLAN = SpreadPlan()


class SpreadPlans:
    """Plans by class, invalidated when the terms that are counted change; domains are found again when a node changed.

    Default constraints, for pods without any, also depend on the lister.
    """

    def __init__(
        self,
        eligibility: EligibilityCache,
        constraints_of: Callable[[Pod, str], tuple[Constraint, ...]],
        requires_all: Callable[[Pod], bool],
        lister_version: Callable[[], Hashable],
    ) -> None:
        self._eligibility = eligibility
        self._constraints_of = constraints_of
        self._requires_all = requires_all
        self._lister_version = lister_version
        self._plans: StampedCache[tuple[PodClass, str, str, Hashable], SpreadPlan] = StampedCache(
            "spread plans"
        )

    def get(self, pod: Pod, table: NodeTable, action: str) -> SpreadPlan:
        """The plan for `pod`; one without constraints when it has none of that kind. InputError if unusable."""
        is_own = pod.spec.topology_spread_constraints
        # Pods of a class may be pinned to nodes, and then only those nodes count.
        key = (pod.pod_class, pod.spec.pin, action, None if is_own else self._lister_version())
        plan = self._plans.get(key, (table, table.terms.dropped))
        if plan is None:
            constraints = self._constraints_of(pod, action)
            counts = tuple([table.terms.count(constraint.pods) for constraint in constraints])
            plan = SpreadPlan(constraints, (), counts) if constraints else NO_PLAN
            self._plans.put(key, plan)
        if plan is not NO_PLAN and plan.version != table.node_changes.version:
            plan = self._plans.put(key, self._with_domains(plan, pod, table, action))
        return plan

    def _with_domains(
        self, plan: SpreadPlan, pod: Pod, table: NodeTable, action: str
    ) -> SpreadPlan:
        require_all = action == DO_NOT_SCHEDULE or self._requires_all(pod)
        found = self._eligibility.get(table, pod.spec, plan.constraints, require_all)
        return SpreadPlan(
            plan.constraints,
            found.domains,
            plan.counts,
            found.has_all_keys,
            require_all,
            table.node_changes.version,
        )
