"""NodeUnschedulable: keep pods off cordoned nodes, unless they tolerate it.

Mirrors pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from collections.abc import Hashable, Sequence

from ..api.node import Node
from ..api.pod import Pod, PodSpec
from ..api.taints import Taint, tolerated
from ..framework import (
    NODE_OBJECT,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Settled,
    Status,
    Verdict,
    unresolvable,
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
from ..framework.interface import PASSES_PRE_FILTER, SettledPreFilter
from ..table import NodeTable, Rows

REASON = "node(s) were unschedulable"
REFUSED = unresolvable(REASON)
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(SettledPreFilter, FilterPlugin):
    """Filters on spec.unschedulable. PreFilter, from v1.37 on, is about pods that are being resized."""

    name = "NodeUnschedulable"
    scope = NODE_OBJECT

    def spec_key(self, spec: PodSpec) -> Hashable:
        return tolerated(CORDON, spec.tolerations or ())

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            wait_for(NODE, ActionType.Add | ActionType.UpdateNodeTaint, helps=after_node_change),
            wait_for(POD, ActionType.UpdatePodToleration, helps=after_toleration_change),
        )

    def settled(self, spec: PodSpec) -> Settled:
        return PASSES_PRE_FILTER

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        if not tolerated(CORDON, pod.tolerations):
            verdict.reject(table.unschedulable[rows], REASON, unresolvable=True)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if node.unschedulable and not tolerated(CORDON, pod.tolerations):
            return REFUSED
        return SUCCESS


@called_for(EACH_SPEC)
def after_node_change(pod: Pod, before: Node | None, after: Node) -> bool:
    """Hint: a schedulable node was added, or a node was uncordoned."""
    return (before is None or before.unschedulable) and not after.unschedulable


@called_for(EACH_SPEC)
def after_toleration_change(pod: Pod, before: Pod | None, after: Pod) -> bool:
    """Hint: the pod tolerates cordons after the change."""
    return after.uid == pod.uid and tolerated(CORDON, after.tolerations)
