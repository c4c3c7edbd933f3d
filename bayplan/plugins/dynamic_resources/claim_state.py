"""ClaimState: what DynamicResources keeps of a pod's claims from PreFilter to PreBind.

Mirrors stateData of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...api.dra import AllocationResult, ResourceClaim, ResourceClaimConsumer
from ...api.pod import Pod
from .claim_writes import Given
from .extended import SPECIAL_NAME
from .node_answers import CachedAnswers


class ClaimState(msgspec.Struct):
    """The pod's claims in an attempt; the one for extended resources comes last."""

    claims: list[ResourceClaim] = msgspec.field(default_factory=list)
    extended: ResourceClaim | None = None
    answers: CachedAnswers | None = None
    """None when there is nothing to allocate."""
    keys: list[str] = msgspec.field(default_factory=list)
    names: list[str] = msgspec.field(default_factory=list)
    """The names of the pod's entries for the claims, by position."""
    unavailable: set[int] = msgspec.field(default_factory=set)
    """Allocated claims, by position, that some node cannot use."""
    given: list[Given] = msgspec.field(default_factory=list)
    users: list[ResourceClaimConsumer] = msgspec.field(default_factory=list)
    """Consumers that the claims are reserved for, by position; those without an entry: for the pod."""
    pending: dict[int, AllocationResult] = msgspec.field(default_factory=dict)
    """By position: the write to the claim that another pod of the group is about to make."""

    has_written_pod: bool = False
    """Whether the pod's status was written with the resources of the node that devices use up."""

    def users_for(self, pod: Pod) -> Sequence[ResourceClaimConsumer]:
        """Consumers that the claims are reserved for, by position."""
        own = ResourceClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)
        return (*self.users, *[own] * (len(self.claims) - len(self.users)))

    @property
    def is_stale(self) -> bool:
        """Whether the claim for extended resources is left from an earlier attempt."""
        return self.extended is not None and self.extended.name != SPECIAL_NAME
