"""Node units: the pods and whole groups of pods that must leave so that a pod fits on one node.

Mirrors SelectVictimsOnNode of pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go of v1.37, with
feature gate GenericWorkload. Pods of a group on other nodes leave, too; these nodes are not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...api.pod import Pod
from ...framework import CycleState, Status, failure, unresolvable
from ...framework.victims import Victims
from ...table import Bools, Ints
from ...table.what_if import WhatIf
from .candidates import NO_VICTIMS
from .for_groups import VictimUnit, violations
from .node_victims import OneByOne

UnitsOf = Callable[[Sequence[Pod]], list[VictimUnit]]
"""The units of pods of one node, with their pods on other nodes."""


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
