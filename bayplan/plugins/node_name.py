"""NodeName: a pod that names its node runs there or nowhere.

Mirrors pkg/scheduler/framework/plugins/nodename/node_name.go.
"""

from collections.abc import Hashable, Sequence

from ..api.pod import Pod, PodSpec
from ..framework import (
    NODE_OBJECT,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PreFilterPlugin,
    PreFilterResult,
    Settled,
    Status,
    Verdict,
    unresolvable,
)
from ..framework.events import NODE, ActionType, EventWithHint, wait_for
from ..framework.interface import PASSES_PRE_FILTER
from ..table import NodeTable, Rows

REASON = "node(s) didn't match the requested node name"
REFUSED = unresolvable(REASON)


class NodeName(PreFilterPlugin, FilterPlugin):
    """Filters by spec.nodeName; from v1.37 on PreFilter leaves only that node."""

    name = "NodeName"
    scope = NODE_OBJECT

    def settled(self, spec: PodSpec) -> Settled:
        return PASSES_PRE_FILTER  # a settled answer is for pods that name no node

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status | PreFilterResult:
        return PreFilterResult(frozenset({pod.node_name})) if pod.node_name else SUCCESS

    def spec_key(self, spec: PodSpec) -> Hashable:
        return ()  # answers are kept for pods that name no node

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (wait_for(NODE, ActionType.Add),)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        if pod.node_name:
            wanted = table.row_of.get(pod.node_name, -1)
            verdict.reject(table.numbers(rows) != wanted, REASON, unresolvable=True)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        wanted = pod.node_name
        return REFUSED if wanted and wanted != node.name else SUCCESS
