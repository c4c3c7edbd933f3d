"""Claim events: the volume controller of the embedded cluster, with events about claims."""

from __future__ import annotations

from ...api.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from ...clock import Timers
from ...cluster.memory import VolumeController
from ...cluster.memory.provisioners import PROVISIONED_BY
from ...cluster.memory.volume_controller import BOUND
from .embedded_cluster import LiveCluster
from .recorder import Reporter

BINDER = Reporter("persistentvolume-controller")
NO_CLASS = "no persistent volumes available for this claim and no storage class is set"
WAITS = "waiting for first consumer to be created before binding"


class PersistentVolumes(VolumeController):
    """The volume controller, in steps like the others."""

    def __init__(self, cluster: LiveCluster, timers: Timers) -> None:
        super().__init__(cluster, timers=timers)
        self._live_cluster = cluster

    def run_once(self) -> None:
        """Do the recorded work."""
        self.run()

    def _find_volume(self, claim: PersistentVolumeClaim) -> None:
        super()._find_volume(claim)
        found = self._cluster.get(claim.kind, claim.namespace, claim.name)
        if found is None or found.spec.volume_name or SELECTED_NODE in found.annotations:
            return
        storage_class = self._cluster.get("StorageClass", "", found.storage_class_name)
        if not found.storage_class_name:
            self._live_cluster.tell(found, BINDER, ("Normal", "FailedBinding"), NO_CLASS)
        elif storage_class is not None and storage_class.waits_for_consumer:
            self._live_cluster.tell(found, BINDER, ("Normal", "WaitForFirstConsumer"), WAITS)

    def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        super()._bind(volume, claim)
        driver = volume.annotations.get(PROVISIONED_BY)
        if driver and claim.status.phase != BOUND:
            text = f"Successfully provisioned volume {volume.name}"
            what = "Normal", "ProvisioningSucceeded"
            self._live_cluster.tell(claim, Reporter(driver), what, text)
