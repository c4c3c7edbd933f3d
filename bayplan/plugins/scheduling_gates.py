"""SchedulingGates: hold a pod back while it has scheduling gates.

Mirrors pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go.
"""

from collections.abc import Sequence

from ..api.pod import Pod
from ..framework import SUCCESS, PreEnqueuePlugin, Status, unresolvable
from ..framework.events import POD, ActionType, EventWithHint, is_own_change, wait_for


class SchedulingGates(PreEnqueuePlugin):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(g.name for g in gates)}]")

    def events_to_register(self) -> Sequence[EventWithHint]:
        gone = ActionType.UpdatePodSchedulingGatesEliminated
        return (wait_for(POD, gone, helps=is_own_change),)
