"""ClaimState: the claims of a pod from PreFilter to PreBind, and how they are deallocated if they exclude its node.

Mirrors stateData and PostFilter of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import msgspec

from ...api.dra import AllocationResult, ResourceClaim, ResourceClaimConsumer
from ...api.pod import Pod
from ...errors import ApiError, BayplanError
from ...framework import Handle, Status, failure, unresolvable, unschedulable
from ...framework.devices import Devices
from .claim_writes import ClaimBinder, Given
from .extended import SPECIAL_NAME
from .node_answers import CachedAnswers
from .pod_claims import existing_group_of, unused_claims

GROUP_DONE = "deallocation and deletion of ResourceClaims completed"


class ClaimState(msgspec.Struct):
    """The pod's claims in an attempt; the claim for extended resources is the last."""

    claims: list[ResourceClaim] = msgspec.field(default_factory=list)
    extended: ResourceClaim | None = None
    answers: CachedAnswers | None = None
    """None if nothing is to be allocated."""
    keys: list[str] = msgspec.field(default_factory=list)
    names: list[str] = msgspec.field(default_factory=list)
    """The names of the pod's entries for the claims, by position."""
    unavailable: set[int] = msgspec.field(default_factory=set)
    """Allocated claims, by position, that some node cannot use."""
    given: list[Given] = msgspec.field(default_factory=list)
    users: list[ResourceClaimConsumer] = msgspec.field(default_factory=list)
    """Consumers that the claims are reserved for, by position; claims without an entry are reserved for the pod."""
    pending: dict[int, AllocationResult] = msgspec.field(default_factory=dict)
    """The allocation that another pod of the group writes, by position of the claim."""

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


log = logging.getLogger(__name__)


class Giving:
    """Deallocates claims that exclude nodes."""

    def __init__(self, handle: Handle, binder: ClaimBinder) -> None:
        self._handle = handle
        self._binder = binder

    def give_back(self, known: ClaimState, pod: Pod, has_group_claims: bool) -> Status | None:
        """Deallocate one claim that excludes nodes, so that it may get other devices; None if there is none."""
        binder = self._binder
        for position in sorted(known.unavailable):
            claim = known.claims[position]
            users = claim.status.reserved_for or ()
            is_used = len(users) > 1 or any(user.uid != pod.uid for user in users)
            if claim is not known.extended and not is_used:
                binder.do(binder.deallocate(claim))
                return unschedulable("deallocation of ResourceClaim completed")
        if known.is_stale and known.extended is not None:
            binder.do(binder.remove(known.extended))
            return unschedulable("deletion of ResourceClaim completed")
        if has_group_claims and self._unreserve_group(pod):
            return unresolvable("ResourceClaim unreserved for PodGroup")
        return None

    def give_back_of_group(self, pods: Sequence[Pod], known: Mapping[str, ClaimState]) -> Status:
        """Deallocate one claim of a pod group's members, given as claims by member key."""
        for pod in pods:
            found = known.get(pod.key)
            try:
                if found is not None and found.claims:
                    self.give_back(found, pod, has_group_claims=False)
            except BayplanError as error:
                return failure(error)
        return unschedulable(GROUP_DONE)

    def _unreserve_group(self, pod: Pod) -> bool:
        """Release one claim of a group of which no member has a node, so that it can get other devices."""
        group = existing_group_of(pod, self._handle.lister)
        if group is None:
            return False
        if self._handle.pod_groups.kept_count(("PodGroup", group.namespace, group.name)):
            return False
        claims = Devices.of(self._handle).claims
        for claim in unused_claims(group, pod, claims.get):
            try:
                self._binder.do(self._binder.release(claim, group.uid))
            except ApiError as error:
                log.warning("claim %s: cannot be unreserved: %s", claim.key, error)
            else:
                return True
        return False
