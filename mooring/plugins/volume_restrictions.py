"""VolumeRestrictions: disks that only one pod, or only one node, may use.

Mirrors pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go. The rules are not there yet: a pod
they would apply to is refused.
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

NOT_THERE = "VolumeRestrictions does not judge disks and claims yet"


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    name = "VolumeRestrictions"

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        restricted = any(
            volume.persistent_volume_claim
            or volume.gce_persistent_disk
            or volume.aws_elastic_block_store
            or volume.rbd
            or volume.iscsi
            for volume in pod.spec.volumes or ()
        )
        return unresolvable(NOT_THERE) if restricted else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.accept(table, rows)
