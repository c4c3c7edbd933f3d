"""VolumeBinding: the claims of the pod must have, or find, volumes that the node can reach.

Mirrors pkg/scheduler/framework/plugins/volumebinding/volume_binding.go. Binding is not there yet: a pod with claims is
refused.
"""

from ..api.pod import Pod
from ..framework import (
    SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    Status,
    Verdict,
    unresolvable,
)
from ..table import NodeTable, Rows

NOT_THERE = "VolumeBinding does not bind claims yet"


class VolumeBinding(PreFilterPlugin, FilterPlugin):
    name = "VolumeBinding"

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        claims = any(v.persistent_volume_claim or v.ephemeral for v in pod.spec.volumes or ())
        return unresolvable(NOT_THERE) if claims else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.accept(table, rows)
