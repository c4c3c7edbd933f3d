"""NodePorts: the host ports of the pod must be free on the node.

Mirrors pkg/scheduler/framework/plugins/nodeports/node_ports.go.
"""

from collections.abc import Hashable, Sequence

from ..api.pod import Pod, PodSpec
from ..framework import (
    NODE_ROW,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Settled,
    Status,
    Verdict,
    unschedulable,
)
from ..framework.events import (
    EACH_SPEC,
    NODE,
    POD,
    ActionType,
    EventWithHint,
    called_for,
    wait_for,
)
from ..framework.interface import PASSES_PRE_FILTER, SKIPS_PRE_FILTER, SettledPreFilter
from ..table import NodeTable, Rows

REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(SettledPreFilter, FilterPlugin):
    name = "NodePorts"
    scope = NODE_ROW

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.host_ports

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            wait_for(POD, ActionType.Delete, helps=after_pod_deleted),
            wait_for(NODE, ActionType.Add),
        )

    def settled(self, spec: PodSpec) -> Settled:
        return PASSES_PRE_FILTER if spec.host_ports else SKIPS_PRE_FILTER

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        verdict.reject(table.ports.conflicts(pod.spec.host_ports, rows), REASON)
        return verdict

    def looks_at(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        taken, wanted = other.spec.host_ports, pod.spec.host_ports
        return any(port.conflicts_with(held) for port in wanted for held in taken)

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        taken = node.table.ports.conflicts(pod.spec.host_ports, slice(node.row, node.row + 1))
        return unschedulable(REASON) if taken[0] else SUCCESS


@called_for(EACH_SPEC)
def after_pod_deleted(pod: Pod, deleted: Pod, after: None) -> bool:
    """Hint: a pod that held one of the ports left a node."""
    if not deleted.is_assigned_or_nominated:
        return False
    freed, wanted = deleted.spec.host_ports, pod.spec.host_ports
    return any(port.conflicts_with(other) for port in wanted for other in freed)
