"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach.

Mirrors pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. The limits are not there yet: a pod they would apply
to is refused.
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

NOT_THERE = "NodeVolumeLimits does not count volumes yet"


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    name = "NodeVolumeLimits"

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        counted = any(
            volume.image is None and volume.csi is None for volume in pod.spec.volumes or ()
        )
        return unresolvable(NOT_THERE) if counted else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.accept(table, rows)
