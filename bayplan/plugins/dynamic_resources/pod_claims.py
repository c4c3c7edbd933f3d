"""The claims of a pod: those it names, and those that were made for it or its group.

Mirrors foreachPodResourceClaim of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go and
staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...api.dra import (
    ClaimNotReadyError,
    ResourceClaim,
    ResourceClaimConsumer,
    check_entries,
    consumer_of,
    resource_claim_name,
)
from ...api.pod import Pod
from ...api.pod_groups import PodGroup, pod_group_of
from ...framework import CycleState
from ...framework.lister import Lister, group_of

# Claims that the pods of a group share: allocations that are pending in its cycle, and reservations for the group.
# Mirrors podGroupStateData, podResourceClaimBindings and unreservePodGroupClaims of
# pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.

PENDING = "DynamicResources"
"""In the state of a group: the uids of the claims whose devices were allocated for its members in this cycle."""


def pending_in(state: CycleState) -> set[str]:
    """The claims allocated for members of the pod's group in this cycle; empty outside of such a cycle."""
    if state.group is None:
        return set()
    found: set[str] | None = state.group.get(PENDING)
    if found is None:
        found = set()
        state.group.write(PENDING, found)
    return found


def existing_group_of(pod: Pod, lister: Lister) -> PodGroup | None:
    """The PodGroup of the pod, None if it has no group. Raises ClaimNotReadyError when the PodGroup is not there."""
    group, name = group_of(pod, lister), pod_group_of(pod)
    if group is None and name is not None:
        raise ClaimNotReadyError(f'podgroup.scheduling.k8s.io "{name}" not found')
    return group


def consumers(pod: Pod, lister: Lister) -> dict[str, ResourceClaimConsumer]:
    """By the name of an entry of the pod: the object that its claim is reserved for, the pod or its group.

    Raises ClaimNotReadyError when the group is not there, or has an entry without a claim.
    """
    group, entries = existing_group_of(pod, lister), pod.spec.resource_claims or ()
    if group is not None and entries:
        check_entries(group)
    return {entry.name: consumer_of(pod, group, entry) for entry in entries}


def unused_claims(group: PodGroup, pod: Pod, get: GetClaim) -> Iterator[ResourceClaim]:
    """The claims that are reserved for a group of which no member has a node, `pod` being one of its members.

    Raises ClaimNotReadyError when one of its claims does not exist.
    """
    for entry in group.spec.resource_claims or ():
        name = resource_claim_name(group, entry)
        if name is None:
            continue
        claim = get(group.namespace, name)
        if claim is None:
            raise ClaimNotReadyError(f'could not find ResourceClaim "{group.namespace}/{name}"')
        if entry.resource_claim_name is None and not claim.is_made_for_group_of(pod):
            continue
        is_reserved = claim.is_reserved_for(pod) or claim.is_reserved_for_group_of(pod)
        if claim.allocation is not None and is_reserved:
            yield claim


GetClaim = Callable[[str, str], ResourceClaim | None]


def pod_claims(
    pod: Pod, get: GetClaim, *, of_groups: bool = False, word: str = "Pod"
) -> Iterator[tuple[str, ResourceClaim]]:
    """The pod's claims in order, each with the name of its entry; ClaimNotReadyError at the first that is unusable.

    With `of_groups` a claim that was made for the group of the pod is one of its claims, too. `word` is how errors
    write "pod".
    """
    for entry in pod.spec.resource_claims or ():
        name = resource_claim_name(pod, entry)
        if name is None:
            continue
        claim = get(pod.namespace, name)
        if claim is None:
            raise ClaimNotReadyError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.is_terminating:
            raise ClaimNotReadyError(f'resourceclaim "{name}" is being deleted')
        if entry.resource_claim_name is None:
            _check_owner(pod, claim, of_groups, word)
        yield entry.name, claim


def _check_owner(pod: Pod, claim: ResourceClaim, of_groups: bool, word: str) -> None:
    if claim.is_made_for(pod) or (of_groups and claim.is_made_for_group_of(pod)):
        return
    owners = f"neither Pod nor PodGroup {pod_group_of(pod)} is the owner"
    text = f"ResourceClaim {claim.key} was not created for {word} {pod.key}"
    raise ClaimNotReadyError(f"{text} ({owners if of_groups else f'{word} is not owner'})")
