"""Node victims: the pods that must leave one node so that another pod fits.

Mirrors SelectVictimsOnNode of pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...amounts.removing import rotated
from ...api.pod import Pod
from ...errors import PluginError
from ...framework import CycleState, Status, failure, unresolvable
from ...framework.handle import FilterRunner
from ...framework.interface import Preemption
from ...framework.victims import Victims
from ...table import Bools, Ints, NodeTable
from ...table.pod_matrix import by_importance
from ...table.what_if import WhatIf
from .by_amounts import NO_VICTIMS, BesideRoom, best_candidate
from .disruption_budgets import Budgets
from .for_groups import VictimUnit, violations

UnitsOf = Callable[[Sequence[Pod]], list[VictimUnit]]
"""The units of pods of one node, with their pods on other nodes."""


@dataclass(slots=True, eq=False)
class OneByOne:
    """The search for victims on one node after the other, for filters that depend on more than amounts."""

    filters: FilterRunner
    state: CycleState
    pod: Pod
    table: NodeTable
    budgets: Budgets
    wanted: int
    beside_room: BesideRoom | None = None
    """A search for victims by room alone; None if the filters cannot be reduced to room."""
    by_place: bool = False
    """Fact `unstarted_victims_by_place` of the release."""

    def select(self, row: int) -> Victims | Status:
        """The victims on one row, or why there are none."""
        try:
            found = self.beside_room.select(row) if self.beside_room is not None else None
            if found is not None:
                return found
            return self._select_victims(row)
        except PluginError as error:  # counts only when no other node is a candidate
            if error.is_fault:
                raise
            status = getattr(error, "status", None)
            return status if isinstance(status, Status) else failure(error)

    def _select_victims(self, row: int) -> Victims | Status:
        """The fewest, least important pods to remove from `row`; or why removing pods does not help.

        All pods of lower priority are removed; then as many as possible are put back, first those whose removal would
        break a disruption budget, and of each kind the most important first.
        """
        filters, state, pod = self.filters, self.state.clone(), self.pod
        what_if = WhatIf(self.table, row)
        lower = [other for other in what_if.node.pods if other.priority < pod.priority]
        for victim in reversed(lower):  # the last pod of a node is the cheapest to remove
            filters.remove_pod(state, pod, victim, what_if)
        status = filters.filter_with_nominated(state, pod, what_if.node)
        if not status.is_success:
            return status
        violating, harmless = self.budgets.split(by_importance(lower, self.by_place))
        victims: list[Pod] = []
        violations = 0
        for candidate in (*violating, *harmless):
            filters.add_pod(state, pod, candidate, what_if)
            if not filters.filter_with_nominated(state, pod, what_if.node).is_success:
                filters.remove_pod(state, pod, candidate, what_if)
                victims.append(candidate)
                violations += candidate in violating
        name = self.table.names[row]
        if not victims:
            return failure(f'expected at least one victim pod on node "{name}"')
        if violating and harmless:
            victims = by_importance(victims, self.by_place)
        return Victims(name, victims, violations)

    def search(self, rows: Ints, offset: int, account: Preemption) -> Victims | Status | None:
        """Try `rows`, from that at `offset` on, until there are enough candidates; returns the best, the errors if
        there is none, or None."""
        rows = rotated(rows, offset)
        has_victims = self._has_victims(rows)
        idle, order = rows[~has_victims], rows[has_victims]
        reject_without_victims(self.table, idle, 0, account)
        harmless = 0
        reasons: Counter[str] = Counter()
        errors: dict[str, Status] = {}
        for row in order.tolist():
            found = self.select(row)
            if isinstance(found, Victims):
                account.candidates[found.node_name] = found
                harmless += found.pdb_violations == 0
                if harmless and len(account.candidates) >= self.wanted:
                    break
            else:
                account.rejected[self.table.names[row]] = found
                reasons.update(found.reasons)
                if not found.is_rejected:
                    errors.setdefault(found.message, found)
        if account.candidates:
            return best_candidate(account.candidates.values())
        account.reasons.update(reasons)
        account.reasons += Counter({NO_VICTIMS: len(idle)})
        if len(errors) > 1:
            return failure(f"[{', '.join(errors)}]")
        return next(iter(errors.values()), None)

    def _has_victims(self, rows: Ints) -> Bools:
        """bool per row of `rows`: there are pods of lower priority."""
        return self.table.priorities.below(self.pod.priority)[rows] > 0

    def fill_in(self, rows: Ints, offset: int, account: Preemption) -> None:
        """Fill in the results of `search` for every node."""
        self.search(rows, offset, Preemption(account.candidates, account.rejected))


def reject_without_victims(table: NodeTable, rows: Ints, offset: int, account: Preemption) -> None:
    """Record for the nodes at `rows`, from that at `offset` on, that they have no pods of lower priority."""
    names = map(table.names.__getitem__, rotated(rows, offset).tolist())
    account.rejected.update(dict.fromkeys(names, unresolvable(NO_VICTIMS)))


class UnitByUnit(OneByOne):
    """The search for victims on one node after the other, where pods of a group may leave only together."""

    units_of: UnitsOf

    def _has_victims(self, rows: Ints) -> Bools:
        priority = self.pod.priority
        pods = self.table.pods
        return np.array(
            [
                any(unit.priority < priority for unit in self.units_of(list(pods[row].values())))
                for row in rows.tolist()
            ],
            dtype=np.bool_,
        )

    def _select_victims(self, row: int) -> Victims | Status:
        state, pod = self.state.clone(), self.pod
        what_if = WhatIf(self.table, row)
        units = self.units_of(list(what_if.node.pods))
        lower = [unit for unit in units if unit.priority < pod.priority]
        if not lower:
            return unresolvable(NO_VICTIMS)
        for unit in lower:
            self._remove(state, unit, what_if)
        status = self.filters.filter_with_nominated(state, pod, what_if.node)
        if not status.is_success:
            return status
        lower.sort(key=lambda unit: unit.rank)
        exceeding = violations(lower, self.budgets)
        violating = [unit for unit in lower if exceeding[unit.number]]
        harmless = [unit for unit in lower if not exceeding[unit.number]]
        left = [u for u in (*violating, *harmless) if not self._spares(state, u, what_if)]
        name = self.table.names[row]
        if not left:
            return failure(f'expected at least one victim pod on node "{name}"')
        if violating and harmless:
            left.sort(key=lambda unit: unit.rank)
        broken = sum(exceeding[unit.number] for unit in left)
        return Victims(name, [victim for unit in left for victim in unit.pods], broken)

    def _spares(self, state: CycleState, unit: VictimUnit, what_if: WhatIf) -> bool:
        """Put a unit back; if the pod no longer fits, remove it again, and return False."""
        for victim in unit.pods:
            if victim.node_name == what_if.node.name:
                what_if.add_pod(victim)
            self.filters.tell_added(state, self.pod, victim, self._seen(victim, what_if))
        if self.filters.filter_with_nominated(state, self.pod, what_if.node).is_success:
            return True
        self._remove(state, unit, what_if)
        return False

    def _remove(self, state: CycleState, unit: VictimUnit, what_if: WhatIf) -> None:
        for victim in unit.pods:
            if victim.node_name == what_if.node.name:
                what_if.remove_pod(victim)
            self.filters.tell_removed(state, self.pod, victim, self._seen(victim, what_if))

    def _seen(self, victim: Pod, what_if: WhatIf) -> WhatIf:
        """The node of a victim; the what-if without victims if it is the node that is tried."""
        if victim.node_name == what_if.node.name:
            return what_if
        return WhatIf(self.table, self.table.row_of[victim.node_name])
