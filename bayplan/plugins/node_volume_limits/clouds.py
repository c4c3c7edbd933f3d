"""EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits: how many disks of one cloud a node can attach.

Mirrors pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go as of v1.20. Only older configurations name these
plugins; NodeVolumeLimits has taken their place.
"""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from ...api.migration import AWS_EBS, AZURE_DISK, CINDER, GCE_PD, PLUGIN_NAMED
from ...api.pod import Pod
from ...framework import CycleState, FilterPlugin, Verdict, failure
from ...table import Ints, NodeTable, Rows
from ...table.volumes import volume_refs
from .attached import AttachmentFacts
from .identity import Attached, CloudIdentifier, VolumeFault
from .plugin import REASON, new_volumes

INSTANCE_TYPES = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")


class CloudLimits(FilterPlugin):
    """Shared base of the four plugins. A node may have its own limit; else it is the same for all."""

    in_tree: ClassVar[str]
    id_field: ClassVar[str] = "volume_id"
    resource: ClassVar[str]
    default_limit: ClassVar[int]

    def __init__(self, max_volumes: int | None = None) -> None:
        self._max_volumes = max_volumes
        """Takes the place of the defaults, as the variable KUBE_MAX_PD_VOLS did."""
        self._facts: AttachmentFacts | None = None

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        field, volumes = PLUGIN_NAMED[self.in_tree].field, pod.spec.volumes or ()
        if not any(getattr(one, field) or one.persistent_volume_claim for one in volumes):
            return verdict
        facts = self._follow()
        found = [facts.identifier.identify(ref) for ref in volume_refs(pod)]
        for fault in found:
            if isinstance(fault, VolumeFault):
                verdict.error = failure(fault.text)
                return verdict
        wanted = {volume.name for volume in found if isinstance(volume, Attached)}
        if wanted:
            attached = facts.attached
            view = attached if table is attached.table else attached.what_if(table)
            total = (view.count(self.in_tree) + new_volumes(wanted, view, table))[rows]
            migrated = facts.nodes.migrated(self.in_tree)[facts.nodes.rows_of(table, rows)]
            verdict.reject(~migrated & (total > self._limits(table)[rows]), REASON)
        return verdict

    def default_limits(self, table: NodeTable) -> Ints:
        """int64 per row: the limit of nodes without one."""
        return np.full(len(table), self.default_limit, dtype=np.int64)

    def _limits(self, table: NodeTable) -> Ints:
        allocatable = table.allocatable[self.resource]
        if self._max_volumes is None:
            return np.where(allocatable > 0, allocatable, self.default_limits(table))
        return np.where(allocatable > 0, allocatable, self._max_volumes)

    def _follow(self) -> AttachmentFacts:
        handle, facts = self.handle, self._facts
        if facts is None or facts.handle is not handle:
            named = PLUGIN_NAMED[self.in_tree]
            identifier = CloudIdentifier(handle.lister, named, self.id_field)
            facts = self._facts = AttachmentFacts(handle, identifier, attachments=False)
        return facts.follow()


class EBSLimits(CloudLimits):
    """Disks of AWS; newer kinds of machines attach fewer."""

    name = "EBSLimits"
    in_tree = AWS_EBS
    resource = "attachable-volumes-aws-ebs"
    default_limit = 39
    nitro_limit = 25
    nitro = re.compile(r"^[cmr]5.*|t3|z1d")

    def default_limits(self, table: NodeTable) -> Ints:
        limits = super().default_limits(table)
        for label in INSTANCE_TYPES:
            column = table.labels.column(label)
            is_nitro = [self.nitro.search(value) is not None for value in column.values]
            limits[np.array([*is_nitro, False], dtype=np.bool_)[column.codes]] = self.nitro_limit
        return limits


class GCEPDLimits(CloudLimits):
    """Disks of Google's cloud."""

    name = "GCEPDLimits"
    in_tree = GCE_PD
    id_field = "pd_name"
    resource = "attachable-volumes-gce-pd"
    default_limit = 16


class AzureDiskLimits(CloudLimits):
    """Disks of Azure."""

    name = "AzureDiskLimits"
    in_tree = AZURE_DISK
    id_field = "disk_name"
    resource = "attachable-volumes-azure-disk"
    default_limit = 16


class CinderLimits(CloudLimits):
    """Disks of OpenStack."""

    name = "CinderLimits"
    in_tree = CINDER
    resource = "attachable-volumes-cinder"
    default_limit = 256
