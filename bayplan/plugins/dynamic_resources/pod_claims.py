"""The claims of a pod: those it names, and those that were made for it or its group.

Mirrors foreachPodResourceClaim of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go and
staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...api.dra import ClaimNotReadyError, ResourceClaim, claim_name_of
from ...api.pod import Pod
from ...api.pod_groups import pod_group_of

GetClaim = Callable[[str, str], ResourceClaim | None]


def pod_claims(
    pod: Pod, get: GetClaim, *, of_groups: bool = False, word: str = "Pod"
) -> Iterator[tuple[str, ResourceClaim]]:
    """The pod's claims in order, each with the name of its entry; ClaimNotReadyError at the first that is unusable.

    With `of_groups` a claim that was made for the group of the pod is one of its claims, too. `word` is how errors
    write "pod".
    """
    for entry in pod.spec.resource_claims or ():
        name = claim_name_of(pod, entry)
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
