"""NodePorts: the host ports of the pod must be free on the node.

Mirrors pkg/scheduler/framework/plugins/nodeports/node_ports.go.
"""

from collections.abc import Hashable

from ..api.pod import Pod
from ..framework import (
    NODE_ROW,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PreFilterPlugin,
    Status,
    Verdict,
    unschedulable,
)
from ..table import NodeTable, Rows

REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(PreFilterPlugin, FilterPlugin):
    name = "NodePorts"
    scope = NODE_ROW

    def pod_key(self, pod: Pod) -> Hashable:
        return pod.spec.host_ports

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        return SUCCESS if pod.spec.host_ports else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        verdict.reject(table.ports.conflicts(pod.spec.host_ports, rows), REASON)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        taken = node.table.ports.conflicts(pod.spec.host_ports, slice(node.row, node.row + 1))
        return unschedulable(REASON) if taken[0] else SUCCESS
