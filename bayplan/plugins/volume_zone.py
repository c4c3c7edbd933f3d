"""VolumeZone: a pod runs in the zone its volumes are in.

Mirrors pkg/scheduler/framework/plugins/volumezone/volume_zone.go. The zones of a volume are labels of it; a volume
that is provisioned today also has them in its node affinity, which VolumeBinding reads.
"""

from collections.abc import Sequence

import numpy as np

from ..api.migration import ZONE_SEPARATOR
from ..api.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from ..api.pod import Pod, PodSpec
from ..api.selectors import Requirement
from ..api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, not_found
from ..framework import (
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    Settled,
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
    names_claim,
    wait_for,
)
from ..framework.interface import NOT_SETTLED, SKIPS_PRE_FILTER
from ..table import Bools, NodeTable, Rows

REASON = "node(s) had no available volume zone"
NO_CLAIM_NAME = "PersistentVolumeClaim had no name"
NO_VOLUME_NAME = "PersistentVolume had no name"
NO_VOLUME_NOR_CLASS = "PersistentVolumeClaim had no pv name and storageClass name"

TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
NEW_LABEL = {BETA_ZONE: ZONE, BETA_REGION: REGION}
"""The label that a node may have in place of the old one."""
STATE = "PreFilterVolumeZone"

Topology = tuple[str, frozenset[str]]
"""A label and the values of it that a volume can be reached from."""


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """Reads claims that the pod names and that have a volume; those made for the pod are ignored."""

    name = "VolumeZone"

    def events_to_register(self) -> Sequence[EventWithHint]:
        changes = ActionType.Add | ActionType.Update
        return (
            wait_for(STORAGE_CLASS, ActionType.Add, helps=after_class_added),
            wait_for(NODE, ActionType.Add | ActionType.UpdateNodeLabel),
            wait_for(PERSISTENT_VOLUME_CLAIM, changes, helps=names_claim),
            wait_for(PERSISTENT_VOLUME, changes, helps=after_volume_change),
        )

    def settled(self, spec: PodSpec) -> Settled:
        has_claims = any(volume.persistent_volume_claim for volume in spec.volumes or ())
        return NOT_SETTLED if has_claims else SKIPS_PRE_FILTER

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        found = self._topologies(pod)
        if isinstance(found, Status):
            return found
        if not found:
            return SKIP
        state.write(STATE, found)
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        found = state.get(STATE)
        if found is None:
            found = self._topologies(pod)  # PreFilter of this plugin is switched off
        if isinstance(found, Status):
            everywhere = np.ones(len(verdict), dtype=np.bool_)
            verdict.reject(everywhere, found.message, unresolvable=True)
            return verdict
        wrong = np.zeros(len(verdict), dtype=np.bool_)
        for topology in found:
            wrong |= ~_reaches(table, topology, rows)
        if wrong.any():
            verdict.reject(wrong & _has_a_zone(table, rows), REASON, unresolvable=True)
        return verdict

    def _topologies(self, pod: Pod) -> list[Topology] | Status:
        """Topologies from which the volumes of the pod can be reached; or the status of a pod that cannot run at
        all.
        """
        found: list[Topology] = []
        for volume in pod.spec.volumes or ():
            source = volume.persistent_volume_claim
            if source is None:
                continue
            bound = self._volume_of(pod.namespace, source.claim_name)
            if isinstance(bound, Status):
                return bound
            if bound is not None:
                found.extend(topologies(bound).items())
        return found

    def _volume_of(self, namespace: str, name: str) -> PersistentVolume | Status | None:
        """The volume of a claim; None when the scheduler is to choose it, and a refusal when there is none."""
        lister = self.handle.lister
        if not name:
            return unresolvable(NO_CLAIM_NAME)
        claim = lister.get("PersistentVolumeClaim", namespace, name)
        if claim is None:
            return unresolvable(not_found("PersistentVolumeClaim", name))
        if not claim.spec.volume_name:
            return self._judge_unbound(claim)
        volume = lister.get("PersistentVolume", "", claim.spec.volume_name)
        if volume is None:
            return unresolvable(not_found("PersistentVolume", claim.spec.volume_name))
        assert isinstance(volume, PersistentVolume), "the lister keeps kinds apart"
        return volume

    def _judge_unbound(self, claim: PersistentVolumeClaim) -> Status | None:
        name = claim.storage_class_name
        if not name:
            return unresolvable(NO_VOLUME_NOR_CLASS)
        storage_class = self.handle.lister.get("StorageClass", "", name)
        if storage_class is None:
            return unresolvable(not_found("StorageClass", name))
        if storage_class.volume_binding_mode is None:
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
        return None if storage_class.waits_for_consumer else unresolvable(NO_VOLUME_NAME)


def _reaches(table: NodeTable, topology: Topology, rows: Rows) -> Bools:
    """bool per row of `rows`: the node's value of the label is one of the volume's.

    On a node without the old label the new one is read, but not the other way round.
    """
    key, values = topology
    wanted = Requirement(key=key, operator="In", values=tuple(sorted(values)))
    reaches = table.labels.match(wanted, rows)
    if key in NEW_LABEL:
        newer = Requirement(key=NEW_LABEL[key], operator="In", values=wanted.values)
        reaches = reaches | (~table.labels.has(key, rows) & table.labels.match(newer, rows))
    return reaches


def _has_a_zone(table: NodeTable, rows: Rows) -> Bools:
    """bool per row of `rows`: the node has a zone; in a cluster of one zone nodes need not."""
    has = table.labels.has(TOPOLOGY_LABELS[0], rows)
    for label in TOPOLOGY_LABELS[1:]:
        has = has | table.labels.has(label, rows)
    return has


def after_class_added(pod: Pod, before: None, added: StorageClass) -> bool:
    """Hint: the class lets the scheduler choose the volume, so that the zone does not restrict the pod."""
    return added.waits_for_consumer


def after_volume_change(pod: Pod, before: PersistentVolume | None, after: PersistentVolume) -> bool:
    """Hint: a volume was added, or its zones changed."""
    return before is None or topologies(before) != topologies(after)


def topologies(volume: PersistentVolume) -> dict[str, frozenset[str]]:
    """The zones and regions of a volume by label; a label with an empty entry is left out."""
    found = {}
    for label in TOPOLOGY_LABELS:
        if label in volume.labels:
            values = frozenset(
                value.strip() for value in volume.labels[label].split(ZONE_SEPARATOR)
            )
            if "" not in values:
                found[label] = values
    return found
