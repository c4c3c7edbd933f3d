"""DRA: claims on devices, the classes of devices, and what drivers offer.

Mirrors k8s.io/api/resource/v1/types.go as far as it is needed so far: the whole status of a claim, the
resource a class stands for, where the devices of a slice are. What drivers and users put in for each
other is kept as it is.
"""

from typing import Any, ClassVar

from ..errors import InputError
from .meta import KubeObject, Wire, controller_of
from .pod import Pod
from .pod_spec import PodResourceClaim
from .quantity import Quantity
from .selectors import NodeSelector

RESOURCE_V1 = "resource.k8s.io/v1"
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Before the name of a class: the extended resource that every class stands for."""


class DeviceRequestAllocationResult(Wire, frozen=True):
    """A device that serves a request of a claim."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[dict[str, Any], ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = None
    consumed_capacity: dict[str, Quantity] | None = None


class DeviceAllocationResult(Wire, frozen=True):
    """The devices that serve a claim, and how they are set up."""

    results: tuple[DeviceRequestAllocationResult, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None


class AllocationResult(Wire, frozen=True):
    """What a claim got, and from which nodes it can be used."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumer(Wire, frozen=True):
    """Who may use a claim, mostly a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Wire, frozen=True):
    """What a driver says about a device that serves a claim."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = None
    conditions: tuple[dict[str, Any], ...] | None = None
    data: Any = None
    network_data: dict[str, Any] | None = None


class ResourceClaimStatus(Wire, frozen=True):
    """How a claim stands: without an allocation it is yet to be served."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumer, ...] | None = None
    devices: tuple[AllocatedDeviceStatus, ...] | None = None


class ResourceClaim(KubeObject, frozen=True, gc=True):
    """A request for devices."""

    kind: ClassVar[str] = "ResourceClaim"
    api_version: ClassVar[str] = RESOURCE_V1

    status: ResourceClaimStatus = ResourceClaimStatus()

    def is_made_for(self, pod: Pod) -> bool:
        """Whether it was generated for `pod`."""
        owner = controller_of(self.owner_references)
        return owner is not None and owner.uid == pod.uid and self.namespace == pod.namespace


class DeviceClassSpec(Wire, frozen=True):
    """What a class of devices is."""

    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    """A kind of devices that claims can ask for."""

    kind: ClassVar[str] = "DeviceClass"
    api_version: ClassVar[str] = RESOURCE_V1
    is_namespaced: ClassVar[bool] = False

    spec: DeviceClassSpec = DeviceClassSpec()

    @property
    def own_resource_name(self) -> str:
        """The extended resource that is named after the class."""
        return DEVICE_CLASS_PREFIX + self.name

    @property
    def resource_names(self) -> tuple[str, ...]:
        """The extended resources that devices of this class can stand in for."""
        named = self.spec.extended_resource_name
        return (self.own_resource_name,) if named is None else (self.own_resource_name, named)


class ResourcePool(Wire, frozen=True):
    """The pool that the devices of a slice belong to."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire, frozen=True):
    """Whose devices they are, and from which nodes they can be used."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None


class ResourceSlice(KubeObject, frozen=True):
    """Some of the devices that a driver offers."""

    kind: ClassVar[str] = "ResourceSlice"
    api_version: ClassVar[str] = RESOURCE_V1
    is_namespaced: ClassVar[bool] = False

    spec: ResourceSliceSpec = ResourceSliceSpec()


class ClaimNotReadyError(InputError):
    """A claim of a pod is not there, or not yet."""


def claim_name_of(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The name of the claim behind one of the pod's claim entries; None when none is needed.

    Raises ClaimNotReadyError when it has not been generated yet, or the entry says nothing.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is not None:
        for status in pod.status.resource_claim_statuses or ():
            if status.name == entry.name:
                return status.resource_claim_name
        raise ClaimNotReadyError(f"pod {pod.key}: claim {entry.name} is not generated yet")
    raise ClaimNotReadyError(f"pod {pod.key}: claim {entry.name} names neither claim nor template")
