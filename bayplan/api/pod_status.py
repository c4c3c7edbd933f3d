"""Pod status: the reported state of a pod.

Mirrors PodStatus of k8s.io/api/core/v1/types.go. Times of conditions are left out: no decision
depends on them, and without them equal conditions of many pods are one object.
"""

from typing import ClassVar, TypeAlias

from .containers import ResourceRequirements, hash_map
from .meta import Wire
from .text.quantity import Quantity

POD_SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"
RESIZE_PENDING = "PodResizePending"


class PodCondition(Wire, frozen=True):
    """One aspect of a pod's state."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class ContainerStatus(Wire, frozen=True):
    """Resources of a container: `resources` in effect, `allocated_resources` granted."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.resources, hash_map(self.allocated_resources)))


class PodResourceClaimStatus(Wire, frozen=True):
    """The claim made for one of the pod's claim entries; without a name if none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Wire, frozen=True):
    """The request of the generated claim that serves a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Wire, frozen=True):
    """The claim generated for the pod's extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] | None = None
    resource_claim_name: str = ""


class NodeAllocatableResourceClaimStatus(Wire, frozen=True):
    """Resources of the node that the devices of one claim use up, and the containers with the claim."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] | None = None
    resources: dict[str, Quantity] | None = None

    def __hash__(self) -> int:
        return hash((self.resource_claim_name, self.containers, hash_map(self.resources)))


NodeClaimStatuses: TypeAlias = tuple[NodeAllocatableResourceClaimStatus, ...]


class PodStatus(Wire, frozen=True):
    """The `status` of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    reason: str = ""
    message: str = ""
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] | None = None
    node_allocatable_resource_claim_statuses: NodeClaimStatuses | None = None

    @property
    def has_resources(self) -> bool:
        """Whether it has the allocation of a container or of the whole pod, or of devices in resources of the node."""
        if self.resources is not None or self.node_allocatable_resource_claim_statuses is not None:
            return True
        given = self.container_statuses or ()
        if self.init_container_statuses:
            given = (*given, *self.init_container_statuses)
        return bool(given) and any(status.resources is not None for status in given)

    @property
    def is_resize_infeasible(self) -> bool:
        """Whether the node can never grant the requested resize."""
        condition = self.condition(RESIZE_PENDING)
        return condition is not None and condition.reason == "Infeasible"

    counts_by_pod: ClassVar[bool] = False
    """Whether the maximum of requested and granted resources is that of the pod, not of each container."""

    def condition(self, kind: str) -> PodCondition | None:
        """Return the first condition of type `kind`."""
        for condition in self.conditions or ():
            if condition.type == kind:
                return condition
        return None

    def __hash__(self) -> int:
        return hash((self.phase, self.nominated_node_name, self.start_time, self.conditions))


class PodWiseStatus(PodStatus, frozen=True):
    """The status of a pod whose granted resources are counted as from v1.37 on."""

    counts_by_pod: ClassVar[bool] = True

    @property
    def has_resources(self) -> bool:
        """Whether resources are granted, also if a container has allocatedResources only."""
        given = (*(self.container_statuses or ()), *(self.init_container_statuses or ()))
        return super().has_resources or any(s.allocated_resources is not None for s in given)

    def __hash__(self) -> int:
        return super().__hash__()


EMPTY_STATUS = PodStatus()
