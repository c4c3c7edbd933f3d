"""Claims of pod groups: which entries of a pod refer to a claim of its group, and the name of that claim.

Mirrors BindTo and NameFromPodGroup of staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
"""

from __future__ import annotations

from .dra import POD_GROUPS, ClaimNotReadyError, ResourceClaimConsumer
from .pod import Pod
from .pod_groups import SCHEDULING_GROUP, PodGroup, PodGroupResourceClaim
from .pod_spec import PodResourceClaim

UNSUPPORTED = "none of the supported fields are set"


def consumer_of(pod: Pod, group: PodGroup | None, entry: PodResourceClaim) -> ResourceClaimConsumer:
    """The consumer that the claim behind an entry of the pod is reserved for: its group if that has the same entry,
    else the pod.
    """
    if group is not None and is_shared(group, entry):
        return group_consumer(group)
    return ResourceClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)


def group_consumer(group: PodGroup) -> ResourceClaimConsumer:
    """The group as the consumer of its claims."""
    return ResourceClaimConsumer(SCHEDULING_GROUP, POD_GROUPS, group.name, group.uid)


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


def claim_name_in(group: PodGroup, entry: PodGroupResourceClaim) -> str | None:
    """The name of the claim behind one of the group's entries; None when none is needed.

    Raises ClaimNotReadyError when it has not been generated yet, or the entry is empty.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is not None:
        for status in group.status.resource_claim_statuses or ():
            if status.name == entry.name:
                return status.resource_claim_name
        raise ClaimNotReadyError(f"PodGroup {group.key}: ResourceClaim not created yet")
    where = f"PodGroup {group.key}, spec.resourceClaim {entry.name}"
    raise ClaimNotReadyError(f"{where}: {UNSUPPORTED}")
