"""Attachments: volumes of CSI drivers and devices, which pods use on a node besides the amounts they request.

They are counted like resources, each under its own name, in the bound and in the choice of types. Only attachments that
are certain to be counted separately are included: volumes and claims that a single pod uses, on types with a known
limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..api.dra import (
    ALL_DEVICES,
    ClaimNotReadyError,
    DeviceRequest,
    ResourceClaim,
    WantedDevices,
    resource_claim_name,
)
from ..api.pod import Pod
from ..api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ..api.volumes import claim_name_of
from ..scheduler.inquiry import profile_of
from ..sim.simulation import Simulation
from .node_types import NodeType

DEVICES = "devices"
UNLIMITED = 1 << 40


def room_for(one: NodeType) -> dict[str, int]:
    """Limits on the volumes and devices of a node, as far as they are known; shared ones are not limited."""
    room = {_volumes(name): count for name, count in one.csi_limits.items() if count is not None}
    devices = [device for spec in one.slices for device in spec.devices or ()]
    is_shared = any(device.allow_multiple_allocations for device in devices)
    return room | {DEVICES: UNLIMITED if is_shared else len(devices)}


def _volumes(driver: str) -> str:
    return f"volumes of {driver}"


class Attachments:
    """Volumes and devices that the pods of a workload attach, if the scheduler counts them."""

    def __init__(self, world: Simulation, pods: Sequence[Pod], types: Sequence[NodeType]) -> None:
        self._cluster, self._scheduler = world.cluster, world.scheduler
        self._limited = {name for one in types for name in room_for(one)}
        if any(not one.spec.node_name for one in self._cluster.list("ResourceSlice")):
            self._limited.discard(DEVICES)  # pods may take devices that belong to no node
        self._users = Counter(claim for pod in pods for claim in (*_claims(pod), *_requested(pod)))

    def of(self, pod: Pod) -> Counter[str]:
        """Number of volumes of each driver, and of devices, that a pod takes."""
        filters = {ref.name for ref in profile_of(self._scheduler, pod).points["filter"]}
        found: Counter[str] = Counter()
        if "NodeVolumeLimits" in filters:
            found.update(_volumes(driver) for driver in self._drivers(pod))
        if "DynamicResources" in filters:
            found[DEVICES] = self._count_devices(pod)
        return Counter({name: n for name, n in found.items() if n and name in self._limited})

    def shares(self, pod: Pod) -> bool:
        """Whether a pod uses a volume or a claim that others use, too."""
        return any(self._users[claim] > 1 for claim in (*_claims(pod), *_requested(pod)))

    def _drivers(self, pod: Pod) -> Iterator[str]:
        """The driver of each volume that only this pod uses."""
        for key in _claims(pod):
            claim = self._cluster.get(*key)
            if isinstance(claim, PersistentVolumeClaim) and self._users[key] == 1:
                volume = self._cluster.get("PersistentVolume", "", claim.spec.volume_name)
                storage_class = self._cluster.get("StorageClass", "", claim.storage_class_name)
                if isinstance(volume, PersistentVolume):
                    yield volume.spec.csi.driver if volume.spec.csi is not None else ""
                elif isinstance(storage_class, StorageClass):
                    yield storage_class.provisioner

    def _count_devices(self, pod: Pod) -> int:
        """The least number of devices for the claims that only this pod uses."""
        claims = [self._cluster.get(*key) for key in _requested(pod) if self._users[key] == 1]
        return sum(
            _least(request)
            for claim in claims
            if isinstance(claim, ResourceClaim)
            for request in claim.spec.devices.requests or ()
        )


ClaimKey = tuple[str, str, str]
"""Kind, namespace and name."""


def _claims(pod: Pod) -> Iterator[ClaimKey]:
    """The PersistentVolumeClaims of a pod."""
    for volume in pod.spec.volumes or ():
        name = claim_name_of(volume, pod.name)
        if name:
            yield "PersistentVolumeClaim", pod.namespace, name


def _requested(pod: Pod) -> Iterator[ClaimKey]:
    """The ResourceClaims of a pod that exist already."""
    for entry in pod.spec.resource_claims or ():
        try:
            name = resource_claim_name(pod, entry)
        except ClaimNotReadyError:
            continue
        if name:
            yield "ResourceClaim", pod.namespace, name


def _least(request: DeviceRequest) -> int:
    """Least number of devices that a request takes."""
    if request.exactly is not None:
        return 0 if request.exactly.admin_access else _count(request.exactly)
    return min(map(_count, request.first_available or ()), default=0)


def _count(one: WantedDevices) -> int:
    return 1 if one.allocation_mode == ALL_DEVICES else max(one.count, 1)
