"""SchedulingGates: hold a pod back while it has scheduling gates.

Mirrors pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go.
"""

from ..api.pod import Pod
from ..framework import SUCCESS, PreEnqueuePlugin, Status, unresolvable


class SchedulingGates(PreEnqueuePlugin):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(g.name for g in gates)}]")
