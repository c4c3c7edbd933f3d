"""VolumeZone: a pod runs in the zone its volumes are in.

Mirrors pkg/scheduler/framework/plugins/volumezone/volume_zone.go. Zones of volumes are not there yet: a pod with claims
is refused.
"""

from collections.abc import Sequence
from typing import Any

from ..api.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from ..api.pod import Pod
from ..api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ..framework import (
    SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    Status,
    Verdict,
    unresolvable,
)
from ..framework.events import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
    EventWithHint,
    Hint,
    required,
    typed,
    wait_for,
)
from ..table import NodeTable, Rows

NOT_THERE = "VolumeZone does not look at volumes yet"

TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
SEPARATOR = "__"
"""Stands between the zones of a volume that is in several."""


class VolumeZone(PreFilterPlugin, FilterPlugin):
    name = "VolumeZone"

    def events_to_register(self) -> Sequence[EventWithHint]:
        changes = ActionType.Add | ActionType.Update
        return (
            wait_for(STORAGE_CLASS, ActionType.Add, after_class_added),
            wait_for(NODE, ActionType.Add | ActionType.UpdateNodeLabel),
            wait_for(PERSISTENT_VOLUME_CLAIM, changes, after_claim_change),
            wait_for(PERSISTENT_VOLUME, changes, after_volume_change),
        )

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        claims = any(volume.persistent_volume_claim for volume in pod.spec.volumes or ())
        return unresolvable(NOT_THERE) if claims else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.accept(table, rows)


def after_class_added(pod: Pod, old: Any, new: Any) -> Hint:
    """Only a class that leaves the choice of the volume to the scheduler frees a pod of its zone."""
    return Hint.QUEUE if required(StorageClass, new).waits_for_consumer else Hint.SKIP


def after_claim_change(pod: Pod, old: Any, new: Any) -> Hint:
    """A claim that the pod names came or changed; generated claims are not looked at."""
    typed(PersistentVolumeClaim, old)
    claim = typed(PersistentVolumeClaim, new)
    if claim is None or claim.namespace != pod.namespace:
        return Hint.SKIP
    named = (volume.persistent_volume_claim for volume in pod.spec.volumes or ())
    helps = any(source is not None and source.claim_name == claim.name for source in named)
    return Hint.QUEUE if helps else Hint.SKIP


def after_volume_change(pod: Pod, old: Any, new: Any) -> Hint:
    """A volume came, or is in other zones than before."""
    before, after = typed(PersistentVolume, old), required(PersistentVolume, new)
    same = before is not None and topologies(before) == topologies(after)
    return Hint.SKIP if same else Hint.QUEUE


def topologies(volume: PersistentVolume) -> dict[str, frozenset[str]]:
    """The zones and regions of a volume by label; a label with an empty entry is left out."""
    found = {}
    for label in TOPOLOGY_LABELS:
        if label in volume.labels:
            values = frozenset(value.strip() for value in volume.labels[label].split(SEPARATOR))
            if "" not in values:
                found[label] = values
    return found
