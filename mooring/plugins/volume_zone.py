"""VolumeZone: a pod runs in the zone its volumes are in.

Mirrors pkg/scheduler/framework/plugins/volumezone/volume_zone.go. Zones of volumes are not there yet: a pod with claims
is refused.
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

NOT_THERE = "VolumeZone does not look at volumes yet"


class VolumeZone(PreFilterPlugin, FilterPlugin):
    name = "VolumeZone"

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        claims = any(volume.persistent_volume_claim for volume in pod.spec.volumes or ())
        return unresolvable(NOT_THERE) if claims else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.accept(table, rows)
