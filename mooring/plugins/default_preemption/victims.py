"""Victims: the pods that must leave one node so that another pod fits.

Mirrors SelectVictimsOnNode and filterPodsWithPDBViolation of
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...api.pod import Pod
from ...api.workloads import PodDisruptionBudget
from ...framework import CycleState, FilterRunner, Status, Victims, failure
from ...table import NodeTable
from ...table.what_if import WhatIf

NOT_STARTED = "9999-12-31T23:59:59Z"  # a pod that has not started counts as starting now


def select_victims(
    filters: FilterRunner,
    state: CycleState,
    pod: Pod,
    table: NodeTable,
    row: int,
    budgets: Sequence[PodDisruptionBudget],
) -> Victims | Status:
    """The fewest, least important pods to remove from `row`; or why removing pods does not help.

    All pods of lower priority are removed; then as many as possible are put back, first those whose removal would
    break a disruption budget, and of each kind the most important first. `state` is changed.
    """
    what_if = WhatIf(table, row)
    lower = [other for other in what_if.node.pods if other.priority < pod.priority]
    for victim in lower:
        filters.remove_pod(state, pod, victim, what_if)
    status = filters.filter_with_nominated(state, pod, what_if.node)
    if not status.is_success:
        return status
    lower.sort(key=importance)
    violating, harmless = split_by_budget(lower, budgets)
    victims: list[Pod] = []
    violations = 0
    for candidate in (*violating, *harmless):
        filters.add_pod(state, pod, candidate, what_if)
        if not filters.filter_with_nominated(state, pod, what_if.node).is_success:
            filters.remove_pod(state, pod, candidate, what_if)
            victims.append(candidate)
            violations += candidate in violating
    if not victims:
        return failure(f'expected at least one victim pod on node "{table.names[row]}"')
    victims.sort(key=importance)
    return Victims(table.names[row], victims, violations)


def importance(pod: Pod) -> tuple[int, str]:
    """Sorts the most important pod first: higher priority, then started earlier."""
    return -pod.priority, pod.status.start_time or NOT_STARTED


def split_by_budget(
    pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[Pod], list[Pod]]:
    """Pods whose removal, one after the other, would exceed some disruption budget, and the others."""
    allowed = {id(budget): budget.status.disruptions_allowed for budget in budgets}
    violating: list[Pod] = []
    harmless: list[Pod] = []
    for pod in pods:
        exceeded = False
        for budget in budgets:
            if _protects(budget, pod):
                allowed[id(budget)] -= 1
                exceeded = exceeded or allowed[id(budget)] < 0
        (violating if exceeded else harmless).append(pod)
    return violating, harmless


def _protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.spec.selector
    return (
        budget.namespace == pod.namespace
        and bool(pod.labels)
        and selector is not None
        and not selector.is_empty
        and pod.name not in budget.disrupted_pods
        and selector.matches(pod.labels)
    )
