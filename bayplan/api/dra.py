"""DRA: claims on devices, what they ask for and what they got, and the classes of devices.

Mirrors k8s.io/api/resource/v1/types.go; what drivers offer is in `devices.py`. What drivers and users put
in for each other (`config`, `data`) is kept as it is.
"""

from functools import cached_property
from typing import Any, ClassVar

import msgspec

from ..errors import InputError
from .meta import EMPTY_META, KubeObject, ObjectMeta, Wire, controller_of
from .pod import Pod
from .pod_spec import PodResourceClaim
from .quantity import Quantity
from .resources import DEVICE_CLASS_PREFIX
from .selectors import NodeSelector

RESOURCE_V1 = "resource.k8s.io/v1"
FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim that has devices from going before they are given back."""
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Marks a claim that stands for the extended resources of its pod."""
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Says for which entry of its pod a claim was made."""

EXACT_COUNT, ALL_DEVICES = "ExactCount", "All"
MAX_RESULTS = 32
"""Devices that one claim may have at most."""
MAX_ALTERNATIVES = 8
"""Alternatives that one request may have at most."""
MAX_CONSUMERS = 256
"""Who may use a claim: so many at most."""

_ENCODER = msgspec.json.Encoder(order="deterministic")


class CELDeviceSelector(Wire, frozen=True):
    """Picks devices by an expression in CEL."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    """Picks devices."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(Wire, frozen=True):
    """Which taints of devices do no harm."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Wire, frozen=True):
    """How much of a device that many may use is wanted."""

    requests: dict[str, Quantity] | None = None


class DeviceSubRequest(Wire, frozen=True):
    """One of the alternatives of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Wire, frozen=True):
    """A request without alternatives."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceRequest(Wire, frozen=True):
    """Devices that are wanted: `exactly` these, or the `first_available` of some alternatives."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(Wire, frozen=True):
    """What must hold for the devices of some requests (none named: of all) together."""

    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Wire, frozen=True):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None


class ResourceClaimSpec(Wire, frozen=True, dict=True, gc=True):
    """The `spec` of a claim."""

    devices: DeviceClaim = DeviceClaim()

    @cached_property
    def key(self) -> bytes:
        """The content as bytes: equal for claims that ask for the same."""
        return _ENCODER.encode(self)


class DeviceRequestAllocationResult(Wire, frozen=True):
    """A device that serves a request of a claim."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
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
    share_id: str | None = msgspec.field(default=None, name="shareID")
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

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def allocation(self) -> AllocationResult | None:
        """What it got; None: it is yet to be served."""
        return self.status.allocation

    def is_made_for(self, pod: Pod) -> bool:
        """Whether it was generated for `pod`."""
        owner = controller_of(self.owner_references)
        return owner is not None and owner.uid == pod.uid and self.namespace == pod.namespace

    def is_reserved_for(self, pod: Pod) -> bool:
        """Whether `pod` is among those who may use it."""
        return any(consumer.uid == pod.uid for consumer in self.status.reserved_for or ())


class ResourceClaimTemplateSpec(Wire, frozen=True):
    """What the claims made from a template are."""

    metadata: ObjectMeta = EMPTY_META
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject, frozen=True, gc=True):
    """From which claims are made, one for each pod that names it."""

    kind: ClassVar[str] = "ResourceClaimTemplate"
    api_version: ClassVar[str] = RESOURCE_V1

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(Wire, frozen=True):
    """What a class of devices is."""

    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None
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
        raise ClaimNotReadyError(f'pod "{pod.key}": ResourceClaim not created yet')
    where = f'pod "{pod.key}", spec.resourceClaim "{entry.name}"'
    raise ClaimNotReadyError(f"{where}: none of the supported fields are set")
