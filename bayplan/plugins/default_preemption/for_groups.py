"""Victims for a pod group: the pods, and whole groups of pods, that must leave the cluster so that another group fits.

Mirrors pkg/scheduler/framework/preemption/podgrouppreemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from ...amounts import POD_COUNT, free_amounts
from ...api.pod import Pod
from ...api.pod_groups import PodGroup
from ...framework import SUCCESS, Status, unresolvable, unschedulable
from ...framework.lister import Lister, group_of
from ...framework.placement import GroupRoom, GroupTrial, TryGroup
from ...table import NodeTable
from ...table.pod_matrix import NOT_STARTED, start_of
from .disruption_budgets import Budgets

NEVER = "not eligible due to preemptionPolicy=Never."
NO_VICTIMS = "No preemption victims found for incoming preemptor"
FAR = 2**62


class VictimUnit(msgspec.Struct):
    """Pods that are preempted together: one pod, or all pods of a group."""

    priority: int
    start: int
    """Time when its first pod, in the order of nodes, was started."""
    number: int
    """Position among all units."""
    pods: list[Pod] = msgspec.field(default_factory=list)
    group: tuple[str, str] | None = None
    """Namespace and name of the group; None for a single pod."""

    @property
    def importance(self) -> tuple[int, bool, int, int, int]:
        """The most important unit comes first: priority, members of groups, the larger group, the earlier start.

        For a unit that has not started, kube-scheduler takes the time of the comparison. It orders other equal units at
        random.
        """
        is_group = self.pods[0].spec.scheduling_group is not None
        number = self.number if self.start == NOT_STARTED else 0
        return -self.priority, not is_group, -len(self.pods) if is_group else 0, self.start, number

    @property
    def rank(self) -> tuple[int, bool, int, int, int]:
        """The most important unit comes first, as in v1.37; among equal units the one with the earliest first pod."""
        is_group = self.pods[0].spec.scheduling_group is not None
        start = min(map(start_of, self.pods))
        return -self.priority, not is_group, -len(self.pods), start, self.number


def preempt_for_group(
    group: PodGroup,
    pods: Sequence[Pod],
    units: Iterable[VictimUnit],
    budgets: Budgets,
    table: NodeTable,
    trial: GroupTrial,
    try_group: TryGroup,
) -> tuple[list[Pod], Status]:
    """The fewest, least important pods to remove so that the group fits; or the reason why removing pods does not help.

    All units of lower priority are removed; then as many as possible are put back, first those whose removal would
    break a disruption budget, and of each kind the most important first.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return [], unschedulable(NEVER)
    lower = [unit for unit in units if unit.priority < (group.spec.priority or 0)]
    if not lower:
        return [], unresolvable(NO_VICTIMS)
    lower.sort(key=lambda unit: unit.importance)
    room = try_group.room()
    trying: Reprieve
    if room is not None:
        trying = ByRoom(room, table)
        if not trying.remove_all(lower):
            room = None  # only a trial finds the reason
    if room is None:
        trying = ByTrying(trial, try_group)
        if not trying.remove_all(lower):
            return [], trying.status
    violating, harmless = split_by_budgets(lower, budgets)
    left = [unit for unit in (*violating, *harmless) if not trying.spares(unit)]
    left.sort(key=lambda unit: unit.importance)
    return [pod for unit in left for pod in unit.pods], SUCCESS


def preempt_once_for_group(
    group: PodGroup,
    units: Iterable[VictimUnit],
    budgets: Budgets,
    trial: GroupTrial,
    try_group: TryGroup,
) -> tuple[list[VictimUnit], int, Status]:
    """The units to remove, from one attempt of the group without any unit. A unit is put back if the members keep their
    nodes.

    Also the number of victims whose budgets are exceeded. Mirrors selectVictimsOnDomain of v1.37.
    """
    lower = [unit for unit in units if unit.priority < (group.spec.priority or 0)]
    if not lower:
        return [], 0, unresolvable(NO_VICTIMS)
    trying = ByTrying(trial, try_group)
    if not trying.remove_all(lower):
        return [], 0, trying.status
    lower.sort(key=lambda unit: unit.rank)
    exceeding = violations(lower, budgets)
    tried = sorted(lower, key=lambda unit: not exceeding[unit.number])
    left = [unit for unit in tried if not trying.spares(unit)]
    left.sort(key=lambda unit: unit.rank)
    return left, sum(exceeding[unit.number] for unit in left), SUCCESS


class Reprieve(Protocol):
    """Removes units, and puts back those whose removal the group does not need."""

    def remove_all(self, units: Sequence[VictimUnit]) -> bool:
        """Remove units; returns whether the group then fits."""

    def spares(self, unit: VictimUnit) -> bool:
        """Put a unit back; if the group no longer fits, remove it again, and return False."""


class ByTrying:
    """Removes pods from the nodes, and puts them back as long as the group fits beside them."""

    def __init__(self, trial: GroupTrial, try_group: TryGroup) -> None:
        self._trial = trial
        self._try_group = try_group
        self.status = SUCCESS
        """Result of the attempt without all units."""

    def remove_all(self, units: Sequence[VictimUnit]) -> bool:
        for unit in units:
            self._remove(unit)
        self.status = self._try_group()
        return self.status.is_success

    def spares(self, unit: VictimUnit) -> bool:
        for pod in unit.pods:
            self._trial.restore(pod)
        if self._try_group.fits_beside(unit.pods):
            return True
        self._remove(unit)
        return False

    def _remove(self, unit: VictimUnit) -> None:
        for pod in unit.pods:
            self._trial.remove(pod)


class ByRoom:
    """Counts how many of the group's pods, which are equal, fit on each node."""

    def __init__(self, room: GroupRoom, table: NodeTable) -> None:
        self._room = room
        self._table = table
        self._free: dict[str, list[int]] = {}
        """By resource, the free amount of each row; negative where the row is overcommitted."""
        for resource in room.amounts:
            free = free_amounts(table, resource)
            self._free[resource] = free.tolist()
        self._accepts = room.accepts.tolist()
        self._counts: list[int] = []
        self._total = 0

    def remove_all(self, units: Sequence[VictimUnit]) -> bool:
        for unit in units:
            for pod in unit.pods:
                self._add(pod, 1)
        self._counts = [self._count(row) for row in range(len(self._accepts))]
        self._total = sum(self._counts)
        return self._total >= self._room.needed

    def spares(self, unit: VictimUnit) -> bool:
        rows = [self._add(pod, -1) for pod in unit.pods]
        before = {row: self._counts[row] for row in rows}
        after = {row: self._count(row) for row in before}
        total = self._total - sum(before.values()) + sum(after.values())
        if total < self._room.needed:
            for pod in unit.pods:
                self._add(pod, 1)
            return False
        for row, count in after.items():
            self._counts[row] = count
        self._total = total
        return True

    def _add(self, pod: Pod, sign: int) -> int:
        """Free the amounts of a pod, or take them again (`sign` -1); returns the row of its node."""
        row = self._table.row_of[pod.node_name]
        usage = pod.usage
        for resource, free in self._free.items():
            free[row] += sign * (1 if resource == POD_COUNT else usage.get(resource, 0))
        return row

    def _count(self, row: int) -> int:
        """Number of pods of the group that the row has room for."""
        if not self._accepts[row]:
            return 0
        amounts = self._room.amounts
        counts = [
            free[row] // amounts[resource] if amounts[resource] else (0 if free[row] < 0 else FAR)
            for resource, free in self._free.items()
        ]
        return max(min(counts), 0)


def victim_units(pods: Iterable[Pod], lister: Lister, by_group: bool = False) -> list[VictimUnit]:
    """The units of all `pods`, which are on nodes, in the order of their first pod.

    If it is `by_group`, all members of a group have the priority of the group, as in v1.37.
    """
    units: dict[tuple[str, str], VictimUnit] = {}
    for pod in pods:
        group = group_of(pod, lister)
        if group is None or not group.spec.is_disrupted_whole:
            priority = pod.priority if group is None or not by_group else group.spec.priority or 0
            units["", pod.uid] = VictimUnit(priority, start_of(pod), len(units), [pod])
            continue
        unit = units.get((group.namespace, group.name))
        if unit is None:
            unit = VictimUnit(group.spec.priority or 0, start_of(pod), len(units))
            unit.group = group.namespace, group.name
            units[unit.group] = unit
        unit.pods.append(pod)
    return list(units.values())


def split_by_budgets(
    units: Sequence[VictimUnit], budgets: Budgets
) -> tuple[list[VictimUnit], list[VictimUnit]]:
    """Units whose removal, one after the other, would exceed some budget, and the others."""
    exceeding = violations(units, budgets, counts_all=False)
    violating = [unit for unit in units if exceeding[unit.number]]
    return violating, [unit for unit in units if not exceeding[unit.number]]


def violations(
    units: Sequence[VictimUnit], budgets: Budgets, counts_all: bool = True
) -> dict[int, int]:
    """By number of the unit: its pods whose removal, one unit after the other, would exceed some budget.

    The first budget that a pod exceeds ends the check of the pod: later ones are not used up. The first pod that
    exceeds one ends the check of its unit, unless it `counts_all`.
    """
    allowed: dict[int, int] = {}
    found = dict.fromkeys((unit.number for unit in units), 0)
    for unit in units if budgets.listed else ():
        for pod in unit.pods:
            found[unit.number] += budgets.exceeds(pod, allowed, stops_at_first=True)
            if found[unit.number] and not counts_all:
                break
    return found
