"""DynamicResources: devices that a pod claims.

Mirrors pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go. Allocation is not there yet: a pod with
resource claims is refused.
"""

from collections.abc import Hashable

import numpy as np

from ..api.pod import Pod
from ..framework import (
    NODE_OBJECT,
    SKIP,
    CycleState,
    Diagnosis,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    ScorePlugin,
    Status,
    Verdict,
    failure,
    unresolvable,
    unschedulable,
)
from ..table import Ints, NodeTable, Rows

NOT_THERE = "DynamicResources does not allocate resource claims yet"
STATE = "PreFilterDynamicResources"


class DynamicResources(PreFilterPlugin, FilterPlugin, PostFilterPlugin, ScorePlugin):
    """Harmless to pods without claims."""

    name = "DynamicResources"
    scope = NODE_OBJECT

    def pod_key(self, pod: Pod) -> Hashable:
        return bool(pod.spec.resource_claims)

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        if pod.spec.resource_claims:
            return unresolvable(NOT_THERE)
        state.write(STATE, ())
        return SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.accept(table, rows)

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        if state.get(STATE) is None:  # a plugin before this one refused the pod in PreFilter
            return PostFilterResult(), failure("not found")
        return PostFilterResult(), unschedulable("no new claims to deallocate")

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return np.zeros(table.count(rows), dtype=np.int64)
