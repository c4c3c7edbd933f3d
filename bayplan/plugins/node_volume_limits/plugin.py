"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach.

Mirrors pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. The plugins for single clouds that came before it are
in `clouds.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...api.migration import PORTWORX, PORTWORX_DRIVER, inline_csi_driver, is_inline_migrated
from ...api.pod import Pod, PodSpec
from ...api.storage import CSINode, VolumeAttachment
from ...framework import (
    CycleState,
    FilterPlugin,
    Settled,
    Verdict,
    failure,
)
from ...framework.csi_nodes import CSINodes
from ...framework.events import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    ActionType,
    EventWithHint,
    required,
    uses_claim,
    wait_for,
)
from ...framework.interface import PASSES_PRE_FILTER, SKIPS_PRE_FILTER, SettledPreFilter
from ...table import Bools, Ints, NodeTable, Rows
from ...table.volumes import volume_refs
from .attached import AttachedVolumes, AttachmentFacts, WhatIfCounts
from .identity import Attached, CSIIdentifier, VolumeFault

REASON = "node(s) exceed max volume count"


class NodeVolumeLimits(SettledPreFilter, FilterPlugin):
    """Counts distinct volumes: a volume that a pod on the node uses already does not count again."""

    name = "NodeVolumeLimits"

    def __init__(self) -> None:
        self._facts: AttachmentFacts | None = None

    def events_to_register(self) -> Sequence[EventWithHint]:
        return events()

    def settled(self, spec: PodSpec) -> Settled:
        return PASSES_PRE_FILTER if has_volumes(spec) else SKIPS_PRE_FILTER

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        facts = self._follow()
        nodes, there = facts.nodes, facts.nodes.rows_of(table, rows)
        portworx_apart = self.handle.release.portworx_by_annotation
        found = [facts.identifier.identify(ref) for ref in volume_refs(pod)]
        faults = [volume for volume in found if isinstance(volume, VolumeFault)]
        if faults and _find_fault(verdict, faults, nodes.exists[there]):
            return verdict
        wanted = {volume.name: volume for volume in found if isinstance(volume, Attached)}
        if not wanted:
            return verdict
        if self.handle.feature_gates.enabled("VolumeLimitScaling"):
            self._require_drivers(verdict, wanted.values(), nodes, there)
        attached = (
            facts.attached if table is facts.attached.table else facts.attached.what_if(table)
        )
        if untold := attached.faults():
            limited = nodes.limited[there] & verdict.feasible
            _report_faults(verdict, untold, limited, table, rows)
        for driver in dict.fromkeys([volume.driver for volume in wanted.values()]):
            if portworx_apart and driver in (PORTWORX, PORTWORX_DRIVER):
                continue
            names = [volume.name for volume in wanted.values() if volume.driver == driver]
            # An upper bound on the new volumes: it seldom exceeds a limit.
            if attached.highest(driver) + len(names) > nodes.lowest_limit(driver):
                more = new_volumes(names, attached, table)[rows]
                total = attached.count(driver)[rows] + more
                full = (more > 0) & (total > nodes.limit(driver)[there])
                verdict.reject(full & verdict.feasible, REASON)
        if portworx_apart:
            _limit_portworx(verdict, wanted.values(), facts, attached, table, rows)
        return verdict

    def _require_drivers(
        self, verdict: Verdict, volumes: Iterable[Attached], nodes: CSINodes, rows: Rows
    ) -> None:
        """Refuse nodes without a driver that has to be installed for its volumes; behind a feature gate."""
        for volume in sorted(volumes):
            driver = self.handle.lister.get("CSIDriver", "", volume.driver)
            if driver is None:
                continue
            opts_in = self.handle.release.missing_driver_opts_in
            if driver.spec.prevent_pod_scheduling_if_missing or not opts_in:
                missing = ~nodes.installed(volume.driver)[rows] & verdict.feasible
                if volume.migrated:
                    missing &= nodes.exists[rows]
                verdict.reject(missing, f"{volume.driver} CSI driver is not installed on the node")

    def _follow(self) -> AttachmentFacts:
        handle, facts = self.handle, self._facts
        if facts is None or facts.handle is not handle:
            identifier = CSIIdentifier(handle.lister, handle.release.portworx_by_annotation)
            facts = self._facts = AttachmentFacts(handle, identifier)
        return facts.follow()


def new_volumes(
    names: Iterable[str], attached: AttachedVolumes | WhatIfCounts, table: NodeTable
) -> Ints:
    """int64 per row: the number of the volumes that no pod of the row uses yet."""
    wanted = list(names)
    more = np.full(len(table), len(wanted), dtype=np.int64)
    for name in wanted:
        more[attached.users(name)] -= 1
    return more


def _limit_portworx(
    verdict: Verdict,
    volumes: Iterable[Attached],
    facts: AttachmentFacts,
    attached: AttachedVolumes | WhatIfCounts,
    table: NodeTable,
    rows: Rows,
) -> None:
    """Refuse nodes with too many Portworx volumes; in-tree ones count where the CSINode lists them as migrated."""
    by_driver: dict[str, list[str]] = {PORTWORX: [], PORTWORX_DRIVER: []}
    for volume in volumes:
        if volume.driver in by_driver:
            by_driver[volume.driver].append(volume.name)
    if not any(by_driver.values()):
        return
    there = facts.nodes.rows_of(table, rows)
    counts = facts.nodes.migrated(PORTWORX)[there]
    more = new_volumes(by_driver[PORTWORX_DRIVER], attached, table)[rows]
    more = more + counts * new_volumes(by_driver[PORTWORX], attached, table)[rows]
    total = more + attached.count(PORTWORX_DRIVER)[rows] + counts * attached.count(PORTWORX)[rows]
    full = (more > 0) & (total > facts.nodes.limit(PORTWORX_DRIVER)[there])
    verdict.reject(full & verdict.feasible, REASON)


def _find_fault(verdict: Verdict, faults: Iterable[VolumeFault], has_csi_node: Bools) -> bool:
    """Whether the volumes of the pod itself cannot be determined, on every row that is left."""
    left = np.ones(len(verdict), dtype=np.bool_)
    for fault in faults:
        affected = left & has_csi_node if fault.migrated else left
        if fault.is_missing:
            verdict.reject(affected, fault.text, unresolvable=True)
        elif affected.any():
            verdict.error = failure(fault.text)
            return True
        left = left & ~affected
    return not left.any()


def _report_faults(
    verdict: Verdict,
    faults: Mapping[str, Iterable[int]],
    matters: Bools,
    table: NodeTable,
    rows: Rows,
) -> None:
    """Fail when the volumes of a pod on some row cannot be determined, as upstream does."""
    for text, where in faults.items():
        affected = np.zeros(len(table), dtype=np.bool_)
        affected[list(where)] = True
        if (affected[rows] & matters).any():
            verdict.error = failure(text)


def events() -> tuple[EventWithHint, ...]:
    """Events that a pod waits for."""
    return (
        wait_for(CSI_NODE, ActionType.Add),
        wait_for(CSI_NODE, ActionType.Update, helps=after_csi_node_updated),
        wait_for(POD, ActionType.Delete, helps=after_pod_deleted),
        wait_for(PERSISTENT_VOLUME_CLAIM, ActionType.Add, helps=uses_claim),
        wait_for(VOLUME_ATTACHMENT, ActionType.Delete, helps=after_attachment_deleted),
    )


def after_csi_node_updated(pod: Pod, before: Any, after: CSINode) -> bool:
    """Hint: the limit of some driver has grown; a driver without a limit counts as zero."""
    then = dict(_limits(required(CSINode, before)))
    return any(limit > then.get(driver, 0) for driver, limit in _limits(after))


def after_pod_deleted(pod: Pod, deleted: Pod, after: None) -> bool:
    """Hint: a pod with a volume that may have been attached was removed from a node."""
    return deleted.is_assigned_or_nominated and has_volumes(deleted.spec)


def has_volumes(spec: PodSpec) -> bool:
    """Whether pods of the spec use volumes that may have a CSI driver."""
    return any(
        volume.persistent_volume_claim or volume.ephemeral or is_inline_migrated(volume)
        for volume in spec.volumes or ()
    )


def after_attachment_deleted(pod: Pod, detached: VolumeAttachment, after: None) -> bool:
    """Hint: a volume was detached; pods without a claim are tried only if it is a volume of their driver."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            return True
        driver = inline_csi_driver(volume)
        if driver is not None and driver == detached.spec.attacher:
            return True
    return False


def _limits(node: CSINode) -> list[tuple[str, int]]:
    """Each driver on the node with the volumes it can attach."""
    return [
        (driver.name, (driver.allocatable.count or 0) if driver.allocatable else 0)
        for driver in node.spec.drivers or ()
    ]
