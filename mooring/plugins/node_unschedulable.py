"""NodeUnschedulable: keep pods off cordoned nodes, unless they tolerate it.

Mirrors pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from collections.abc import Hashable

from ..api.pod import Pod
from ..api.taints import Taint, tolerated
from ..framework import NODE_OBJECT, CycleState, FilterPlugin, Verdict
from ..table import NodeTable, Rows

REASON = "node(s) were unschedulable"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(FilterPlugin):
    name = "NodeUnschedulable"
    scope = NODE_OBJECT

    def pod_key(self, pod: Pod) -> Hashable:
        return tolerated(CORDON, pod.tolerations)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        if not tolerated(CORDON, pod.tolerations):
            verdict.reject(table.unschedulable[rows], REASON, unresolvable=True)
        return verdict
