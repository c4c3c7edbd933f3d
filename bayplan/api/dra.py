"""DRA: resource claims, their requests and allocations, and device classes.

Mirrors k8s.io/api/resource/v1/types.go; what drivers publish is in `devices.py`. Opaque parameters
(`config`, `data`) are kept unchanged.
"""

from functools import cached_property
from typing import Any, ClassVar

import msgspec

from ..errors import InputError
from .devices import RESOURCE_V1
from .meta import EMPTY_META, KubeObject, ObjectMeta, Wire, controller_of
from .pod import Pod
from .pod_groups import SCHEDULING_GROUP, PodGroup, pod_group_of
from .pod_spec import PodResourceClaim
from .resources import DEVICE_CLASS_PREFIX
from .selectors import NodeSelector
from .taints import Toleration
from .text.quantity import Quantity

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Finalizer: keeps an allocated claim until its devices are released."""
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Marks a claim for the extended resources of its pod."""
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Names the entry of the pod for which a claim was generated."""

POD_GROUPS = "podgroups"

EXACT_COUNT, ALL_DEVICES = "ExactCount", "All"
MAX_RESULTS = 32
"""Maximum number of devices per claim."""
MAX_ALTERNATIVES = 8
"""Maximum number of alternatives per request."""
MAX_CONSUMERS = 256
"""Maximum number of consumers of a claim."""

_ENCODER = msgspec.json.Encoder(order="deterministic")


class CELDeviceSelector(Wire, frozen=True):
    """Selects devices by a CEL expression."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    """Selects devices."""

    cel: CELDeviceSelector | None = None


class CapacityRequirements(Wire, frozen=True):
    """The requested share of a device that can be shared."""

    requests: dict[str, Quantity] | None = None


class WantedDevices(Wire, frozen=True):
    """The devices of a request, or of one of its alternatives."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[Toleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(WantedDevices, frozen=True):
    """One of the alternatives of a request."""

    name: str = ""


class ExactDeviceRequest(WantedDevices, frozen=True):
    """A request without alternatives."""

    admin_access: bool | None = None


class DeviceRequest(Wire, frozen=True):
    """A device request: `exactly` these, or the `first_available` of some alternatives."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(Wire, frozen=True):
    """A constraint on the devices of the named requests together, or of all requests if none is named."""

    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Wire, frozen=True):
    """The requests of a claim."""

    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None


class ResourceClaimSpec(Wire, frozen=True, dict=True, gc=True):
    """The `spec` of a claim."""

    devices: DeviceClaim = DeviceClaim()

    @cached_property
    def key(self) -> bytes:
        """The content as bytes: equal for claims with equal requests."""
        return _ENCODER.encode(self)


class DeviceRequestAllocationResult(Wire, frozen=True):
    """A device allocated for a request of a claim."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None


class DeviceAllocationResult(Wire, frozen=True):
    """The devices allocated to a claim, and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None


class AllocationResult(Wire, frozen=True):
    """The allocation of a claim, and the nodes that can use it."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumer(Wire, frozen=True):
    """A consumer of a claim, usually a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Wire, frozen=True):
    """A driver's status of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[dict[str, Any], ...] | None = None
    data: Any = None
    network_data: dict[str, Any] | None = None


class ResourceClaimStatus(Wire, frozen=True):
    """The status of a claim; pending without an allocation."""

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
        """The allocation; None while it is pending."""
        return self.status.allocation

    def is_made_for(self, pod: Pod) -> bool:
        """Whether the claim was generated for `pod`."""
        owner = controller_of(self.owner_references)
        return owner is not None and owner.uid == pod.uid and self.namespace == pod.namespace

    def is_made_for_group_of(self, pod: Pod) -> bool:
        """Whether the claim was generated for the PodGroup of `pod`, by its name: the pod does not have its uid."""
        owner, name = controller_of(self.owner_references), pod_group_of(pod)
        return (
            owner is not None
            and (owner.kind, owner.name) == ("PodGroup", name)
            and owner.api_version.startswith(f"{SCHEDULING_GROUP}/")
            and self.namespace == pod.namespace
        )

    def is_reserved_for(self, pod: Pod) -> bool:
        """Whether the claim is reserved for `pod` itself."""
        return any(consumer.uid == pod.uid for consumer in self.status.reserved_for or ())

    def is_reserved_for_group_of(self, pod: Pod) -> bool:
        """Whether the claim is reserved for the PodGroup of `pod`, by its name."""
        name = pod_group_of(pod)
        return name is not None and any(
            (user.api_group, user.resource, user.name) == (SCHEDULING_GROUP, POD_GROUPS, name)
            for user in self.status.reserved_for or ()
        )


class ResourceClaimTemplateSpec(Wire, frozen=True):
    """The spec of claims made from a template."""

    metadata: ObjectMeta = EMPTY_META
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject, frozen=True, gc=True):
    """Template for claims, one for each pod that names it."""

    kind: ClassVar[str] = "ResourceClaimTemplate"
    api_version: ClassVar[str] = RESOURCE_V1

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(Wire, frozen=True):
    """The `spec` of a device class."""

    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    """A class of devices that claims can request."""

    kind: ClassVar[str] = "DeviceClass"
    api_version: ClassVar[str] = RESOURCE_V1
    is_namespaced: ClassVar[bool] = False

    spec: DeviceClassSpec = DeviceClassSpec()

    @property
    def own_resource_name(self) -> str:
        """The implicit extended resource, named after the class."""
        return DEVICE_CLASS_PREFIX + self.name

    @property
    def resource_names(self) -> tuple[str, ...]:
        """The extended resources that devices of this class can provide."""
        named = self.spec.extended_resource_name
        return (self.own_resource_name,) if named is None else (self.own_resource_name, named)


class ClaimNotReadyError(InputError):
    """A claim of a pod does not exist, or not yet."""


UNSUPPORTED = "none of the supported fields are set"


def resource_claim_name(user: Pod | PodGroup, entry: PodResourceClaim) -> str | None:
    """The name of the claim behind an entry of a pod or a group; None when none is needed.

    Raises ClaimNotReadyError when it has not been generated yet, or the entry is empty.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    about, shown = f"PodGroup {user.key}", entry.name
    if isinstance(user, Pod):
        about, shown = f'pod "{user.key}"', f'"{entry.name}"'
    if entry.resource_claim_template_name is None:
        raise ClaimNotReadyError(f"{about}, spec.resourceClaim {shown}: {UNSUPPORTED}")
    for status in user.status.resource_claim_statuses or ():
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimNotReadyError(f"{about}: ResourceClaim not created yet")


def consumer_of(pod: Pod, group: PodGroup | None, entry: PodResourceClaim) -> ResourceClaimConsumer:
    """The consumer that the claim behind an entry of the pod is reserved for: its group if that has the same entry,
    else the pod.

    Mirrors BindTo of staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
    """
    if group is not None and is_shared(group, entry):
        return ResourceClaimConsumer(SCHEDULING_GROUP, POD_GROUPS, group.name, group.uid)
    return ResourceClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)


def is_shared(group: PodGroup, entry: PodResourceClaim) -> bool:
    """Whether the group has the same entry: name, claim and template are equal."""
    wanted = (entry.name, entry.resource_claim_name, entry.resource_claim_template_name)
    return any(
        wanted == (own.name, own.resource_claim_name, own.resource_claim_template_name)
        for own in group.spec.resource_claims or ()
    )


def check_entries(group: PodGroup) -> None:
    """Raise ClaimNotReadyError when an entry of the group names neither a claim nor a template."""
    for entry in group.spec.resource_claims or ():
        if entry.resource_claim_name is None and entry.resource_claim_template_name is None:
            raise ClaimNotReadyError(f"PodGroup {group.key} claim {entry.name}: {UNSUPPORTED}")
