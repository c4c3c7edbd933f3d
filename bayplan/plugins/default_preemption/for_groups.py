"""Victims for a pod group: the pods, and whole groups of pods, that must leave the cluster so that another group fits.

Mirrors pkg/scheduler/framework/preemption/podgrouppreemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...api.pod import Pod
from ...api.workloads import PodGroup
from ...framework import SUCCESS, GroupTrial, Lister, Status, TryGroup, unresolvable, unschedulable
from ...table.pod_matrix import start_of
from .budgets import Budgets

NEVER = "not eligible due to preemptionPolicy=Never."
NO_VICTIMS = "No preemption victims found for incoming preemptor"
WHOLE_GROUP = "PodGroup"
"""The disruptionMode of groups whose pods can only be preempted together."""


@dataclass(slots=True)
class VictimUnit:
    """What is preempted together: one pod, or all pods of a group."""

    priority: int
    start: int
    """When its first pod, in the order of nodes, was started."""
    pods: list[Pod] = field(default_factory=list)

    @property
    def importance(self) -> tuple[int, bool, int, int]:
        """The most important unit comes first: priority, members of groups, the larger group, the earlier start."""
        is_group = self.pods[0].spec.scheduling_group is not None
        return -self.priority, not is_group, -len(self.pods) if is_group else 0, self.start


def preempt_for_group(
    group: PodGroup,
    pods: Sequence[Pod],
    units: Iterable[VictimUnit],
    budgets: Budgets,
    trial: GroupTrial,
    try_group: TryGroup,
) -> tuple[list[Pod], Status]:
    """The fewest, least important pods to remove so that the group fits; or why removing pods does not help.

    All units of lower priority are removed; then as many as possible are put back, first those whose removal would
    break a disruption budget, and of each kind the most important first.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return [], unschedulable(NEVER)
    lower = [unit for unit in units if unit.priority < (group.spec.priority or 0)]
    if not lower:
        return [], unresolvable(NO_VICTIMS)
    for unit in lower:
        for pod in unit.pods:
            trial.remove(pod)
    status = try_group()
    if not status.is_success:
        return [], status
    lower.sort(key=lambda unit: unit.importance)
    violating, harmless = split_by_budgets(lower, budgets)
    left = []
    for unit in (*violating, *harmless):
        for pod in unit.pods:
            trial.restore(pod)
        if not try_group().is_success:
            for pod in unit.pods:
                trial.remove(pod)
            left.append(unit)
    left.sort(key=lambda unit: unit.importance)
    return [pod for unit in left for pod in unit.pods], SUCCESS


def victim_units(pods: Iterable[Pod], lister: Lister) -> list[VictimUnit]:
    """The units of all `pods`, which are on nodes, in the order of their first pod."""
    units: dict[tuple[str, str], VictimUnit] = {}
    for pod in pods:
        group = _whole_group_of(pod, lister)
        if group is None:
            units["", pod.uid] = VictimUnit(pod.priority, start_of(pod), [pod])
            continue
        unit = units.get((group.namespace, group.name))
        if unit is None:
            unit = VictimUnit(group.spec.priority or 0, start_of(pod))
            units[group.namespace, group.name] = unit
        unit.pods.append(pod)
    return list(units.values())


def _whole_group_of(pod: Pod, lister: Lister) -> PodGroup | None:
    """The group of the pod, if it can only be preempted as a whole."""
    reference = pod.spec.scheduling_group
    if reference is None:
        return None
    group = lister.get("PodGroup", pod.namespace, reference.pod_group_name or "")
    if not isinstance(group, PodGroup) or group.spec.disruption_mode != WHOLE_GROUP:
        return None
    return group


def split_by_budgets(
    units: Sequence[VictimUnit], budgets: Budgets
) -> tuple[list[VictimUnit], list[VictimUnit]]:
    """Units whose removal, one after the other, would exceed some budget, and the others.

    The first pod of a unit that exceeds one, and the first budget that it exceeds, end the look at the unit: what
    comes after them is not used up.
    """
    if not budgets.listed:
        return [], list(units)
    allowed: dict[int, int] = {}
    violating: list[VictimUnit] = []
    harmless: list[VictimUnit] = []
    for unit in units:
        exceeds = any(_exceeds(pod, budgets, allowed) for pod in unit.pods)
        (violating if exceeds else harmless).append(unit)
    return violating, harmless


def _exceeds(pod: Pod, budgets: Budgets, allowed: dict[int, int]) -> bool:
    for budget in budgets.of(pod):
        if pod.name not in budget.disrupted_pods:
            left = allowed.get(id(budget), budget.status.disruptions_allowed) - 1
            allowed[id(budget)] = left
            if left < 0:
                return True
    return False
